//! Messages read when somebody needs them.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::{
    Block, CallId, Error, ErrorKind, LoadMessage, Message, RawJson, Result, Role, Timestamp, Usage,
};
use ctx_dialect::json::{Object, relaxed};
use ctx_dialect::{anthropic, openai_chat, openai_responses, pi, ponybunny};

use crate::entry::{Detail, TreeEntry};
use crate::source::{Source, Span, fingerprint};

/// How an entry's text becomes a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Recipe {
    /// It holds no message.
    #[default]
    Nothing,
    /// pi's `message`.
    Pi,
    /// pi's `custom_message` entry.
    PiCustom,
    /// pi's `compaction` entry.
    PiCompaction,
    /// pi's `branch_summary` entry.
    PiBranch,
    /// An Anthropic message.
    Anthropic,
    /// An Anthropic message in which the agent sums up what was before.
    AnthropicSummary,
    /// An item of the Responses API.
    Responses,
    /// The payload of Codex's `compacted`.
    CodexCompacted,
    /// An OpenAI chat message.
    OpenAiChat,
    /// A message of PonyBunny.
    PonyBunny,
    /// An element of PonyBunny's `compactedHistory`.
    PonyBunnySummary,
}

/// Where one entry's part of a message is.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    span: Span,
    part: (u32, u32),
    fingerprint: u64,
    line: u64,
    mended: bool,
    recipe: Recipe,
    timestamp: Option<Timestamp>,
    usage: Option<Box<Usage>>,
}

impl Part {
    pub(crate) fn of(entry: &TreeEntry) -> Self {
        Self {
            span: entry.span,
            part: entry.part,
            fingerprint: entry.fingerprint,
            line: entry.line,
            mended: entry.mended,
            recipe: entry.recipe,
            timestamp: entry.timestamp,
            usage: match entry.detail.as_deref() {
                Some(Detail::Usage(usage)) => Some(Box::new(*usage)),
                _ => None,
            },
        }
    }

    pub(crate) fn load(&self, source: &Source) -> Result<Message> {
        let stored = (self.span, self.fingerprint, self.line, self.mended);
        self.parse(source, &read_text(source, stored)?)
    }

    /// The message in the entry's text.
    pub(crate) fn parse(&self, source: &Source, text: &str) -> Result<Message> {
        let (from, to) = (self.part.0 as usize, self.part.1 as usize);
        let part = text.get(from..to).unwrap_or_default();
        let mut message = parse(self.recipe, part)
            .map_err(|e| e.with("path", source.name()).with("line", self.line))?;
        if let Some(usage) = &self.usage {
            message.meta.usage.get_or_insert(**usage);
        }
        if message.meta.timestamp.is_none_or(|t| t.0 == 0) {
            message.meta.timestamp = self.timestamp;
        }
        Ok(message)
    }
}

/// The text of an entry, if the file still holds it. Bytes that are not UTF-8 read as U+FFFD.
pub(crate) fn text_of(source: &Source, entry: &TreeEntry) -> Result<String> {
    read_text(source, (entry.span, entry.fingerprint, entry.line, entry.mended))
}

fn read_text(
    source: &Source,
    (span, expected, line, mended): (Span, u64, u64, bool),
) -> Result<String> {
    let bytes = source.read(span)?;
    if bytes.len() != span.len as usize || fingerprint(&bytes) != expected {
        return Err(Error::new(ErrorKind::Corrupt, "the transcript changed while it was in use")
            .with("path", source.name())
            .with("line", line)
            .hint("open it again; ctx follows appended lines, not rewritten ones"));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
    };
    Ok(if mended { relaxed(&text).unwrap_or(text) } else { text })
}

pub(crate) fn parse(recipe: Recipe, text: &str) -> Result<Message> {
    match recipe {
        Recipe::Nothing => Err(Error::new(ErrorKind::InvalidInput, "the entry holds no message")),
        Recipe::Pi => pi::parse(text),
        Recipe::PiCustom => {
            let object = Object::parse(text)?;
            let blocks = object.get("content").map(pi::parse_content).unwrap_or_default();
            let mut message = Message::new(Role::Custom, blocks);
            message.meta.custom_type = object.owned("customType");
            Ok(message)
        }
        Recipe::PiCompaction => pi_summary(Role::CompactionSummary, text),
        Recipe::PiBranch => pi_summary(Role::BranchSummary, text),
        Recipe::Anthropic => anthropic::parse(text),
        Recipe::AnthropicSummary => {
            Ok(Message { role: Role::CompactionSummary, ..anthropic::parse(text)? })
        }
        Recipe::Responses => openai_responses::parse(text),
        Recipe::CodexCompacted => {
            // The payload is an object, or whatever a damaged line has there.
            let summary = match Object::parse(text) {
                Ok(object) => object.owned("message").unwrap_or_default(),
                Err(_) => text.to_owned(),
            };
            Ok(Message::text(Role::CompactionSummary, summary))
        }
        Recipe::OpenAiChat => openai_chat::parse(text),
        Recipe::PonyBunny => ponybunny::parse(text),
        Recipe::PonyBunnySummary => {
            Ok(Message { role: Role::CompactionSummary, ..ponybunny::parse(text)? })
        }
    }
}

fn pi_summary(role: Role, text: &str) -> Result<Message> {
    let object = Object::parse(text)?;
    let mut message = Message::text(role, object.text("summary").unwrap_or_default());
    message.meta.tokens_before = object.count("tokensBefore");
    message.meta.details = object.get("details").map(RawJson::from);
    Ok(message)
}

/// A message in a transcript: one part, or several that were written line by line.
pub(crate) struct Stored {
    source: Arc<Source>,
    first: Part,
    more: Box<[Part]>,
}

impl Stored {
    pub(crate) fn new(source: Arc<Source>, first: Part, more: Vec<Part>) -> Self {
        Self { source, first, more: more.into() }
    }
}

impl LoadMessage for Stored {
    fn load(&self) -> Result<Message> {
        let mut message = self.first.load(&self.source)?;
        if self.more.is_empty() {
            return Ok(message);
        }
        let mut calls: HashSet<CallId> = message.tool_calls().map(|c| c.id.clone()).collect();
        for part in &*self.more {
            append(&mut message, part.load(&self.source)?, &mut calls);
        }
        Ok(message)
    }
}

/// Adds a continuation. A call that was written twice (some agents repeat the last state of an
/// answer) is taken once.
fn append(message: &mut Message, more: Message, calls: &mut HashSet<CallId>) {
    message.blocks.extend(more.blocks.into_iter().filter(|block| match block {
        Block::ToolCall(call) => calls.insert(call.id.clone()),
        _ => true,
    }));
    let meta = &mut message.meta;
    meta.usage = more.meta.usage.or(meta.usage);
    meta.stop_reason = more.meta.stop_reason.or(meta.stop_reason.take());
    meta.model = meta.model.take().or(more.meta.model);
}

/// A message whose content an edit replaced.
pub(crate) fn replaced(original: &Message, content: Vec<Block>) -> Message {
    let mut message = original.clone();
    message.blocks = match original.blocks.first() {
        Some(Block::ToolResult(result)) if original.role == Role::ToolResult => {
            let mut result = result.clone();
            result.content = content;
            vec![Block::ToolResult(result)]
        }
        _ => content,
    };
    message
}

/// Where `part` stands in `whole`, of which it is a slice.
pub(crate) fn place_in(whole: &str, part: &str) -> (u32, u32) {
    let from = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    let clamp = |n: usize| u32::try_from(n.min(whole.len())).unwrap_or(u32::MAX);
    (clamp(from), clamp(from.saturating_add(part.len())))
}

/// The role of a pi message, mostly without parsing it: pi writes it first.
pub(crate) fn peek_role(message: &str) -> Role {
    let quick = message
        .strip_prefix("{\"role\":\"")
        .and_then(|rest| rest.split_once('"'))
        .map(|(role, _)| role)
        .filter(|role| role.bytes().all(|b| b.is_ascii_alphabetic()));
    let role = match quick {
        Some(role) => Cow::Borrowed(role),
        None => Object::parse(message).ok().and_then(|o| o.text("role")).unwrap_or_default(),
    };
    Role::from_name(if role.is_empty() { "unknown" } else { &role })
}
