//! A count of things, and how many of them are kept.

use std::ops::AddAssign;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

/// How many of some things are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// The number of things.
    pub of: u64,
    /// How many of them are kept.
    pub kept: u64,
}

impl Share {
    pub(in crate::eval) fn add(&mut self, kept: bool) {
        self.of += 1;
        self.kept += u64::from(kept);
    }

    /// Returns the share, 0 to 1; `None` without things.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        (self.of > 0).then(|| self.kept as f64 / self.of as f64)
    }
}

impl AddAssign for Share {
    fn add_assign(&mut self, other: Self) {
        self.of += other.of;
        self.kept += other.kept;
    }
}

impl Serialize for Share {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Share", 3)?;
        out.serialize_field("of", &self.of)?;
        out.serialize_field("kept", &self.kept)?;
        out.serialize_field("share", &self.share())?;
        out.end()
    }
}
