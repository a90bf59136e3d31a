//! Loading messages on demand.

use ctx_core::text::Slice;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::{
    Block, CallId, Counter, Error, ErrorKind, LoadMessage, Message, MessageOutline, RawJson,
    Result, Role, Timestamp, Tokens, Usage,
};
use ctx_dialect::json::Object;
use ctx_dialect::{anthropic, openai_chat, openai_responses, pi, ponybunny};

use crate::entry::{Detail, TreeEntry};
use crate::source::{Source, SourcePosition};

/// How an entry's text is converted to a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum MessageEncoding {
    /// No message.
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
    /// An Anthropic message in which the agent summarises earlier history.
    AnthropicSummary,
    /// An item of the Responses API.
    Responses,
    /// The payload of Codex's `compacted`.
    CodexCompacted,
    /// An OpenAI chat message.
    OpenAiChat,
    /// A PonyBunny message.
    PonyBunny,
    /// An element of PonyBunny's `compactedHistory`.
    PonyBunnySummary,
}

/// The location of one entry's part of a message.
#[derive(Clone, Debug)]
pub(crate) struct MessagePart {
    place: SourcePosition,
    part: (u32, u32),
    encoding: MessageEncoding,
    timestamp: Option<Timestamp>,
    usage: Option<Box<Usage>>,
}

impl MessagePart {
    pub(crate) fn of(entry: &TreeEntry) -> Self {
        Self {
            place: entry.place,
            part: entry.part,
            encoding: entry.encoding,
            timestamp: entry.timestamp,
            usage: match entry.detail.as_deref() {
                Some(Detail::Usage(usage)) => Some(Box::new(*usage)),
                _ => None,
            },
        }
    }

    pub(crate) fn load(&self, source: &Source) -> Result<Message> {
        self.parse(source, &source.text(self.place)?)
    }

    /// Parses the message in the entry's text.
    pub(crate) fn parse(&self, source: &Source, text: &str) -> Result<Message> {
        let (from, to) = (self.part.0 as usize, self.part.1 as usize);
        let part = text.slice(from..to);
        let mut message = parse_message(self.encoding, part)
            .map_err(|e| e.with("path", source.name()).with("line", self.place.line))?;
        if let Some(usage) = &self.usage {
            message.meta.usage.get_or_insert(**usage);
        }
        if message.meta.timestamp.is_none_or(|t| t.0 == 0) {
            message.meta.timestamp = self.timestamp;
        }
        Ok(message)
    }
}

pub(crate) fn parse_message(encoding: MessageEncoding, text: &str) -> Result<Message> {
    match encoding {
        MessageEncoding::Nothing => {
            Err(Error::new(ErrorKind::InvalidInput, "the entry has no message"))
        }
        MessageEncoding::Pi => pi::parse(text),
        MessageEncoding::PiCustom => {
            let object = Object::parse(text)?;
            let blocks = object.get("content").map(pi::parse_content).unwrap_or_default();
            let mut message = Message::new(Role::Custom, blocks);
            message.meta.custom_type = object.owned("customType");
            message.meta.hidden = object.is_false("display");
            Ok(message)
        }
        MessageEncoding::PiCompaction => pi_summary(Role::CompactionSummary, text),
        MessageEncoding::PiBranch => pi_summary(Role::BranchSummary, text),
        MessageEncoding::Anthropic => anthropic::parse(text),
        MessageEncoding::AnthropicSummary => {
            Ok(Message { role: Role::CompactionSummary, ..anthropic::parse(text)? })
        }
        MessageEncoding::Responses => openai_responses::parse(text),
        MessageEncoding::CodexCompacted => {
            // The payload is an object, or any other value in a damaged line.
            let summary = match Object::parse(text) {
                Ok(object) => object.owned("message").unwrap_or_default(),
                Err(_) => text.to_owned(),
            };
            Ok(Message::text(Role::CompactionSummary, summary))
        }
        MessageEncoding::OpenAiChat => openai_chat::parse(text),
        MessageEncoding::PonyBunny => ponybunny::parse(text),
        MessageEncoding::PonyBunnySummary => {
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

/// A message in a transcript: one part, or several on consecutive lines.
pub(crate) struct StoredMessage {
    source: Arc<Source>,
    first: MessagePart,
    more: Box<[MessagePart]>,
}

impl StoredMessage {
    pub(crate) fn new(source: Arc<Source>, first: MessagePart, more: Vec<MessagePart>) -> Self {
        Self { source, first, more: more.into() }
    }
}

impl LoadMessage for StoredMessage {
    fn measure(&self, counter: &Counter) -> Option<(MessageOutline, Tokens)> {
        let MessagePart { place, part: (from, to), encoding, .. } = self.first;
        if encoding != MessageEncoding::Pi || !self.more.is_empty() {
            return None;
        }
        let text = self.source.text(place).ok()?;
        pi::measure(text.slice(from as usize..to as usize), counter)
    }

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

/// Appends a continuation. A call that was written twice (some agents repeat the last state of an
/// answer) is added once.
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

/// Returns a message whose content was replaced by an edit.
pub(crate) fn with_content(original: &Message, content: Vec<Block>) -> Message {
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

/// Returns the byte range of `part`, a slice of `whole`.
pub(crate) fn byte_range(whole: &str, part: &str) -> (u32, u32) {
    let from = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
    let clamp = |n: usize| u32::try_from(n.min(whole.len())).unwrap_or(u32::MAX);
    (clamp(from), clamp(from.saturating_add(part.len())))
}

/// Returns the role of a pi message, usually without parsing it: pi writes it first.
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
