//! The agents, and where each keeps its sessions.

use std::path::PathBuf;

use serde::Serialize;

use crate::format::Format;

/// An agent whose sessions ctx finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
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
    #[serde(rename = "openclaw")]
    OpenClaw,
    /// Gemini CLI.
    GeminiCli,
    /// opencode: its database, and the files of older versions.
    Opencode,
}

/// Each agent with its name, the format of its sessions, and the names of folders and files below its
/// folder; `*` stands for any text.
const AGENTS: [(Agent, &str, Format, &[&str]); 7] = [
    (Agent::Ctx, "ctx", Format::Ctx, &["*", "sessions", "*.jsonl"]),
    (Agent::ClaudeCode, "claude-code", Format::ClaudeCode, &["*", "*.jsonl"]),
    (Agent::Codex, "codex", Format::Codex, &["*", "*", "*", "rollout-*.jsonl"]),
    (Agent::Pi, "pi", Format::Pi, &["*", "*.jsonl"]),
    (Agent::OpenClaw, "openclaw", Format::Ctx, &["*", "sessions", "*.jsonl"]),
    (Agent::GeminiCli, "gemini-cli", Format::GeminiCli, &["*", "chats", "session-*"]),
    (Agent::Opencode, "opencode", Format::Opencode, &["storage", "session", "*", "ses_*.json"]),
];

impl Agent {
    /// The name on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        AGENTS.iter().find(|row| row.0 == self).map_or("", |row| row.1)
    }

    /// The names of all agents.
    pub fn names() -> impl Iterator<Item = &'static str> {
        AGENTS.iter().map(|row| row.1)
    }

    /// The agent of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<Self> {
        AGENTS.iter().find(|row| row.1 == name).map(|row| row.0)
    }

    pub(super) fn layout(self) -> &'static [&'static str] {
        AGENTS.iter().find(|row| row.0 == self).map_or(&[], |row| row.3)
    }

    /// The agent that writes a format; of several the one that it is named after.
    pub(super) fn of(format: Format) -> Option<Self> {
        AGENTS.iter().find(|row| row.2 == format).map(|row| row.0)
    }
}

/// The folders that the environment names. Without a home they are only those that variables name.
pub(super) fn roots_of_env() -> Vec<(Agent, PathBuf)> {
    let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    let var = |name: &str| {
        let path = PathBuf::from(std::env::var_os(name).filter(|path| !path.is_empty())?);
        let rest = path.strip_prefix("~").ok().zip(home.as_ref());
        Some(rest.map(|(rest, home)| home.join(rest)).unwrap_or(path))
    };
    let or_home = |name: &str, default: &str| {
        var(name).or_else(|| home.as_ref().map(|home| home.join(default)))
    };
    // These two variables name another home.
    let in_home = |name: &str, below: &str| or_home(name, "").map(|home| home.join(below));
    let open_claw = var("OPENCLAW_STATE_DIR").or_else(|| in_home("OPENCLAW_HOME", ".openclaw"));
    let roots = [
        (Agent::ClaudeCode, or_home("CLAUDE_CONFIG_DIR", ".claude"), "projects"),
        (Agent::Codex, or_home("CODEX_HOME", ".codex"), "sessions"),
        (Agent::Pi, or_home("PI_CODING_AGENT_DIR", ".pi/agent"), "sessions"),
        (Agent::OpenClaw, open_claw, "agents"),
        (Agent::GeminiCli, in_home("GEMINI_CLI_HOME", ".gemini"), "tmp"),
        (Agent::Opencode, or_home("XDG_DATA_HOME", ".local/share"), "opencode"),
    ];
    let named =
        |(agent, folder, below): (Agent, Option<PathBuf>, &str)| Some((agent, folder?.join(below)));
    let mut roots: Vec<_> = roots.into_iter().filter_map(named).collect();
    roots.extend(var("PI_CODING_AGENT_SESSION_DIR").map(|folder| (Agent::Pi, folder)));
    roots
}
