//! Profiles: the defaults of the systems that ctx is modelled on, and of its proxy, as files in
//! `profiles/`.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::document;

macro_rules! profiles {
    ($($name:literal)*) => {
        const NAMES: &[&str] = &[$($name),*];
        const FILES: &[&str] = &[$(include_str!(concat!("../profiles/", $name, ".json5"))),*];
    };
}

// One line for each file, in the order of the documentation; the first is the default.
profiles! {
    "openclaw"
    "ponybunny"
    "copaw"
    "memory-context"
    "pi"
    "proxy"
}

/// A named set of defaults: a file with the keys of `ctx.json5`, and in `system`
/// ([`SystemRules`](crate::SystemRules)) what only a profile sets. Explicit config keys override it.
///
/// # Example
///
/// ```
/// use ctx_config::Profile;
///
/// assert_eq!("pi".parse(), Ok(Profile::find("pi").unwrap()));
/// assert_eq!(Profile::default().name(), "openclaw");
/// assert!(Profile::all().any(|profile| profile.name() == "copaw"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Profile(usize);

impl Profile {
    /// Returns all profiles, in the order of the documentation.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..NAMES.len()).map(Self)
    }

    /// Returns the profile of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        Self::all().find(|profile| profile.name() == name)
    }

    /// Returns the name used in config files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES[self.0]
    }

    /// Returns the values that its file sets.
    #[must_use]
    pub fn values(self) -> &'static Value {
        static VALUES: LazyLock<Vec<Value>> = LazyLock::new(|| {
            let read =
                |text| document::parse(text).expect("the tests of this crate read each file");
            FILES.iter().copied().map(read).collect()
        });
        &VALUES[self.0]
    }
}

/// The first profile, `openclaw`.
impl Default for Profile {
    fn default() -> Self {
        Self(0)
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Profile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::find(&name).ok_or_else(|| serde::de::Error::unknown_variant(&name, NAMES))
    }
}

/// An unknown profile name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile '{0}' (known: {known})", known = NAMES.join(", "))]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::find(s).ok_or_else(|| UnknownProfile(s.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Config, SystemRules};

    #[test]
    fn each_file_is_valid_and_begins_with_a_comment() {
        for (profile, text) in Profile::all().zip(FILES) {
            assert!(profile.values().is_object() && text.starts_with("// "), "{profile}");
            Config::for_profile(profile).section::<SystemRules>().unwrap();
        }
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = "p".parse::<Profile>().unwrap_err().to_string();
        assert_eq!(error, format!("unknown profile 'p' (known: {})", NAMES.join(", ")));
        let read = serde_json::from_str::<Profile>;
        assert_eq!(read("\"pi\"").unwrap().to_string(), "pi");
        assert!(read("\"p\"").unwrap_err().to_string().contains("unknown variant `p`, expected"));
    }
}
