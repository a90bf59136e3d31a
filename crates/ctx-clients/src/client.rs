//! The clients.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use ctx_core::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

/// An agent that can send its requests through the proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Client {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// opencode.
    Opencode,
    /// Qwen Code.
    Qwen,
    /// pi.
    Pi,
    /// OpenClaw.
    Openclaw,
    /// Aider.
    Aider,
    /// Any program on the SDKs of OpenAI, Anthropic or Google.
    Sdk,
}

impl Client {
    /// All clients.
    pub const ALL: [Self; 9] = [
        Self::Claude,
        Self::Codex,
        Self::Gemini,
        Self::Opencode,
        Self::Qwen,
        Self::Pi,
        Self::Openclaw,
        Self::Aider,
        Self::Sdk,
    ];

    /// Returns the id: the name of its program, or `sdk`.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Opencode => "opencode",
            Self::Qwen => "qwen",
            Self::Pi => "pi",
            Self::Openclaw => "openclaw",
            Self::Aider => "aider",
            Self::Sdk => "sdk",
        }
    }

    /// Returns the name that its users know.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::Opencode => "opencode",
            Self::Qwen => "Qwen Code",
            Self::Pi => "pi",
            Self::Openclaw => "OpenClaw",
            Self::Aider => "Aider",
            Self::Sdk => "programs on the SDKs",
        }
    }

    /// Returns the client whose program this is, by its file name.
    #[must_use]
    pub fn of_program(program: &Path) -> Option<Self> {
        let stem = program.file_stem()?.to_str()?;
        Self::ALL.into_iter().find(|client| client.id() == stem && *client != Self::Sdk)
    }
}

impl fmt::Display for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Client {
    type Err = Error;

    /// Parses an id, or a name such as `claude-code`.
    fn from_str(text: &str) -> Result<Self, Error> {
        let wanted = text.to_ascii_lowercase();
        let names = |client: &Self| {
            let name = client.name().to_ascii_lowercase().replace(' ', "-");
            client.id() == wanted || name == wanted
        };
        Self::ALL.into_iter().find(names).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|client| client.id()).collect();
            Error::new(ErrorKind::InvalidInput, format!("unknown client '{text}'"))
                .hint(format!("use one of {}", known.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_known_by_id_name_and_program() {
        for client in Client::ALL {
            assert_eq!(client.id().parse::<Client>().unwrap(), client);
        }
        assert_eq!("Claude-Code".parse::<Client>().unwrap(), Client::Claude);
        assert_eq!(Client::of_program(Path::new("/opt/bin/codex")), Some(Client::Codex));
        assert_eq!(Client::of_program(Path::new("gemini.cmd")), Some(Client::Gemini));
        assert_eq!(Client::of_program(Path::new("sdk")), None);
        let error = "cursor".parse::<Client>().unwrap_err();
        assert!(error.hint_text().unwrap().contains("codex, gemini"));
    }
}
