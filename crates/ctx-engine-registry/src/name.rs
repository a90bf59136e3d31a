//! The slots of plugins, and the names of engines.

use std::fmt;

use ctx_core::text::head_chars;
use ctx_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

/// A place that one plugin at a time can fill.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub enum Slot {
    /// The engine that assembles requests: `plugins.slots.contextEngine`.
    #[default]
    ContextEngine,
    /// Long-term memory: `plugins.slots.memory`.
    Memory,
}

impl Slot {
    /// Returns the key under `plugins.slots`.
    pub fn key(self) -> &'static str {
        match self {
            Self::ContextEngine => "contextEngine",
            Self::Memory => "memory",
        }
    }
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.key())
    }
}

/// The engine used if the config names none.
pub const DEFAULT_ENGINE: &str = "legacy";

/// Describes a valid name, for messages.
pub(crate) const NAME_RULE: &str =
    "a name of a to z, 0 to 9, '-' and '_', beginning with a letter, of at most 64 characters";

const MAX_CHARS: usize = 64;

/// The id of an engine that is not built in. It is also the name of its manifest and of its folder,
/// so it must be a valid file name on every system: no path, no capitals.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub struct EngineName(String);

impl EngineName {
    /// Validates a name.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for anything that is not a valid file name on every system.
    pub fn new(name: impl Into<String>) -> Result<Self> {
        let name = name.into();
        let allowed =
            |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
        let begins = name.starts_with(|c: char| c.is_ascii_lowercase());
        if begins && name.len() <= MAX_CHARS && name.chars().all(allowed) && !is_device(&name) {
            return Ok(Self(name));
        }
        let shown = head_chars(&name, MAX_CHARS);
        Err(Error::new(ErrorKind::InvalidInput, format!("invalid engine name {shown:?}"))
            .hint(format!("use {NAME_RULE}")))
    }

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Windows opens these names as devices, in any folder and with any extension.
fn is_device(name: &str) -> bool {
    let numbered = |stem: &str| {
        name.strip_prefix(stem).is_some_and(|n| n.len() == 1 && n.as_bytes()[0].is_ascii_digit())
    };
    matches!(name, "con" | "prn" | "aux" | "nul") || numbered("com") || numbered("lpt")
}

impl fmt::Display for EngineName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl TryFrom<String> for EngineName {
    type Error = Error;
    fn try_from(name: String) -> Result<Self> {
        Self::new(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_file_name_on_every_system() {
        for name in ["lossless", "c-minimal", "a", "a_1", "combine", "com", &"a".repeat(64)] {
            assert!(EngineName::new(name).is_ok(), "{name}");
        }
        for name in
            ["", ".", "..", "a/b", "a\\b", "A", "1a", "-a", "a.b", "é", "nul", "com1", "a b", "a\0"]
        {
            assert!(EngineName::new(name).unwrap_err().hint_text().is_some(), "{name}");
        }
        assert!(EngineName::new("a".repeat(65)).is_err());
    }
}
