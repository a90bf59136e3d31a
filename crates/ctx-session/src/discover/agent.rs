//! The agents, and where each keeps its sessions.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use ctx_core::{Error, ErrorKind};
use serde::Serialize;

use crate::format::Format;

/// An agent whose sessions ctx finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Agent {
    /// ctx itself.
    Ctx,
    /// Claude Code.
    ClaudeCode,
    /// Codex.
    Codex,
    /// pi.
    Pi,
    /// OpenClaw, as long as it keeps sessions in files.
    OpenClaw,
}

impl Agent {
    /// All agents.
    pub const ALL: [Self; 5] = [Self::Ctx, Self::ClaudeCode, Self::Codex, Self::Pi, Self::OpenClaw];

    /// The name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ctx => "ctx",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Pi => "pi",
            Self::OpenClaw => "openclaw",
        }
    }

    /// The names of folders and files below the agent's folder; `*` stands for any text.
    pub(super) fn layout(self) -> &'static [&'static str] {
        match self {
            Self::ClaudeCode | Self::Pi => &["*", "*.jsonl"],
            Self::Codex => &["*", "*", "*", "rollout-*.jsonl"],
            Self::Ctx | Self::OpenClaw => &["*", "sessions", "*.jsonl"],
        }
    }

    /// Whose sessions have that format, where only one agent writes it.
    pub(super) fn of(format: Format) -> Option<Self> {
        match format {
            Format::Ctx => Some(Self::Ctx),
            Format::ClaudeCode => Some(Self::ClaudeCode),
            Format::Codex => Some(Self::Codex),
            Format::Pi => Some(Self::Pi),
            _ => None,
        }
    }
}

impl fmt::Display for Agent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl Serialize for Agent {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Agent {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL.into_iter().find(|agent| agent.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|agent| agent.name()).collect();
            Error::new(ErrorKind::InvalidInput, format!("unknown agent '{name}'"))
                .hint(format!("known agents: {}", known.join(", ")))
        })
    }
}

/// The folders that the environment names. One without a home has only those that variables name.
pub(super) fn roots_of_env() -> Vec<(Agent, PathBuf)> {
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let home_or = |name: &str| var(name, home.as_ref()).or_else(|| home.clone());
    let or_home = |name: &str, default: &str| {
        var(name, home.as_ref()).or_else(|| home.as_ref().map(|home| home.join(default)))
    };
    let open_claw = var("OPENCLAW_STATE_DIR", home.as_ref())
        .or_else(|| home_or("OPENCLAW_HOME").map(|home| home.join(".openclaw")));
    let roots = [
        (Agent::ClaudeCode, or_home("CLAUDE_CONFIG_DIR", ".claude"), "projects"),
        (Agent::Codex, or_home("CODEX_HOME", ".codex"), "sessions"),
        (Agent::Pi, or_home("PI_CODING_AGENT_DIR", ".pi/agent"), "sessions"),
        (Agent::OpenClaw, open_claw, "agents"),
    ];
    let mut roots: Vec<_> = roots
        .into_iter()
        .filter_map(|(agent, folder, below)| Some((agent, folder?.join(below))))
        .collect();
    if let Some(folder) = var("PI_CODING_AGENT_SESSION_DIR", home.as_ref()) {
        roots.push((Agent::Pi, folder));
    }
    roots
}

/// A folder that a variable names; `~` is the user's own.
fn var(name: &str, home: Option<&PathBuf>) -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os(name).filter(|path| !path.is_empty())?);
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) => Some(home.join(rest)),
        _ => Some(path),
    }
}
