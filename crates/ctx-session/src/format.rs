//! The transcript formats.

use std::fmt;
use std::str::FromStr;

use ctx_core::{Error, ErrorKind};
use serde::Serialize;

/// A transcript format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Format {
    /// A session of ctx, to which it may append: pi's version 3 with a mark in the header. A target
    /// of conversions; read, such a session is [`Format::Pi`] (see
    /// [`Transcript::is_ours`](crate::Transcript::is_ours)).
    Ctx,
    /// pi's session JSONL, v1 to v3; OpenClaw's and ctx's own.
    Pi,
    /// PonyBunny's JSON5 (`messages`, `compactedHistory`).
    PonyBunny,
    /// Claude Code's session JSONL.
    ClaudeCode,
    /// Codex's rollout JSONL.
    Codex,
    /// Gemini CLI's chat file: records a line, or one document.
    GeminiCli,
    /// What `opencode export` writes.
    Opencode,
    /// OpenAI chat messages: an array, a request body, or one message a line.
    OpenAiChat,
    /// Anthropic messages: an array or a request body.
    Anthropic,
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 9] = [
        Self::Ctx,
        Self::Pi,
        Self::PonyBunny,
        Self::ClaudeCode,
        Self::Codex,
        Self::GeminiCli,
        Self::Opencode,
        Self::OpenAiChat,
        Self::Anthropic,
    ];

    /// Whether it is pi's session format, marked as ctx's or not.
    pub(crate) fn is_pi(self) -> bool {
        matches!(self, Self::Ctx | Self::Pi)
    }

    /// The name on the command line and in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ctx => "ctx",
            Self::Pi => "pi",
            Self::PonyBunny => "ponybunny",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::GeminiCli => "gemini-cli",
            Self::Opencode => "opencode",
            Self::OpenAiChat => "openai",
            Self::Anthropic => "anthropic",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Format {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|f| f.name() == s).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|f| f.name()).collect();
            Error::new(
                ErrorKind::InvalidInput,
                format!("unknown format '{s}' (known: {})", known.join(", ")),
            )
            .hint("name one of the known formats")
        })
    }
}
