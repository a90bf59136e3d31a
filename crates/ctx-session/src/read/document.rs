//! Transcripts that are one JSON or JSON5 value: PonyBunny, OpenAI chat, Anthropic; and chat
//! messages one a line.

use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result, Role};
use ctx_dialect::anthropic;
use ctx_dialect::json::{Object, elements_prefix, relaxed};
use serde_json::value::RawValue;

use super::around::read_around;
use super::jsonl::{LineFormat, Record};
use super::timestamp;
use crate::builder::{Builder, Draft, Parent, Place};
use crate::detect::message_format;
use crate::entry::EntryKind;
use crate::format::Format;
use crate::load::{Recipe, place_in};
use crate::problem::ProblemKind;
use crate::source::{Source, Span, fingerprint};

/// The fields of a document that hold its entries.
const LISTS: [&str; 2] = ["messages", "compactedHistory"];

/// A document's text as strict JSON, or what of it is whole.
pub(crate) struct Strict {
    /// The document, and behind it what could not be read.
    pub(crate) json: Vec<u8>,
    /// How long the document is.
    pub(crate) len: usize,
    /// Where in `json` the unreadable pieces are.
    pub(crate) lost: Vec<Span>,
    /// PonyBunny is the only known agent that writes JSON5.
    pub(crate) was_json5: bool,
    pub(crate) notes: Vec<(u64, ProblemKind, String)>,
}

/// Reads a document and makes it strict JSON.
pub(crate) fn into_json(source: &Source) -> Result<Strict> {
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
            note(ProblemKind::InvalidUtf8, "bytes that are not UTF-8: read as U+FFFD");
            String::from_utf8_lossy(e.as_bytes()).into_owned()
        }
    };
    let whole = |json: String, was_json5, notes| {
        let len = json.len();
        Strict { json: json.into_bytes(), len, lost: Vec::new(), was_json5, notes }
    };
    if serde_json::from_str::<&RawValue>(&text).is_ok() {
        return Ok(whole(text, false, notes));
    }
    if let Some(json) = relaxed(&text) {
        // JSON with a number that is none, or with a comma too many, is not yet JSON5.
        let was_json5 = !has_quoted_keys(&text);
        if !was_json5 {
            let text = "values or commas that JSON does not know: values read as null";
            notes.push((0, ProblemKind::MendedValue, text.to_owned()));
        }
        return Ok(whole(json, was_json5, notes));
    }
    let around = read_around(&text);
    let mut strict = whole(around.json, around.was_json5 && !has_quoted_keys(&text), notes);
    let (mut line, mut counted) = (1, 0);
    for (from, to) in around.lost {
        let piece = text.get(from..to).unwrap_or_default();
        line += memchr::memchr_iter(b'\n', text.get(counted..from).unwrap_or_default().as_bytes())
            .count() as u64;
        counted = from;
        let (kind, what) = match to == text.len() {
            true => (ProblemKind::TornDocument, "the document is damaged to its end"),
            false => (ProblemKind::DamagedDocument, "the document is damaged"),
        };
        strict.notes.push((line, kind, format!("{what}: {} bytes left out", piece.len())));
        let offset = strict.json.len() as u64;
        if let Ok(len) = u32::try_from(piece.len()) {
            strict.lost.push(Span { offset, len });
            strict.json.extend_from_slice(piece.as_bytes());
        }
    }
    Ok(strict)
}

/// Whether the first key of the text is written as JSON wants it.
fn has_quoted_keys(text: &str) -> bool {
    let key = text.find('{').and_then(|at| text.get(at + 1..));
    key.is_some_and(|key| key.trim_start().starts_with('"'))
}

/// A document, taken apart one level.
pub(crate) struct Document<'a> {
    text: &'a str,
    body: Object<'a>,
    messages: Vec<&'a RawValue>,
    summaries: Vec<&'a RawValue>,
    pub(crate) format: Format,
}

impl<'a> Document<'a> {
    pub(crate) fn parse(text: &'a str, name: &str) -> Result<Self> {
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
            return Err(Error::new(ErrorKind::UnknownFormat, "JSON of no known transcript format")
                .with("path", name)
                .hint(
                    "a list of messages with `role` was expected, or an object with `messages`",
                ));
        }
        let format = document_format(&body, &objects);
        Ok(Self { text, body, messages, summaries, format })
    }

    /// The entries: summaries of older history first, then the messages.
    pub(crate) fn read(&self, source: &Arc<Source>) -> Result<Builder> {
        let mut out = Builder::new(source);
        out.header.id = self.body.id("sessionId").or_else(|| self.body.id("id")).map(Into::into);
        if let Some(model) = self.body.owned("model") {
            let provider = match self.format {
                Format::Anthropic => "anthropic",
                _ => "openai",
            };
            out.model = Some((provider.to_owned(), model));
        }
        out.system = self.body.get("system").map(anthropic::system_text).filter(|t| !t.is_empty());
        out.tools = self.body.get("tools").map(|raw| raw.get().to_owned());
        let fields = self.body.iter().filter(|(key, _)| !LISTS.contains(key));
        out.body = fields.map(|(key, raw)| (key.to_owned(), raw.into())).collect();
        for raw in &self.summaries {
            self.push(&mut out, raw, Recipe::PonyBunnySummary)?;
        }
        let recipe = recipe(self.format);
        for raw in &self.messages {
            self.push(&mut out, raw, recipe)?;
        }
        Ok(out)
    }

    fn push(&self, out: &mut Builder, raw: &RawValue, recipe: Recipe) -> Result<()> {
        let (from, to) = place_in(self.text, raw.get());
        let span = Span { offset: u64::from(from), len: to - from };
        // Lines are counted for people only, and a document often is one line.
        let line = out.entries.len() as u64 + 1;
        let place =
            Place { span, fingerprint: fingerprint(raw.get().as_bytes()), line, mended: false };
        push_message(out, raw.get(), place, recipe)
    }
}

/// The messages of a list. Collections of chats keep them in lists of lists, or under `turns`.
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

/// The list that stands in the place of a message.
fn inner(raw: &RawValue) -> Option<Vec<&RawValue>> {
    if raw.get().starts_with('[') {
        return Some(elements_prefix(raw.get()).0);
    }
    let object = Object::of(raw).filter(|object| !object.has("role"))?;
    object.array("turns").or_else(|| object.array("messages"))
}

fn document_format(body: &Object<'_>, messages: &[Object<'_>]) -> Format {
    if body.has("compactedHistory") {
        return Format::PonyBunny;
    }
    let found: Vec<_> = messages.iter().map(message_format).collect();
    if let Some(&clear) = found.iter().find(|f| **f != Format::OpenAiChat) {
        return clear;
    }
    let tools = body.array("tools").unwrap_or_default();
    let schemas = tools.into_iter().filter_map(Object::of).any(|tool| tool.has("input_schema"));
    let plain = !messages.is_empty() && messages.iter().all(only_blocks);
    if body.has("system") || schemas || plain { Format::Anthropic } else { Format::OpenAiChat }
}

/// Whether a message is written in text blocks, and by one of the two roles that Anthropic knows.
/// OpenAI allows this as well, but nobody writes its answers so.
fn only_blocks(message: &Object<'_>) -> bool {
    let role = message.text("role").is_some_and(|role| role == "user" || role == "assistant");
    let blocks = message.array("content").unwrap_or_default();
    let text = |raw: &&RawValue| {
        Object::of(raw).is_some_and(|b| b.text("type").is_some_and(|t| t == "text"))
    };
    role && !blocks.is_empty() && blocks.iter().all(text)
}

fn recipe(format: Format) -> Recipe {
    match format {
        Format::PonyBunny => Recipe::PonyBunny,
        Format::Anthropic => Recipe::Anthropic,
        _ => Recipe::OpenAiChat,
    }
}

fn push_message(out: &mut Builder, text: &str, place: Place, recipe: Recipe) -> Result<()> {
    let Ok(object) = Object::parse(text) else {
        // Something between the messages that is none: carried, never sent.
        out.push(Draft::new(EntryKind::Other("value".into())), place, text)?;
        return Ok(());
    };
    let mut draft = Draft::new(EntryKind::Message);
    let role = object.text("role").unwrap_or("unknown".into());
    let role = Role::from_name(&role);
    draft.timestamp = timestamp(&object);
    draft.part = place_in(text, text);
    draft.recipe = recipe;
    draft.parent = Parent::Previous;
    let at_beginning = out
        .entries
        .iter()
        .all(|e| e.kind == EntryKind::SystemPrompt || e.recipe == Recipe::PonyBunnySummary);
    if recipe == Recipe::PonyBunnySummary {
        draft.role = Some(Role::CompactionSummary);
    } else {
        if role == Role::System && at_beginning {
            draft.kind = EntryKind::SystemPrompt;
            let content = object.get("content").map(anthropic::system_text).unwrap_or_default();
            match &mut out.system {
                Some(system) => {
                    system.push_str("\n\n");
                    system.push_str(&content);
                }
                None => out.system = Some(content),
            }
        }
        draft.role = Some(role);
    }
    out.push(draft, place, text)?;
    Ok(())
}

/// Chat messages one a line.
pub(super) struct MessageLines(pub(super) Format);

impl LineFormat for MessageLines {
    fn object(&mut self, out: &mut Builder, record: Record<'_>) -> Result<()> {
        push_message(out, record.text, record.place, recipe(self.0))
    }

    fn end(&mut self, _out: &mut Builder) {}
}
