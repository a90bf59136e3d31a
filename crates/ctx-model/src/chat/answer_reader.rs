//! Reads the bytes of an answer, streamed or whole.

use std::time::Duration;

use ctx_core::{Deltas, Error, ErrorKind, Result, Usage};
use ctx_dialect::sse::{SseEvent, SseParser};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;

use super::limits::AnswerLimits;
use super::parts::{AnswerParts, MOST_PARTS};
use super::{Stop, anthropic, completions, responses};
use crate::failure::ErrorContext;
use crate::{Api, Body, Response, provider_error};

/// How long to read on after the answer is complete: usage comes last, and some servers close late
/// or never.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// Maximum event size. Providers send tokens one by one; a larger event is invalid.
const LONGEST_EVENT: usize = 16 * 1024 * 1024;

/// The part of an answer that has been read.
pub(super) struct AnswerReader<'d> {
    pub(super) parts: AnswerParts<'d>,
    pub(super) stop: Option<Stop>,
    pub(super) usage: Option<Usage>,
    /// The provider's id of the answer.
    pub(super) id: Option<String>,
    /// Whether the answer is complete.
    pub(super) done: bool,
    /// The error that ended the stream.
    pub(super) failed: Option<Value>,
    /// Whether the server announced an event stream or sent one.
    streams: bool,
    bytes: u64,
}

impl<'d> AnswerReader<'d> {
    fn new(deltas: Deltas<'d>) -> Self {
        Self {
            parts: AnswerParts::new(deltas),
            stop: None,
            usage: None,
            id: None,
            done: false,
            failed: None,
            streams: false,
            bytes: 0,
        }
    }

    /// Reads the usage of an answer, if present.
    pub(super) fn take_usage(&mut self, usage: &Value, read: fn(&Value) -> Usage) {
        if usage.is_object() {
            self.usage = Some(read(usage));
        }
    }

    /// Reads the id of an answer, which some servers repeat in each event.
    pub(super) fn take_id(&mut self, id: &Value) {
        if self.id.is_none() {
            self.id = id.as_str().filter(|id| !id.is_empty()).map(str::to_owned);
        }
    }

    /// Appends to the text if the value is a string.
    pub(super) fn push_text(&mut self, key: u64, text: &Value) {
        self.parts.push_text(key, text.as_str().unwrap_or_default());
    }

    /// Appends to the reasoning if the value is a string.
    pub(super) fn push_thinking(&mut self, key: u64, text: &Value) {
        self.parts.push_thinking(key, text.as_str().unwrap_or_default());
    }
}

pub(super) async fn read<'d>(
    api: Api,
    response: &mut Response,
    limits: AnswerLimits,
    context: &ErrorContext<'_>,
    deltas: Deltas<'d>,
) -> Result<AnswerReader<'d>> {
    let mut reader = AnswerReader::new(deltas);
    let read = read_all(api, response, limits, context, &mut reader).await;
    if let Some(error) = &reader.failed {
        let error_text = provider_error::read_value(error);
        let error = context.failure(error_text.status(), &HeaderMap::new(), &error_text);
        // An answer that began before the failure is billed.
        let has_begun = !reader.parts.is_empty() || reader.stop.is_some();
        return Err(if has_begun { error.billed() } else { error });
    }
    match read {
        // Failures after the end of the answer are ignored.
        Err(_) if reader.stop.is_some() => Ok(reader),
        Err(error) => Err(error.with("model", context.name)),
        Ok(()) if reader.stop.is_some() || reader.done => Ok(reader),
        Ok(()) => Err(broken_off(&reader).with("model", context.name)),
    }
}

async fn read_all(
    api: Api,
    response: &mut Response,
    limits: AnswerLimits,
    context: &ErrorContext<'_>,
    reader: &mut AnswerReader<'_>,
) -> Result<()> {
    let content_type = response.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    reader.streams = content_type.is_some_and(|t| t.contains("event-stream"));
    let mut whole = content_type.is_some_and(|t| t.contains("json"));
    let mut first = Vec::new();
    // A server may ignore the request for a stream, and may send any content type.
    while !whole && first.iter().all(u8::is_ascii_whitespace) {
        let Some(chunk) = next(&mut response.body, limits, reader).await? else { break };
        first.extend_from_slice(&chunk);
        whole = first.trim_ascii_start().first() == Some(&b'{');
    }
    if whole {
        return read_whole(api, &mut response.body, limits, context, reader, first).await;
    }
    let mut parser = SseParser::new(LONGEST_EVENT);
    let mut chunk = first;
    loop {
        take_chunk(api, reader, &mut parser, &chunk)?;
        if reader.done || reader.failed.is_some() {
            return Ok(());
        }
        if reader.parts.len() > MOST_PARTS {
            return Err(Error::new(ErrorKind::Upstream, "the answer has too many parts")
                .with("parts", reader.parts.len())
                .hint("check that the base URL is that of a model provider"));
        }
        if reader.parts.bytes > limits.text {
            reader.stop = Some(Stop::Length);
            return Ok(());
        }
        if reader.stop.is_some() {
            response.body.idle = AFTERWARDS;
        }
        match next(&mut response.body, limits, reader).await? {
            Some(more) => chunk = more.to_vec(),
            None => break,
        }
    }
    match parser.finish() {
        // A truncated event cannot be parsed, and is not the last one.
        Some(event) => take(api, reader, &event).or(Ok(())),
        None => Ok(()),
    }
}

async fn next(
    body: &mut Body,
    limits: AnswerLimits,
    reader: &mut AnswerReader<'_>,
) -> Result<Option<bytes::Bytes>> {
    let chunk = body.chunk().await?;
    reader.bytes += chunk.as_ref().map_or(0, |c| c.len() as u64);
    if reader.bytes > limits.wire {
        return Err(Error::new(ErrorKind::Upstream, "the answer is too long")
            .with("bytes", reader.bytes)
            .hint("check that the base URL is that of a model provider"));
    }
    Ok(chunk)
}

/// Reads the events that a chunk completes, up to the end of the answer.
fn take_chunk(
    api: Api,
    reader: &mut AnswerReader<'_>,
    parser: &mut SseParser,
    mut chunk: &[u8],
) -> Result<()> {
    while let Some(event) = parser.next(&mut chunk) {
        take(api, reader, &event)?;
        if reader.done || reader.failed.is_some() {
            return Ok(());
        }
    }
    if parser.is_too_large() { Err(too_long()) } else { Ok(()) }
}

fn too_long() -> Error {
    Error::new(ErrorKind::Upstream, "an event of the answer is too long")
        .with("bytes", LONGEST_EVENT)
        .hint("check that the base URL is that of a model provider")
}

fn take(api: Api, reader: &mut AnswerReader<'_>, event: &SseEvent<'_>) -> Result<()> {
    let data = event.data.as_deref().ok_or_else(too_long)?.trim();
    if data == "[DONE]" {
        reader.done = true;
        return Ok(());
    }
    // Anything else is a keep-alive.
    if !data.starts_with('{') {
        return Ok(());
    }
    let value: Value = serde_json::from_str(data).map_err(|e| {
        Error::new(ErrorKind::Upstream, "cannot read an event of the answer")
            .retryable()
            .hint("try again")
            .source(e)
    })?;
    reader.streams = true;
    match api {
        Api::OpenAiCompletions => completions::event(reader, &value),
        Api::OpenAiResponses => responses::event(reader, &value),
        Api::AnthropicMessages => anthropic::event(reader, &value),
    }
    Ok(())
}

async fn read_whole(
    api: Api,
    body: &mut Body,
    limits: AnswerLimits,
    context: &ErrorContext<'_>,
    reader: &mut AnswerReader<'_>,
    mut all: Vec<u8>,
) -> Result<()> {
    while let Some(chunk) = next(body, limits, reader).await? {
        all.extend_from_slice(&chunk);
    }
    let value: Value = serde_json::from_slice(&all).map_err(|e| {
        let text = String::from_utf8_lossy(&all);
        Error::new(ErrorKind::Upstream, "cannot read the answer")
            .with("answer", context.shown(&text))
            .retryable()
            .hint("try again; if it persists, check the api of the provider in ctx.json5")
            .source(e)
    })?;
    if is_error(&value) {
        reader.failed = Some(value);
        return Ok(());
    }
    match api {
        Api::OpenAiCompletions => completions::whole(reader, &value),
        Api::OpenAiResponses => responses::whole(reader, &value),
        Api::AnthropicMessages => anthropic::whole(reader, &value),
    }
    Ok(())
}

/// Whether a value is an error in one of the known shapes.
pub(crate) fn is_error(value: &Value) -> bool {
    let error = &value["error"];
    let filled = match error {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    filled || value["object"] == "error" || value["type"] == "error"
}

fn broken_off(reader: &AnswerReader<'_>) -> Error {
    if !reader.streams && reader.bytes > 0 {
        return Error::new(ErrorKind::Upstream, "not an answer of a model")
            .hint("check the base URL and the api of the provider in ctx.json5");
    }
    Error::new(ErrorKind::Upstream, "the answer broke off before its end")
        .with("bytes", reader.parts.bytes)
        .retryable()
        .hint("try again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_without_end_is_refused() {
        let block = vec![b'x'; 1024 * 1024];
        let line = [b"data: ".as_slice(), &block, b"\n"].concat();
        // One long line, and many lines of one event.
        for (first, more) in [(&b"data: "[..], &block), (b"", &line)] {
            let mut ignore = |_: ctx_core::Delta<'_>| {};
            let mut reader = AnswerReader::new(&mut ignore);
            let mut parser = SseParser::new(LONGEST_EVENT);
            let mut take =
                |chunk| take_chunk(Api::OpenAiCompletions, &mut reader, &mut parser, chunk);
            take(first).unwrap();
            let failed = (0..20).find_map(|_| take(more).err()).unwrap();
            assert_eq!(failed.kind(), ErrorKind::Upstream);
        }
    }
}
