//! From the bytes of an answer to its text, streamed or whole.

use std::time::Duration;

use ctx_core::{Deltas, Error, ErrorKind, Result, Usage};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;

use super::limits::Limits;
use super::parts::{MOST_PARTS, Parts};
use super::{Stop, anthropic, completions, responses};
use crate::failure::Asked;
use crate::provider_error;
use crate::{Api, Body, Response, SseEvent, SseParser};

/// How long a stream is listened to once the answer is complete: usage comes last, and some
/// servers close late or never.
const AFTERWARDS: Duration = Duration::from_secs(5);

/// An answer as far as it has been read.
pub(super) struct Reading<'d> {
    pub(super) parts: Parts<'d>,
    pub(super) stop: Option<Stop>,
    pub(super) usage: Option<Usage>,
    /// The provider's id of the answer.
    pub(super) id: Option<String>,
    /// Nothing follows.
    pub(super) done: bool,
    /// The error that came in place of the rest.
    pub(super) failed: Option<Value>,
    /// Whether the server said that it streams events, or did.
    streams: bool,
    bytes: u64,
}

impl<'d> Reading<'d> {
    fn new(deltas: Deltas<'d>) -> Self {
        Self {
            parts: Parts::new(deltas),
            stop: None,
            usage: None,
            id: None,
            done: false,
            failed: None,
            streams: false,
            bytes: 0,
        }
    }

    /// Reads the usage of an answer, unless there is none.
    pub(super) fn take_usage(&mut self, usage: &Value, read: fn(&Value) -> Usage) {
        if usage.is_object() {
            self.usage = Some(read(usage));
        }
    }

    /// Reads the id of an answer, which some repeat with each event.
    pub(super) fn take_id(&mut self, id: &Value) {
        if self.id.is_none() {
            self.id = id.as_str().filter(|id| !id.is_empty()).map(str::to_owned);
        }
    }

    /// More of the text, unless it is none.
    pub(super) fn push_text(&mut self, key: u64, text: &Value) {
        self.parts.push_text(key, text.as_str().unwrap_or_default());
    }

    /// More of the reasoning, unless it is none.
    pub(super) fn push_thinking(&mut self, key: u64, text: &Value) {
        self.parts.push_thinking(key, text.as_str().unwrap_or_default());
    }
}

pub(super) async fn read<'d>(
    api: Api,
    response: &mut Response,
    limits: Limits,
    asked: &Asked<'_>,
    deltas: Deltas<'d>,
) -> Result<Reading<'d>> {
    let mut reading = Reading::new(deltas);
    let read = read_all(api, response, limits, asked, &mut reading).await;
    if let Some(error) = &reading.failed {
        let said = provider_error::read_value(error);
        let error = asked.failure(said.status(), &HeaderMap::new(), &said);
        // What had begun before it failed is paid for.
        let has_begun = !reading.parts.is_empty() || reading.stop.is_some();
        return Err(if has_begun { error.billed() } else { error });
    }
    match read {
        // What failed after the end of the answer does not matter any more.
        Err(_) if reading.stop.is_some() => Ok(reading),
        Err(error) => Err(error.with("model", asked.name)),
        Ok(()) if reading.stop.is_some() || reading.done => Ok(reading),
        Ok(()) => Err(broken_off(&reading).with("model", asked.name)),
    }
}

async fn read_all(
    api: Api,
    response: &mut Response,
    limits: Limits,
    asked: &Asked<'_>,
    reading: &mut Reading<'_>,
) -> Result<()> {
    let content_type = response.headers.get(CONTENT_TYPE).and_then(|v| v.to_str().ok());
    reading.streams = content_type.is_some_and(|t| t.contains("event-stream"));
    let mut whole = content_type.is_some_and(|t| t.contains("json"));
    let mut first = Vec::new();
    // A server may ignore that a stream was asked for, and call what it sends anything.
    while !whole && first.iter().all(u8::is_ascii_whitespace) {
        let Some(chunk) = next(&mut response.body, limits, reading).await? else { break };
        first.extend_from_slice(&chunk);
        whole = first.trim_ascii_start().first() == Some(&b'{');
    }
    if whole {
        return read_whole(api, &mut response.body, limits, asked, reading, first).await;
    }
    let mut parser = SseParser::default();
    let mut chunk = first;
    loop {
        for event in parser.push(&chunk)? {
            take(api, reading, &event)?;
            if reading.done || reading.failed.is_some() {
                return Ok(());
            }
        }
        if reading.parts.len() > MOST_PARTS {
            return Err(Error::new(ErrorKind::Upstream, "the answer falls into too many parts")
                .with("parts", reading.parts.len())
                .hint("check that the base URL is that of a model provider"));
        }
        if reading.parts.held() > limits.text {
            reading.stop = Some(Stop::Length);
            return Ok(());
        }
        if reading.stop.is_some() {
            response.body.set_idle(AFTERWARDS);
        }
        match next(&mut response.body, limits, reading).await? {
            Some(more) => chunk = more.to_vec(),
            None => break,
        }
    }
    match parser.finish() {
        // An event that is cut off cannot be read, and is not the last one.
        Some(event) => take(api, reading, &event).or(Ok(())),
        None => Ok(()),
    }
}

async fn next(
    body: &mut Body,
    limits: Limits,
    reading: &mut Reading<'_>,
) -> Result<Option<bytes::Bytes>> {
    let chunk = body.chunk().await?;
    reading.bytes += chunk.as_ref().map_or(0, |c| c.len() as u64);
    if reading.bytes > limits.wire {
        return Err(Error::new(ErrorKind::Upstream, "the answer does not end")
            .with("bytes", reading.bytes)
            .hint("check that the base URL is that of a model provider"));
    }
    Ok(chunk)
}

fn take(api: Api, reading: &mut Reading<'_>, event: &SseEvent) -> Result<()> {
    let data = event.data.trim();
    if data == "[DONE]" {
        reading.done = true;
        return Ok(());
    }
    // Anything else is a sign of life.
    if !data.starts_with('{') {
        return Ok(());
    }
    let value: Value = serde_json::from_str(data).map_err(|e| {
        Error::new(ErrorKind::Upstream, "an event of the answer cannot be read")
            .retryable()
            .hint("try again")
            .source(e)
    })?;
    reading.streams = true;
    match api {
        Api::OpenAiCompletions => completions::event(reading, &value),
        Api::OpenAiResponses => responses::event(reading, &value),
        Api::AnthropicMessages => anthropic::event(reading, &value),
    }
    Ok(())
}

async fn read_whole(
    api: Api,
    body: &mut Body,
    limits: Limits,
    asked: &Asked<'_>,
    reading: &mut Reading<'_>,
    mut all: Vec<u8>,
) -> Result<()> {
    while let Some(chunk) = next(body, limits, reading).await? {
        all.extend_from_slice(&chunk);
    }
    let value: Value = serde_json::from_slice(&all).map_err(|e| {
        let text = String::from_utf8_lossy(&all);
        Error::new(ErrorKind::Upstream, "the answer cannot be read")
            .with("answer", asked.shown(&text))
            .retryable()
            .hint("try again; if it stays so, check the api of the provider in ctx.json5")
            .source(e)
    })?;
    if is_error(&value) {
        reading.failed = Some(value);
        return Ok(());
    }
    match api {
        Api::OpenAiCompletions => completions::whole(reading, &value),
        Api::OpenAiResponses => responses::whole(reading, &value),
        Api::AnthropicMessages => anthropic::whole(reading, &value),
    }
    Ok(())
}

/// Whether a value is an error, in one of the shapes they come in.
pub(crate) fn is_error(value: &Value) -> bool {
    let error = &value["error"];
    let filled = match error {
        Value::Null | Value::Bool(_) => false,
        Value::String(text) => !text.is_empty(),
        _ => true,
    };
    filled || value["object"] == "error" || value["type"] == "error"
}

fn broken_off(reading: &Reading<'_>) -> Error {
    if !reading.streams && reading.bytes > 0 {
        return Error::new(ErrorKind::Upstream, "the answer is none of a model")
            .hint("check the base URL and the api of the provider in ctx.json5");
    }
    Error::new(ErrorKind::Upstream, "the answer broke off before its end")
        .with("bytes", reading.parts.held())
        .retryable()
        .hint("try again")
}
