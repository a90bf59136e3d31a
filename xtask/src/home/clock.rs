//! A clock that the caller advances.

use jiff::Timestamp;

/// Milliseconds since the epoch.
#[derive(Clone, Copy)]
pub(crate) struct Clock(pub(crate) i64);

impl Clock {
    pub(crate) fn pass(&mut self, ms: u64) {
        self.0 += ms as i64;
    }

    pub(crate) fn iso(self) -> String {
        let time = Timestamp::from_millisecond(self.0).unwrap_or_default();
        time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
    }
}
