//! Transcripts that are one JSON or JSON5 value with messages, or that have one message per line.

use ctx_core::text::Slice;
use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result, Role};
use ctx_dialect::anthropic;
use ctx_dialect::json::{Object, elements_prefix, relaxed};
use serde_json::value::RawValue;

use super::jsonl::{self, LineFormat, Record};
use super::recovery::{LISTS, recover_document};
use super::timestamp;
use crate::entry::{EntryKind, MessageEncoding, byte_range};
use crate::read::{Builder, Draft, ProblemKind};
use crate::source::{Source, SourcePosition, Span};

/// A document's text as strict JSON, or its intact parts.
pub(crate) struct StrictJson {
    /// The document, followed by the unreadable parts.
    pub(crate) json: Vec<u8>,
    /// The length of the document.
    pub(crate) len: usize,
    /// The positions of the unreadable parts in `json`.
    pub(crate) lost: Vec<Span>,
    pub(crate) was_json5: bool,
    pub(crate) notes: Vec<(u64, ProblemKind, String)>,
}

/// Reads a document and converts it to strict JSON.
pub(crate) fn into_json(source: &Source) -> Result<StrictJson> {
    let mut notes = Vec::new();
    let mut note = |kind, text: &str| notes.push((0, kind, text.to_owned()));
    let mut bytes = source.beginning(usize::MAX)?;
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        bytes.drain(..3);
        note(ProblemKind::ByteOrderMark, "a byte order mark: skipped");
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => {
            note(ProblemKind::InvalidUtf8, "invalid UTF-8: read as U+FFFD");
            String::from_utf8_lossy(e.as_bytes()).into_owned()
        }
    };
    let whole = |json: String, was_json5, notes| {
        let len = json.len();
        StrictJson { json: json.into_bytes(), len, lost: Vec::new(), was_json5, notes }
    };
    if serde_json::from_str::<&RawValue>(&text).is_ok() {
        return Ok(whole(text, false, notes));
    }
    if let Some(json) = relaxed(&text) {
        // JSON with an invalid number or a superfluous comma is not yet JSON5.
        let was_json5 = !has_quoted_keys(&text);
        if !was_json5 {
            let text = "values or commas that are not valid JSON: values read as null";
            notes.push((0, ProblemKind::MendedValue, text.to_owned()));
        }
        return Ok(whole(json, was_json5, notes));
    }
    let recovered = recover_document(&text);
    let mut strict = whole(recovered.json, recovered.was_json5 && !has_quoted_keys(&text), notes);
    let (mut line, mut counted) = (1, 0);
    for (from, to) in recovered.lost {
        let piece = text.slice(from..to);
        line += memchr::memchr_iter(b'\n', text.slice(counted..from).as_bytes()).count() as u64;
        counted = from;
        let (kind, what) = match to == text.len() {
            true => (ProblemKind::TornDocument, "the document is damaged up to its end"),
            false => (ProblemKind::DamagedDocument, "the document is damaged"),
        };
        strict.notes.push((line, kind, format!("{what}: {} bytes skipped", piece.len())));
        let offset = strict.json.len() as u64;
        if let Ok(len) = u32::try_from(piece.len()) {
            strict.lost.push(Span { offset, len });
            strict.json.extend_from_slice(piece.as_bytes());
        }
    }
    Ok(strict)
}

/// Whether the first key of the text is quoted as JSON requires.
fn has_quoted_keys(text: &str) -> bool {
    let key = text.find('{').and_then(|at| text.get(at + 1..));
    key.is_some_and(|key| key.trim_start().starts_with('"'))
}

/// A document, parsed one level deep.
pub(crate) struct Document<'a> {
    text: &'a str,
    pub(crate) body: Object<'a>,
    messages: Vec<&'a RawValue>,
    /// The messages that are objects.
    pub(crate) objects: Vec<Object<'a>>,
    summaries: Vec<&'a RawValue>,
    pub(crate) was_json5: bool,
}

impl<'a> Document<'a> {
    pub(crate) fn parse(text: &'a str, was_json5: bool, name: &str) -> Result<Self> {
        let start = text.trim_start();
        let (body, messages) = if start.starts_with('[') {
            (Object::default(), flattened(elements_prefix(start).0))
        } else {
            let body = Object::parse_prefix(start).0;
            let messages = body.array("messages").unwrap_or_default();
            (body, messages)
        };
        let summaries = body.array("compactedHistory").unwrap_or_default();
        let objects: Vec<_> = messages.iter().filter_map(|raw| Object::of(raw)).collect();
        let any_role = objects.iter().any(|o| o.has("role"));
        let known =
            body.has("compactedHistory") || body.array("messages").is_some_and(|m| m.is_empty());
        if !any_role && !known {
            return Err(Error::new(ErrorKind::UnknownFormat, "unknown transcript format (JSON)")
                .with("path", name)
                .hint("expected a list of messages with `role`, or an object with `messages`"));
        }
        Ok(Self { text, body, messages, objects, summaries, was_json5 })
    }

    /// Reads the entries: summaries of older history first, then the messages.
    pub(crate) fn read(
        &self,
        source: &Arc<Source>,
        provider: &str,
        encoding: MessageEncoding,
    ) -> Result<Builder> {
        let mut out = Builder::new(source);
        out.header.id = self.body.id("sessionId").or_else(|| self.body.id("id")).map(Into::into);
        if let Some(model) = self.body.owned("model") {
            out.model = Some((provider.to_owned(), model));
        }
        out.system = self.body.get("system").map(anthropic::system_text).filter(|t| !t.is_empty());
        out.tools = self.body.get("tools").map(|raw| raw.get().to_owned());
        let fields = self.body.iter().filter(|(key, _)| !LISTS.contains(key));
        out.body = fields.map(|(key, raw)| (key.to_owned(), raw.into())).collect();
        for raw in &self.summaries {
            self.push(&mut out, raw, MessageEncoding::PonyBunnySummary)?;
        }
        for raw in &self.messages {
            self.push(&mut out, raw, encoding)?;
        }
        Ok(out)
    }

    fn push(&self, out: &mut Builder, raw: &RawValue, encoding: MessageEncoding) -> Result<()> {
        let text = raw.get();
        let offset = u64::from(byte_range(self.text, text).0);
        // The line number is only for the user. A document is often one line: counts messages.
        let line = out.entries.len() as u64 + 1;
        let place = SourcePosition::of(text.as_bytes(), offset, line).unwrap_or_default();
        push_message(out, text, place, encoding)
    }
}

/// Returns the messages of a list. Collections of chats nest them in lists, or under `turns`.
fn flattened(list: Vec<&RawValue>) -> Vec<&RawValue> {
    const DEPTH: usize = 3;
    let mut messages = list;
    for _ in 0..DEPTH {
        let nested = |raw: &&RawValue| inner(raw).is_some();
        if !messages.iter().any(nested) {
            break;
        }
        let open = |raw| inner(raw).unwrap_or_else(|| vec![raw]);
        messages = messages.into_iter().flat_map(open).collect();
    }
    messages
}

/// Returns the list that is nested at the position of a message, if there is one.
fn inner(raw: &RawValue) -> Option<Vec<&RawValue>> {
    if raw.get().starts_with('[') {
        return Some(elements_prefix(raw.get()).0);
    }
    let object = Object::of(raw).filter(|object| !object.has("role"))?;
    object.array("turns").or_else(|| object.array("messages"))
}

fn push_message(
    out: &mut Builder,
    text: &str,
    place: SourcePosition,
    encoding: MessageEncoding,
) -> Result<()> {
    let Ok(object) = Object::parse(text) else {
        // A value between the messages that is not a message: kept, but never sent.
        out.push(Draft::new(EntryKind::Other("value".into())), place, text)?;
        return Ok(());
    };
    let mut draft = Draft::new(EntryKind::Message);
    let role = object.text("role").unwrap_or("unknown".into());
    let role = Role::from_name(&role);
    draft.entry.timestamp = timestamp(&object);
    draft.entry.part = byte_range(text, text);
    draft.entry.encoding = encoding;
    let at_beginning = out.entries.iter().all(|e| {
        e.kind == EntryKind::SystemPrompt || e.encoding == MessageEncoding::PonyBunnySummary
    });
    if encoding == MessageEncoding::PonyBunnySummary {
        draft.entry.role = Some(Role::CompactionSummary);
    } else {
        if role == Role::System && at_beginning {
            draft.entry.kind = EntryKind::SystemPrompt;
            let content = object.get("content").map(anthropic::system_text).unwrap_or_default();
            match &mut out.system {
                Some(system) => {
                    system.push_str("\n\n");
                    system.push_str(&content);
                }
                None => out.system = Some(content),
            }
        }
        draft.entry.role = Some(role);
    }
    out.push(draft, place, text)?;
    Ok(())
}

/// Reads chat messages, one per line.
pub(crate) fn read_messages(source: Source, encoding: MessageEncoding) -> Result<Builder> {
    jsonl::read(source, MessageLines(encoding))
}

struct MessageLines(MessageEncoding);

impl LineFormat for MessageLines {
    fn object(&mut self, out: &mut Builder, record: Record<'_>) -> Result<()> {
        push_message(out, record.text, record.place, self.0)
    }
}
