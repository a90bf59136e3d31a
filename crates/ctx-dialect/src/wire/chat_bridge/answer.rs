//! Answers of chat completions as those of the Responses API.

use ctx_core::Usage;
use serde_json::json;

use super::tools::ChatTools;
use crate::json::{Object, ObjectWriter};
use crate::openai_chat;
use crate::wire::response_object::{ResponseHead, text_part, typed};
use crate::wire::watch::{Piece, Pieces};

/// Converts an answer of chat completions as it passes: a stream to a stream, an object to an object.
#[derive(Debug)]
pub struct ChatAnswer {
    tools: ChatTools,
    model: String,
    created_at: i64,
    streams: bool,
    pieces: Pieces,
    /// The ids end in this: servers may repeat theirs.
    id: String,
    /// Whether the first event was written.
    is_created: bool,
    /// Whether the server says that the answer is complete.
    is_done: bool,
    text: String,
    calls: Vec<PartialCall>,
    usage: Option<Usage>,
    finish: Option<String>,
    /// The number of the next event.
    number: u64,
    has_failed: bool,
}

/// A call, as far as received.
#[derive(Debug, Default)]
struct PartialCall {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl ChatAnswer {
    pub(super) fn new(
        tools: ChatTools,
        model: String,
        (id, created_at): (&str, i64),
        streams: bool,
    ) -> Self {
        Self {
            tools,
            model,
            created_at,
            streams,
            pieces: Pieces::default(),
            id: id.to_owned(),
            is_created: false,
            is_done: false,
            text: String::new(),
            calls: Vec::new(),
            usage: None,
            finish: None,
            number: 0,
            has_failed: false,
        }
    }

    /// Converts the next bytes.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut out = String::new();
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.push(bytes, &mut |piece| self.take(piece, &mut out));
        self.pieces = pieces;
        // The client must not take reasoning, and the arguments of calls, for a silent connection.
        if out.is_empty() && self.streams && self.is_created && bytes.contains(&b'\n') {
            out.push_str(": keep-alive\n\n");
        }
        out.into_bytes()
    }

    /// Returns the end of the answer: an error if it broke off.
    pub fn end(&mut self) -> Vec<u8> {
        let mut out = String::new();
        let mut pieces = std::mem::take(&mut self.pieces);
        pieces.end(&mut |piece| self.take(piece, &mut out));
        let is_empty = self.text.is_empty() && self.calls.is_empty();
        if self.finish.is_none() && (is_empty || !self.is_done) {
            let what = "the server's answer broke off, or is not an answer of chat completions";
            self.fail_with(Some("server_error"), Some(what), &mut out);
        }
        if self.has_failed {
            return out.into_bytes();
        }
        let is_cut = matches!(self.finish.as_deref(), Some("length" | "content_filter"));
        let status = if is_cut { "incomplete" } else { "completed" };
        let mut items = Vec::new();
        if !self.text.is_empty() {
            let part = text_part(&self.text);
            let item = self.head().message(Some(&self.text));
            let events = [
                ("response.output_text.done", self.of_part().text("text", &self.text)),
                ("response.content_part.done", self.of_part().raw("part", &part)),
                ("response.output_item.done", of_item(0).raw("item", &item)),
            ];
            self.emit(events, &mut out);
            items.push(item);
        }
        for call in std::mem::take(&mut self.calls) {
            items.push(self.call(&call, items.len(), &mut out));
        }
        let response = self.response(status, &items);
        match self.streams {
            true => {
                let kind = format!("response.{status}");
                let whole = ObjectWriter::new().raw("response", response);
                self.emit([(kind.as_str(), whole)], &mut out);
            }
            false => out.push_str(&response),
        }
        out.into_bytes()
    }

    fn take(&mut self, piece: Piece<'_>, out: &mut String) {
        let is_error = matches!(piece, Piece::Event { name: "error", .. });
        self.is_done |= matches!(piece, Piece::Json(_));
        let (Piece::Json(json) | Piece::Event { data: json, .. }) = piece else { return };
        self.is_done |= json.trim() == "[DONE]";
        let Ok(object) = Object::parse(json) else { return };
        if (is_error || object.get("error").is_some()) && !object.has("choices") {
            return self.fail(&object, out);
        }
        self.create(out);
        let usage = object.object("usage").and_then(|usage| openai_chat::usage(&usage));
        self.usage = usage.or(self.usage);
        let choices = object.array("choices").unwrap_or_default();
        let Some(choice) = choices.first().and_then(|raw| Object::of(raw)) else { return };
        let parts = ["delta", "message"];
        if let Some(said) = parts.iter().find_map(|part| choice.object(part)) {
            self.add_text(&text_of(&said), out);
            self.add_calls(&said);
        }
        self.finish = choice.owned("finish_reason").or(self.finish.take());
    }

    fn add_text(&mut self, text: &str, out: &mut String) {
        if text.is_empty() {
            return;
        }
        if self.text.is_empty() {
            let item = self.head().message(None);
            let events = [
                ("response.output_item.added", of_item(0).raw("item", item)),
                ("response.content_part.added", self.of_part().raw("part", text_part(""))),
            ];
            self.emit(events, out);
        }
        self.text.push_str(text);
        let delta = self.of_part().text("delta", text);
        self.emit([("response.output_text.delta", delta)], out);
    }

    fn add_calls(&mut self, said: &Object<'_>) {
        for raw in said.array("tool_calls").unwrap_or_default() {
            let Some(call) = Object::of(raw) else { continue };
            let function = call.object("function").unwrap_or_default();
            let (index, id) = (call.count("index"), call.text("id").unwrap_or_default());
            // Some servers give each call the same index, or none.
            let is_same = |known: &&mut PartialCall| {
                known.index == index && (id.is_empty() || known.id.is_empty() || known.id == id)
            };
            let known = match self.calls.iter_mut().rev().find(is_same) {
                Some(known) => known,
                None => {
                    self.calls.push(PartialCall { index, ..PartialCall::default() });
                    let Some(new) = self.calls.last_mut() else { continue };
                    new
                }
            };
            known.id.extend(Some(&*id).filter(|_| known.id.is_empty()));
            known.name.extend(function.text("name").filter(|_| known.name.is_empty()));
            let arguments = function.get("arguments");
            let object = arguments.filter(|raw| raw.get().starts_with('{')).map(|raw| raw.get());
            known.arguments.extend(function.text("arguments").as_deref().or(object));
        }
    }

    fn create(&mut self, out: &mut String) {
        if !std::mem::replace(&mut self.is_created, true) {
            let created = ObjectWriter::new().raw("response", self.response("in_progress", &[]));
            self.emit([("response.created", created)], out);
        }
    }

    /// Ends the answer with the error in an object.
    fn fail(&mut self, object: &Object<'_>, out: &mut String) {
        let error = object.object("error");
        let text = |key: &str| error.as_ref().unwrap_or(object).owned(key);
        let message = text("message").or_else(|| object.owned("error"));
        let code = text("code").or_else(|| text("type"));
        self.fail_with(code.as_deref(), message.as_deref(), out);
    }

    fn fail_with(&mut self, code: Option<&str>, message: Option<&str>, out: &mut String) {
        if std::mem::replace(&mut self.has_failed, true) {
            return;
        }
        let error = json!({ "code": code, "message": message }).to_string();
        if !self.streams {
            out.push_str(&ObjectWriter::new().raw("error", error).end());
            return;
        }
        self.create(out);
        let response = self.head().response::<String>("failed", &[]);
        let whole = ObjectWriter::new().raw("response", response.raw("error", error).end());
        self.emit([("response.failed", whole)], out);
    }

    /// Writes the events of a call, and returns its item.
    fn call(&mut self, call: &PartialCall, index: usize, out: &mut String) -> String {
        let tool = self.tools.find(&call.name);
        let (kind, key, prefix) = match tool.is_custom {
            true => ("custom_tool_call", "input", "response.custom_tool_call_input"),
            false => ("function_call", "arguments", "response.function_call_arguments"),
        };
        let input = match tool.is_custom {
            true => {
                let arguments = Object::parse(&call.arguments).ok();
                let input = arguments.and_then(|arguments| arguments.owned("input"));
                input.unwrap_or_else(|| call.arguments.clone())
            }
            false if call.arguments.is_empty() => "{}".to_owned(),
            false => call.arguments.clone(),
        };
        let id = format!("fc_{}_{index}", self.id);
        let call_id = if call.id.is_empty() { &id } else { &call.id };
        let item = |status: &str, input: &str| {
            ObjectWriter::new()
                .text("type", kind)
                .text("id", &id)
                .text("status", status)
                .text("call_id", call_id)
                .text_if("namespace", tool.namespace.as_deref())
                .text("name", &tool.name)
                .text(key, input)
                .end()
        };
        let of_input = || of_item(index).text("item_id", &id);
        let whole = item("completed", &input);
        let (delta, done) = (format!("{prefix}.delta"), format!("{prefix}.done"));
        let events = [
            ("response.output_item.added", of_item(index).raw("item", item("in_progress", ""))),
            (delta.as_str(), of_input().text("delta", &input)),
            (done.as_str(), of_input().text(key, &input)),
            ("response.output_item.done", of_item(index).raw("item", &whole)),
        ];
        self.emit(events, out);
        whole
    }

    fn emit<'k>(
        &mut self,
        events: impl IntoIterator<Item = (&'k str, ObjectWriter)>,
        out: &mut String,
    ) {
        for (kind, data) in events.into_iter().filter(|_| self.streams) {
            out.push_str(&typed(kind, &data.plain("sequence_number", self.number)));
            self.number += 1;
        }
    }

    fn head(&self) -> ResponseHead<'_> {
        ResponseHead { id: &self.id, model: &self.model, created_at: self.created_at }
    }

    fn of_part(&self) -> ObjectWriter {
        of_item(0).text("item_id", &self.head().item_id()).plain("content_index", 0)
    }

    fn response(&self, status: &str, items: &[String]) -> String {
        let response = self.head().response(status, items);
        let response = match status {
            "incomplete" => {
                let reason = match self.finish.as_deref() {
                    Some("content_filter") => "content_filter",
                    _ => "max_output_tokens",
                };
                response.raw("incomplete_details", json!({ "reason": reason }).to_string())
            }
            _ => response,
        };
        let usage = self.usage.map(|usage| {
            let (input, output) = (usage.prompt(), usage.output);
            let cached = json!({ "cached_tokens": usage.cache_read });
            json!({ "input_tokens": input, "input_tokens_details": cached,
                "output_tokens": output, "total_tokens": input + output })
            .to_string()
        });
        response.raw_if("usage", usage).end()
    }
}

/// Returns the fields of an event about an item.
fn of_item(index: usize) -> ObjectWriter {
    ObjectWriter::new().plain("output_index", index)
}

/// Returns the text of a message, or of a piece of one.
fn text_of(said: &Object<'_>) -> String {
    let parts = said.array("content").unwrap_or_default().into_iter().filter_map(Object::of);
    let parts: String = parts.filter_map(|part| part.owned("text")).collect();
    let text = said.owned("content").unwrap_or(parts);
    if text.is_empty() { said.owned("refusal").unwrap_or_default() } else { text }
}
