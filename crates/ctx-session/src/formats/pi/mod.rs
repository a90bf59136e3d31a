//! pi's session JSONL, v1 to v3; OpenClaw writes it too.

mod read;
mod write;

use std::path::Path;

use ctx_core::Result;
use ctx_dialect::json::Object;
use ctx_dialect::pi;

use super::{Agent, AgentSpec, Beginning, Evidence, Format, FormatSpec, LastUsage, Target};
use crate::read::{Builder, jsonl};
use crate::source::Source;

pub(crate) use write::PiLines;

impl Format {
    /// pi's session JSONL, v1 to v3; OpenClaw and ctx write it too.
    pub const PI: Self = Self(&FormatSpec {
        name: "pi",
        judge_line,
        read: Some(read),
        target: Some(Target::Session { overlay: false }),
        agents: &[Agent::PI, Agent::OPENCLAW],
        note_beginning,
        last_usage,
        ..FormatSpec::NONE
    });
}

impl Agent {
    /// pi.
    pub const PI: Self = Self(&AgentSpec {
        name: "pi",
        folders: |environment| {
            let sessions = environment.below("PI_CODING_AGENT_DIR", ".pi/agent", "sessions");
            vec![sessions, environment.var("PI_CODING_AGENT_SESSION_DIR")]
        },
        layouts: &[&["*", "*.jsonl"]],
        ..AgentSpec::NONE
    });
    /// OpenClaw, in versions that store sessions in files.
    pub const OPENCLAW: Self = Self(&AgentSpec {
        name: "openclaw",
        folders: |environment| {
            let state = environment.var("OPENCLAW_STATE_DIR").map(|state| state.join("agents"));
            let home = || environment.below("OPENCLAW_HOME", "", ".openclaw/agents");
            vec![state.or_else(home)]
        },
        layouts: &[&["*", "sessions", "*.jsonl"]],
        ..AgentSpec::NONE
    });
}

fn judge_line(kind: Option<&str>, line: &Object<'_>, _: bool) -> Option<Evidence> {
    let has = |key: &str| line.has(key);
    let is_weak = match kind {
        None => has("id") && has("parentId"),
        Some("session") => return Some(Evidence::Certain),
        Some(
            "message"
            | "thinking_level_change"
            | "model_change"
            | "compaction"
            | "branch_summary"
            | "custom"
            | "custom_message"
            | "label"
            | "session_info"
            | "context_edit",
        ) if !has("uuid") => true,
        Some(_) => has("parentId") && has("timestamp"),
    };
    is_weak.then_some(Evidence::Weak)
}

fn read(source: Source) -> Result<Builder> {
    jsonl::read(source, read::Reader::default())
}

/// Translates a transcript to a pi session, and reads the result.
pub(super) fn read_translated(
    source: Source,
    translate: impl Fn(&str, Option<&Path>) -> Result<Vec<u8>>,
) -> Result<Builder> {
    let text = source.beginning(usize::MAX)?;
    let text = String::from_utf8_lossy(&text);
    let lines = translate(text.trim_start_matches('\u{FEFF}'), source.path())?;
    read(source.with_bytes(lines))
}

pub(super) fn note_beginning(kind: &str, line: &Object<'_>, known: &mut Beginning) {
    if kind == "session" {
        known.take(line, "id");
        if known.agent == Some(Agent::PI) && line.has("ctx") {
            known.agent = Some(Agent::CTX);
        }
        known.has_message = true;
    }
}

pub(super) fn last_usage(session: &Path) -> Option<LastUsage> {
    LastUsage::in_lines(session, |line| {
        let meta = pi::parse_raw(line.get("message")?).meta;
        LastUsage::of(meta.usage?, meta.model, None)
    })
}
