//! Transcripts that are one JSON or JSON5 value: PonyBunny, OpenAI chat, Anthropic; and chat
//! messages one a line.

use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result, Role};
use ctx_dialect::anthropic;
use ctx_dialect::json::{Object, elements, elements_prefix};
use serde_json::value::RawValue;

use super::json5;
use super::jsonl::LineFormat;
use super::timestamp;
use crate::builder::{Builder, Draft, Parent, Place};
use crate::detect::message_format;
use crate::entry::EntryKind;
use crate::format::Format;
use crate::load::{Recipe, place_in};
use crate::problem::ProblemKind;
use crate::source::{Source, Span, fingerprint};

/// A document's text as strict JSON, or as far as it goes.
pub(crate) struct Strict {
    pub(crate) json: Vec<u8>,
    /// PonyBunny is the only known agent that writes JSON5.
    pub(crate) was_json5: bool,
    pub(crate) notes: Vec<(ProblemKind, &'static str)>,
}

/// Reads a document and makes it strict JSON.
pub(crate) fn into_json(source: &Source) -> Result<Strict> {
    let mut notes = Vec::new();
    let mut bytes = source.beginning(usize::MAX)?;
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        bytes.drain(..3);
        notes.push((ProblemKind::ByteOrderMark, "a byte order mark: skipped"));
    }
    let text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(e) => {
            notes.push((ProblemKind::InvalidUtf8, "bytes that are not UTF-8: read as U+FFFD"));
            String::from_utf8_lossy(e.as_bytes()).into_owned()
        }
    };
    if serde_json::from_str::<&RawValue>(&text).is_ok() {
        return Ok(Strict { json: text.into_bytes(), was_json5: false, notes });
    }
    if let Some(json) = json5::whole(&text) {
        return Ok(Strict { json: json.into_bytes(), was_json5: true, notes });
    }
    notes.push((
        ProblemKind::TornDocument,
        "the document is damaged: every whole message before the damage is taken",
    ));
    let (json, was_json5) = match json5::torn(&text) {
        Some(json) => (json, true),
        None => (text, false),
    };
    Ok(Strict { json: json.into_bytes(), was_json5, notes })
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
            (Object::default(), elements_prefix(start).0)
        } else {
            let (body, error) = Object::parse_prefix(start);
            let messages = match (body.get("messages"), error) {
                (Some(raw), _) => elements(raw).unwrap_or_default(),
                (None, Some(_)) => torn_messages(start),
                (None, None) => Vec::new(),
            };
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
        let place = Place { span, fingerprint: fingerprint(raw.get().as_bytes()), line };
        push_message(out, raw.get(), place, recipe)
    }
}

/// What of `messages` is whole in a document that ends too early.
fn torn_messages(text: &str) -> Vec<&RawValue> {
    let Some(at) = text.find("\"messages\"") else { return Vec::new() };
    let rest = text[at..].find('[').map(|open| &text[at + open..]);
    rest.map(|rest| elements_prefix(rest).0).unwrap_or_default()
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
    if body.has("system") || schemas { Format::Anthropic } else { Format::OpenAiChat }
}

fn recipe(format: Format) -> Recipe {
    match format {
        Format::PonyBunny => Recipe::PonyBunny,
        Format::Anthropic => Recipe::Anthropic,
        _ => Recipe::OpenAiChat,
    }
}

fn push_message(out: &mut Builder, text: &str, place: Place, recipe: Recipe) -> Result<()> {
    let object = Object::parse(text).unwrap_or_default();
    let mut draft = Draft::new(EntryKind::Message);
    let role = object.text("role").unwrap_or("unknown".into());
    let role = Role::from_name(&role);
    draft.timestamp = timestamp(&object);
    draft.part = place_in(text, text);
    draft.recipe = recipe;
    draft.parent = Parent::Previous;
    let at_beginning = out.entries.iter().all(|e| e.kind == EntryKind::SystemPrompt);
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
    fn object(
        &mut self,
        out: &mut Builder,
        _object: &Object<'_>,
        text: &str,
        place: Place,
    ) -> Result<()> {
        push_message(out, text, place, recipe(self.0))
    }

    fn end(&mut self, _out: &mut Builder) {}
}
