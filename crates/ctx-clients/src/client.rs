//! The clients.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::str::FromStr;

use ctx_core::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

/// Programs that start the program or the package after them.
const RUNNERS: [&str; 6] = ["node", "bun", "npx", "bunx", "uvx", "pipx"];

/// Their flags that may stand before it.
const RUNNER_FLAGS: [&str; 5] = ["-y", "--yes", "--bun", "--no-warnings", "--"];

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
            Self::Sdk => "a program on an SDK",
        }
    }

    /// Returns the last part of the name of its package in the registry of its language.
    fn package(self) -> &'static str {
        match self {
            Self::Claude => "claude-code",
            Self::Gemini => "gemini-cli",
            Self::Opencode => "opencode-ai",
            Self::Qwen => "qwen-code",
            Self::Pi => "pi-coding-agent",
            Self::Codex | Self::Openclaw | Self::Aider | Self::Sdk => self.id(),
        }
    }

    /// Returns the client that a command starts, and how many words of it come before the arguments
    /// of the client. The client is the program, by its file name, or what an interpreter or a runner
    /// of packages starts: `node .../@openai/codex/bin/codex.js`, `npx @openai/codex`.
    #[must_use]
    pub fn of_command(command: &[OsString]) -> (Self, usize) {
        let stem = |word: &OsString| Path::new(word).file_stem()?.to_str().map(str::to_owned);
        let named = |stem: &str| {
            Self::ALL.into_iter().find(|client| *client != Self::Sdk && client.id() == stem)
        };
        let Some(program) = command.first().and_then(stem) else { return (Self::Sdk, 1) };
        if let Some(client) = named(&program) {
            return (client, 1);
        }
        if RUNNERS.contains(&program.as_str()) {
            // Another flag may have a value of its own.
            let flags = |word: &&OsString| RUNNER_FLAGS.iter().any(|flag| *word == flag);
            let at = command.iter().skip(1).take_while(flags).count();
            if at + 1 < command.len() {
                let word = command[at + 1].to_string_lossy();
                let mut parts = word.split(['/', '\\']).map(|part| {
                    part.split('@').next().filter(|name| !name.is_empty()).unwrap_or(part)
                });
                let of_package =
                    |name| Self::ALL.into_iter().find(|client: &Self| client.package() == name);
                let found = parts.find_map(of_package).or_else(|| named(&stem(&command[at + 1])?));
                if let Some(client) = found.filter(|client| *client != Self::Sdk) {
                    return (client, at + 2);
                }
            }
        }
        (Self::Sdk, 1)
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
            let known = Self::ALL.map(Self::id).join(", ");
            Error::new(ErrorKind::InvalidInput, format!("unknown client '{text}'; known: {known}"))
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
        for (command, client, words) in [
            ("/opt/bin/codex exec", Client::Codex, 1),
            ("gemini.cmd", Client::Gemini, 1),
            ("sdk", Client::Sdk, 1),
            ("node --no-warnings /n/@anthropic-ai/claude-code/cli.js -p hi", Client::Claude, 3),
            ("npx --yes @openai/codex@0.169.0 exec", Client::Codex, 3),
            ("bunx opencode-ai run", Client::Opencode, 2),
            ("uvx aider --model m", Client::Aider, 2),
            ("npx -y -- codex exec", Client::Codex, 4),
            ("npx -p @openai/codex codex exec", Client::Sdk, 1),
            ("node agent.js codex", Client::Sdk, 1),
            ("python codex", Client::Sdk, 1),
            ("node", Client::Sdk, 1),
        ] {
            let parts: Vec<_> = command.split(' ').map(OsString::from).collect();
            assert_eq!(Client::of_command(&parts), (client, words), "{command}");
        }
        let error = "cursor".parse::<Client>().unwrap_err();
        assert!(error.to_string().contains("codex, gemini"));
    }
}
