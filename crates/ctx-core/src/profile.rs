//! The five systems ctx learned from, as named sets of defaults.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which system's defaults are in force. Every explicit config key overrides them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Profile {
    /// OpenClaw of April 2026: the default.
    #[default]
    Openclaw,
    /// PonyBunny: trigger at 80 %, keep by count, +50 tokens a tool call.
    Ponybunny,
    /// CoPaw / ReMe: three zones, tool results offloaded to files.
    Copaw,
    /// Memory-enhanced compaction: archive, smart trim, recall, chars/3.
    MemoryContext,
    /// pi 0.73.1.
    Pi,
}

impl Profile {
    /// All profiles, in the order of the documentation.
    pub const ALL: [Self; 5] =
        [Self::Openclaw, Self::Ponybunny, Self::Copaw, Self::MemoryContext, Self::Pi];

    /// The name used in config files and on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Openclaw => "openclaw",
            Self::Ponybunny => "ponybunny",
            Self::Copaw => "copaw",
            Self::MemoryContext => "memory-context",
            Self::Pi => "pi",
        }
    }
}

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The text names no profile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown profile '{0}' (known: openclaw, ponybunny, copaw, memory-context, pi)")]
pub struct UnknownProfile(String);

impl FromStr for Profile {
    type Err = UnknownProfile;
    fn from_str(s: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|p| p.name() == s).ok_or_else(|| UnknownProfile(s.to_owned()))
    }
}
