//! What the beginning and the end of a transcript say of its session.

use std::borrow::Cow;
use std::path::PathBuf;

use ctx_core::{Error, Result, Usage};
use ctx_dialect::json::Object;
use ctx_dialect::{anthropic, pi};

use super::walk::File;
use super::{Agent, Found, FoundSession};
use crate::detect;
use crate::format::Format;
use crate::read::{SYNTHETIC, token_usage, window};
use crate::source::{Source, Span};

/// How much of the beginning is read: what mostly suffices, and what must.
const HEADS: [usize; 2] = [16 << 10, 1 << 20];

/// How much of the end is read: what mostly suffices, and what must.
const TAILS: [u64; 2] = [64 << 10, 2 << 20];

/// What a provider reported of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LastUsage {
    /// Tokens of the prompt: fresh, read from the cache, written to it.
    pub prompt_tokens: u64,
    /// The model.
    pub model: Option<String>,
    /// The model's window, where the agent wrote it down.
    pub window: Option<u32>,
}

/// The sessions among these files, in their order.
pub(super) fn sessions(files: Vec<File>, mut problems: Vec<Error>) -> Found {
    let mut sessions = Vec::with_capacity(files.len());
    for file in files {
        match session(&file) {
            Ok(found) => sessions.extend(found),
            Err(error) => problems.push(error),
        }
    }
    Found { sessions, problems }
}

/// The session in a file; none where it is none of an agent.
pub(super) fn session(file: &File) -> Result<Option<FoundSession>> {
    let source = Source::open(&file.path)?;
    let mut head = Head::default();
    for look in HEADS {
        let bytes = source.beginning(look)?;
        head = Head::of(&bytes, file.agent);
        if head.is_whole() || bytes.len() < look {
            // Titles and snapshots alone are no conversation.
            head.agent = head.agent.filter(|_| head.has_message);
            break;
        }
    }
    let Some(agent) = head.agent.filter(|_| !head.is_subagent) else { return Ok(None) };
    let stem = || file.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Ok(Some(FoundSession {
        agent,
        session_id: head.id.filter(|id| !id.is_empty()).unwrap_or_else(stem),
        project: head.cwd.map(PathBuf::from),
        path: file.path.clone(),
        modified: file.modified,
        bytes: file.bytes,
    }))
}

/// What the beginning says.
#[derive(Default)]
struct Head {
    agent: Option<Agent>,
    id: Option<String>,
    cwd: Option<String>,
    has_message: bool,
    is_subagent: bool,
}

impl Head {
    fn of(bytes: &[u8], agent: Option<Agent>) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let Some(format) = detect::lines(bytes) else { return Self::default() };
        // ctx and OpenClaw write pi's format: the place says which of them it was.
        let agent = agent.filter(|_| format == Format::Pi).or_else(|| Agent::of(format));
        let mut head = Self { agent, ..Self::default() };
        for line in text.lines() {
            // The last line may be cut: its first fields are read.
            head.line(&Object::parse_prefix(line).0);
            if head.is_whole() {
                break;
            }
        }
        head
    }

    fn is_whole(&self) -> bool {
        let has_folder = self.cwd.is_some() || self.agent != Some(Agent::ClaudeCode);
        self.is_subagent || (self.id.is_some() && has_folder && self.has_message)
    }

    fn line(&mut self, object: &Object<'_>) {
        let kind = object.text("type").unwrap_or_default();
        match self.agent {
            Some(Agent::ClaudeCode) => {
                self.take(object, "sessionId");
                if kind == "user" || kind == "assistant" {
                    self.is_subagent = !self.has_message && object.is_true("isSidechain");
                    self.has_message = true;
                }
            }
            Some(Agent::Codex) => {
                let meta = object.object("payload").filter(|_| kind == "session_meta");
                let is_meta = meta.is_some() || (kind.is_empty() && object.has("id"));
                if is_meta {
                    let meta = meta.as_ref().unwrap_or(object);
                    self.take(meta, "id");
                    self.is_subagent = meta.object("source").is_some_and(|s| s.has("subagent"));
                    self.has_message = true;
                }
            }
            _ if kind == "session" => {
                self.take(object, "id");
                if self.agent == Some(Agent::Pi) && object.has("ctx") {
                    self.agent = Some(Agent::Ctx);
                }
                self.has_message = true;
            }
            _ => {}
        }
    }

    fn take(&mut self, object: &Object<'_>, id: &str) {
        self.id = self.id.take().or_else(|| object.id(id).map(Cow::into_owned));
        self.cwd = self.cwd.take().or_else(|| object.owned("cwd"));
    }
}

/// What the provider reported last, as far as the end of the file says.
pub(super) fn last_usage(session: &FoundSession) -> Option<LastUsage> {
    let source = Source::open(&session.path).ok()?;
    let size = source.len().ok()?;
    for look in TAILS {
        let offset = size.saturating_sub(look);
        let span = Span { offset, len: u32::try_from(size - offset).ok()? };
        let bytes = source.read(span).ok()?;
        let mut lines: Vec<&[u8]> = bytes.split(|&byte| byte == b'\n').collect();
        if offset > 0 && !lines.is_empty() {
            // It begins before what was read.
            lines.remove(0);
        }
        let found = lines.iter().rev().find_map(|line| usage_of(session.agent, line));
        if found.is_some() || offset == 0 {
            return found;
        }
    }
    None
}

/// What a line reports of a request. A report of nothing is none.
fn usage_of(agent: Agent, line: &[u8]) -> Option<LastUsage> {
    // Most lines are results of tools: they are not parsed.
    memchr::memmem::find(line, b"usage")?;
    let text = std::str::from_utf8(line).ok()?;
    let object = Object::parse(text).ok()?;
    let mut window_of = None;
    let (usage, model): (Usage, Option<String>) = match agent {
        Agent::ClaudeCode => {
            let message = object.get("message").filter(|_| !object.is_true("isSidechain"))?;
            let meta = anthropic::parse_raw(message).meta;
            let model = meta.model.filter(|model| model != SYNTHETIC)?;
            (meta.usage?, Some(model))
        }
        Agent::Codex => {
            let info = object.object("payload")?.object("info")?;
            window_of = window(&info);
            (token_usage(&info.object("last_token_usage")?), None)
        }
        Agent::Ctx | Agent::Pi | Agent::OpenClaw => {
            let meta = pi::parse_raw(object.get("message")?).meta;
            (meta.usage?, meta.model)
        }
    };
    let prompt_tokens = Some(usage.prompt()).filter(|tokens| *tokens > 0)?;
    Some(LastUsage { prompt_tokens, model, window: window_of })
}
