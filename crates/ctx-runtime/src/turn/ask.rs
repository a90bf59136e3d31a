//! Sends requests to a model.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ctx_core::{
    ChatModel, ChatRequest, Delta, Deltas, Error, ErrorKind, ModelCard, Reply, Result, Timer,
};
use tracing::field::Empty;
use tracing::{Instrument, Span};

use super::no_reply::NoReply;
use super::{Turn, is_model_error};
use crate::host::{Event, NoticeKind};
use crate::session::Settings;

/// Maximum number of attempts of one request, and the waits between them: the first one, doubled
/// each time up to the maximum. (OpenClaw.)
const ATTEMPTS: u32 = 3;
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl Turn<'_> {
    /// Gets the next answer: retries requests, shrinks them, and falls back to other models.
    pub(super) async fn answer(&mut self) -> Result<Reply> {
        loop {
            self.flush_if_due(super::compact::WindowShare::Whole).await;
            let request = self.assemble().await?;
            match self.ask(request).await {
                Ok(reply) => return Ok(reply),
                Err(error) if error.kind() == ErrorKind::Overflow => {
                    Box::pin(self.recover(error)).await?;
                }
                Err(error) if is_model_error(error.kind()) => {
                    self.fail_over(error).await.map_err(|error| {
                        error.hint_or("try again; another model can be set as a fallback")
                    })?;
                    self.listener.on(Event::Restarted);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Sends a request, and retries it while that may help.
    async fn ask(&mut self, request: ChatRequest) -> Result<Reply> {
        let model = self.session.overrides.models[self.model].clone();
        let timer = self.pool.settings.timer.clone();
        let mut attempt = 1;
        loop {
            self.outcome.requests += 1;
            self.session.last_request = Some(self.now());
            let span = self.request_span(model.card(), attempt);
            let reply = self.stream(&*model, request.clone()).instrument(span.clone()).await;
            record_reply(&span, &reply);
            let longest = self.pool.settings.max_retry_wait;
            match reply.and_then(check_complete) {
                // The wait would block the lane for too long; the caller decides.
                Err(error) if error.wait().is_some_and(|wait| wait > longest) => {
                    let wait = error.wait().unwrap_or_default().as_secs();
                    return Err(error.with("retry after", format!("{wait} s")));
                }
                // A model that timed out is not retried.
                Err(error)
                    if error.is_retryable()
                        && error.kind() != ErrorKind::Timeout
                        && attempt < ATTEMPTS =>
                {
                    let wait = error.wait().unwrap_or_else(|| backoff(attempt));
                    let words = format!("retrying {}: {error}", model.card().name);
                    self.notify(NoticeKind::Retry, words);
                    self.listener.on(Event::Restarted);
                    timer.sleep(wait).await;
                    attempt += 1;
                }
                reply => return reply,
            }
        }
    }

    /// Returns the span of a request, by the conventions of OpenTelemetry for generative AI.
    fn request_span(&self, model: &ModelCard, attempt: u32) -> Span {
        tracing::info_span!(
            "request",
            attempt,
            otel.name = format!("chat {}", model.id),
            otel.kind = "client",
            gen_ai.operation.name = "chat",
            gen_ai.provider.name = %model.provider,
            gen_ai.request.model = %model.id,
            gen_ai.conversation.id = %self.session.id,
            gen_ai.response.model = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            gen_ai.usage.cache_read.input_tokens = Empty,
            error.r#type = Empty,
        )
    }

    /// Passes on the parts of an answer as they arrive, and cancels a model that sends nothing for
    /// too long.
    async fn stream(&mut self, model: &dyn ChatModel, request: ChatRequest) -> Result<Reply> {
        let settings = &self.pool.settings;
        let listener = &mut *self.listener;
        let is_muted = self.session.overrides.is_muted;
        let (mut reading, mut out) = (NoReply::default(), String::new());
        let mut deltas = |delta: Delta<'_>| match delta {
            _ if is_muted => {}
            Delta::Text(text) => {
                reading.push(text, &mut out);
                if !out.is_empty() {
                    listener.on(Event::Text(&out));
                    out.clear();
                }
            }
            Delta::Thinking(text) => listener.on(Event::Thinking(text)),
            Delta::Call(_) => {}
        };
        let reply = receive(model, request, settings, &mut deltas).await?;
        reading.end(&mut out);
        if !out.is_empty() {
            listener.on(Event::Text(&out));
        }
        Ok(reply)
    }
}

/// Adds the model, the usage or the error of an answer to its span.
fn record_reply(span: &Span, reply: &Result<Reply>) {
    match reply {
        Ok(reply) => {
            let meta = &reply.message.meta;
            if let Some(model) = &meta.model {
                span.record("gen_ai.response.model", model);
            }
            if let Some(usage) = &meta.usage {
                // Collectors get unsigned numbers as text.
                span.record("gen_ai.usage.input_tokens", usage.prompt().cast_signed());
                span.record("gen_ai.usage.output_tokens", usage.output.cast_signed());
                let cached = usage.cache_read.cast_signed();
                span.record("gen_ai.usage.cache_read.input_tokens", cached);
            }
        }
        Err(error) => {
            span.record("error.type", error.kind().name());
        }
    }
}

/// Receives a model's answer part by part. Cancels a model that sends nothing for too long.
pub(super) async fn receive(
    model: &dyn ChatModel,
    request: ChatRequest,
    settings: &Settings,
    deltas: Deltas<'_>,
) -> Result<Reply> {
    let last_received = AtomicU64::new(millis(settings.timer.elapsed()));
    let mut pieces = |delta: Delta<'_>| {
        last_received.store(millis(settings.timer.elapsed()), Ordering::Relaxed);
        deltas(delta);
    };
    tokio::select! {
        biased;
        reply = model.answer(request, &mut pieces) => reply,
        error = no_response(&*settings.timer, &last_received, settings.idle_timeout) => Err(error),
    }
}

/// Completes when nothing was received for `longest`.
async fn no_response(timer: &dyn Timer, last_received: &AtomicU64, longest: Duration) -> Error {
    let longest = millis(longest);
    loop {
        let silent = millis(timer.elapsed()).saturating_sub(last_received.load(Ordering::Relaxed));
        if silent >= longest {
            return Error::new(ErrorKind::Timeout, "the model stopped responding")
                .with("milliseconds", silent)
                .hint("check that its server is running; another model can be set as a fallback");
        }
        timer.sleep(Duration::from_millis(longest - silent)).await;
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn backoff(attempt: u32) -> Duration {
    FIRST_WAIT.saturating_mul(1 << (attempt - 1).min(10)).min(LONGEST_WAIT)
}

/// Rejects an incomplete answer: it would be stored, and sent again with every request.
pub(super) fn check_complete(reply: Reply) -> Result<Reply> {
    let broken = |message: &'static str| {
        Err(Error::new(ErrorKind::Upstream, message)
            .retryable()
            .hint("try again; if the error persists, the model's server is faulty"))
    };
    if reply.message.role != ctx_core::Role::Assistant {
        return broken("the model's answer has the wrong role");
    }
    let mut has_content = !reply.message.plain_text().trim().is_empty();
    for call in reply.message.tool_calls() {
        has_content = true;
        let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(
            call.arguments.as_str(),
        );
        if call.id.is_empty() || call.name.is_empty() || object.is_err() {
            return broken("the model's answer has an incomplete tool call");
        }
    }
    let mut ids: Vec<_> = reply.message.tool_calls().map(|call| &call.id).collect();
    ids.sort_unstable();
    if ids.windows(2).any(|two| two[0] == two[1]) {
        return broken("the model used one id for two tool calls");
    }
    if has_content { Ok(reply) } else { broken("the model's answer is empty") }
}
