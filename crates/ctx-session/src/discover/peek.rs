//! What the beginning and the end of a transcript say of its session.

use std::borrow::Cow;
use std::path::PathBuf;

use ctx_core::{Result, Usage};
use ctx_dialect::json::Object;
use ctx_dialect::{anthropic, pi};

use super::{Agent, FoundSession};
use crate::detect;
use crate::format::Format;
use crate::opencode_db;
use crate::read::{
    SYNTHETIC, codex_usage, codex_window, gemini_project, gemini_usage, opencode_usage,
    opencode_usage_in,
};
use crate::source::{Source, Span};

/// How much of the beginning is read: what mostly suffices, and what must.
const BEGINNINGS: [usize; 2] = [16 << 10, 1 << 20];

/// How much of the end is read: what mostly suffices, and what must.
const ENDS: [u64; 2] = [64 << 10, 2 << 20];

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

/// Fills in what the beginning says; whether the file is a session of an agent.
pub(super) fn complete(session: &mut FoundSession) -> Result<bool> {
    let source = Source::open(&session.path)?;
    for look in BEGINNINGS {
        let bytes = source.beginning(look)?;
        let known = Beginning::of(&bytes, session.agent);
        if known.is_whole() || bytes.len() < look || look == BEGINNINGS[1] {
            // Titles and snapshots alone are no conversation.
            let talks = known.has_message || bytes.len() == look;
            let Some(agent) = known.agent.filter(|_| talks && !known.is_subagent) else { break };
            session.agent = agent;
            session.session_id = match known.id.filter(|id| !id.is_empty()) {
                Some(id) => id,
                None => session.stem().to_owned(),
            };
            session.project = match agent {
                Agent::GeminiCli => gemini_project(&session.path),
                _ => known.cwd.map(PathBuf::from),
            };
            return Ok(true);
        }
    }
    Ok(false)
}

/// What the beginning of a transcript says.
#[derive(Default)]
struct Beginning {
    agent: Option<Agent>,
    id: Option<String>,
    cwd: Option<String>,
    has_message: bool,
    is_subagent: bool,
}

impl Beginning {
    fn of(bytes: &[u8], agent: Agent) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut known = Self {
            // ctx and OpenClaw write pi's format: the place says which of them it was.
            agent: match detect::lines(bytes) {
                Some(Format::Pi) => Some(agent),
                format => format.and_then(Agent::of),
            },
            ..Self::default()
        };
        let mut text = &*text;
        while known.agent.is_some() && !text.is_empty() && !known.is_whole() {
            // The last line may be cut, and a document is one value on many: the first fields are read.
            known.line(&Object::parse_prefix(text).0);
            text = text.split_once('\n').map_or("", |(_, rest)| rest);
        }
        known
    }

    fn is_whole(&self) -> bool {
        let has_folder = self.cwd.is_some() || self.agent != Some(Agent::ClaudeCode);
        self.is_subagent || (self.id.is_some() && has_folder && self.has_message)
    }

    fn line(&mut self, object: &Object<'_>) {
        let kind = object.text("type").unwrap_or_default();
        let meta = object.object("payload").filter(|_| kind == "session_meta");
        match self.agent {
            Some(Agent::ClaudeCode) => {
                self.take(object, "sessionId");
                if kind == "user" || kind == "assistant" {
                    self.is_subagent = !self.has_message && object.is_true("isSidechain");
                    self.has_message = true;
                }
            }
            Some(Agent::Codex) => {
                self.take(meta.as_ref().unwrap_or(object), "id");
                let source = meta.and_then(|meta| meta.object("source"));
                self.is_subagent = source.is_some_and(|source| source.has("subagent"));
                self.has_message = self.id.is_some();
            }
            Some(Agent::GeminiCli) => {
                self.take(object, "sessionId");
                self.is_subagent |= object.text("kind").is_some_and(|kind| kind == "subagent");
                self.has_message = true;
            }
            Some(Agent::Opencode) => {
                let info = object.object("info");
                let info = info.as_ref().unwrap_or(object);
                self.take(info, "id");
                self.cwd = info.owned("directory");
                self.is_subagent = info.get("parentID").is_some();
                self.has_message = true;
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
    if session.agent == Agent::Opencode {
        let (usage, model) = match opencode_db::parts(&session.path) {
            Some((database, id)) => opencode_db::newest(database, id, opencode_usage_in).ok()??,
            None => opencode_usage(&session.path)?,
        };
        return reported(usage, model, None);
    }
    let source = Source::open(&session.path).ok()?;
    let size = source.len().ok()?;
    for look in ENDS {
        let offset = size.saturating_sub(look);
        let bytes = source.read(Span { offset, len: u32::try_from(size - offset).ok()? }).ok()?;
        // The first line begins before what was read.
        let cut = bytes.iter().position(|byte| *byte == b'\n').filter(|_| offset > 0);
        let whole = bytes.get(cut.map_or(0, |at| at + 1)..).unwrap_or_default();
        let mut lines = whole.rsplit(|byte| *byte == b'\n');
        let found = match session.agent {
            // Older ones are one document on many lines.
            Agent::GeminiCli => usage_of(session.agent, whole),
            agent => lines.find_map(|line| usage_of(agent, line)),
        };
        if found.is_some() || offset == 0 {
            return found;
        }
    }
    None
}

/// What a line reports of a request. A report of nothing is none, and so is that of half a line.
fn usage_of(agent: Agent, line: &[u8]) -> Option<LastUsage> {
    // Most lines are results of tools: they are not parsed.
    let word: &[u8] = if agent == Agent::GeminiCli { b"\"tokens\":" } else { b"usage" };
    memchr::memmem::find(line, word)?;
    let text = std::str::from_utf8(line).ok()?;
    let object = Object::parse_prefix(text).0;
    match agent {
        Agent::GeminiCli => {
            let (usage, model) = gemini_usage(text)?;
            reported(usage, model, None)
        }
        Agent::ClaudeCode => {
            let message = object.get("message").filter(|_| !object.is_true("isSidechain"))?;
            let meta = anthropic::parse_raw(message).meta;
            reported(meta.usage?, meta.model.filter(|model| model != SYNTHETIC).map(Some)?, None)
        }
        Agent::Codex => {
            let info = object.object("payload")?.object("info")?;
            let usage = codex_usage(&info.object("last_token_usage")?);
            reported(usage, None, codex_window(&info))
        }
        _ => {
            let meta = pi::parse_raw(object.get("message")?).meta;
            reported(meta.usage?, meta.model, None)
        }
    }
}

fn reported(usage: Usage, model: Option<String>, window: Option<u32>) -> Option<LastUsage> {
    let prompt_tokens = Some(usage.prompt()).filter(|tokens| *tokens > 0)?;
    Some(LastUsage { prompt_tokens, model, window })
}
