//! Asking a model.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ctx_core::{ChatModel, ChatRequest, Delta, Deltas, Error, ErrorKind, Reply, Result, Timer};
use tracing::Instrument;

use super::no_reply::NoReply;
use super::{Turn, is_of_the_model};
use crate::runtime::{Event, NoticeKind, Settings};

/// How often one request is made, and how long is waited before it is made again: this at first, and
/// twice as long each time, up to the most. (OpenClaw.)
const ATTEMPTS: u32 = 3;
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(5);

impl Turn<'_> {
    /// The next answer, whatever it takes: requests are made again, made smaller, and made to other
    /// models.
    pub(super) async fn answer(&mut self) -> Result<Reply> {
        loop {
            self.flush_if_due(super::compact::Room::Whole).await;
            let request = self.assemble().await?;
            match self.ask(request).await {
                Ok(reply) => return Ok(reply),
                Err(error) if error.kind() == ErrorKind::Overflow => {
                    Box::pin(self.recover(error)).await?;
                }
                Err(error) if is_of_the_model(error.kind()) => {
                    self.fail_over(error).await.map_err(advised)?;
                    self.listener.on(Event::Restarted);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// Makes a request, and makes it again while that may help.
    async fn ask(&mut self, request: ChatRequest) -> Result<Reply> {
        let model = self.session.own.models[self.model].clone();
        let timer = self.inner().settings.timer.clone();
        let mut attempt = 1;
        loop {
            self.outcome.requests += 1;
            self.session.last_request = Some(self.now());
            let span = tracing::info_span!("request", model = %model.card().name, attempt);
            let asked = self.stream(&*model, request.clone()).instrument(span).await;
            let longest = self.inner().settings.longest_wait;
            match asked.and_then(whole) {
                // The lane is not held for hours: whoever can do something else does it now.
                Err(error) if error.wait().is_some_and(|wait| wait > longest) => {
                    let wait = error.wait().unwrap_or_default().as_secs();
                    return Err(error.with("asks to be left alone for", format!("{wait} s")));
                }
                // Who was waited for in vain is not waited for again.
                Err(error)
                    if error.is_retryable()
                        && error.kind() != ErrorKind::Timeout
                        && attempt < ATTEMPTS =>
                {
                    let wait = error.wait().unwrap_or_else(|| backoff(attempt));
                    let words = format!("asking {} again: {error}", model.card().name);
                    self.say(NoticeKind::Retry, words);
                    self.listener.on(Event::Restarted);
                    timer.sleep(wait).await;
                    attempt += 1;
                }
                asked => return asked,
            }
        }
    }

    /// Passes the pieces of an answer on as they come, and gives a model up that says nothing for
    /// too long.
    async fn stream(&mut self, model: &dyn ChatModel, request: ChatRequest) -> Result<Reply> {
        let settings = &self.runtime.inner.settings;
        let listener = &mut *self.listener;
        let is_muted = self.session.own.is_muted;
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
        let reply = heard(model, request, settings, &mut deltas).await?;
        reading.end(&mut out);
        if !out.is_empty() {
            listener.on(Event::Text(&out));
        }
        Ok(reply)
    }
}

/// An error that says what to do next, where the model did not.
fn advised(error: Error) -> Error {
    match error.hint_text() {
        Some(_) => error,
        None => error.hint("say it again; another model can be set as a fallback"),
    }
}

/// What a model answers, its pieces as they come. One that says nothing for too long is given up.
pub(super) async fn heard(
    model: &dyn ChatModel,
    request: ChatRequest,
    settings: &Settings,
    deltas: Deltas<'_>,
) -> Result<Reply> {
    let heard = AtomicU64::new(millis(settings.timer.elapsed()));
    let mut pieces = |delta: Delta<'_>| {
        heard.store(millis(settings.timer.elapsed()), Ordering::Relaxed);
        deltas(delta);
    };
    tokio::select! {
        biased;
        reply = model.answer(request, &mut pieces) => reply,
        error = silence(&*settings.timer, &heard, settings.silence) => Err(error),
    }
}

/// Ends when nothing was heard for so long.
async fn silence(timer: &dyn Timer, heard: &AtomicU64, longest: Duration) -> Error {
    let longest = millis(longest);
    loop {
        let silent = millis(timer.elapsed()).saturating_sub(heard.load(Ordering::Relaxed));
        if silent >= longest {
            return Error::new(ErrorKind::Timeout, "the model says nothing any more")
                .with("milliseconds", silent)
                .hint("see whether its server is up; another model can be set as a fallback");
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

/// Refuses what is no whole answer: it would be stored, and sent again with every request.
pub(super) fn whole(reply: Reply) -> Result<Reply> {
    let broken = |message: &'static str| {
        Err(Error::new(ErrorKind::Upstream, message)
            .retryable()
            .hint("try again; if it stays so, the model's server does not work as it should"))
    };
    if reply.message.role != ctx_core::Role::Assistant {
        return broken("the model answered in another role than its own");
    }
    let mut says = !reply.message.plain_text().trim().is_empty();
    for call in reply.message.tool_calls() {
        says = true;
        let object = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(
            call.arguments.as_str(),
        );
        if call.id.is_empty() || call.name.is_empty() || object.is_err() {
            return broken("the model answered with half a tool call");
        }
    }
    let mut ids: Vec<_> = reply.message.tool_calls().map(|call| &call.id).collect();
    ids.sort_unstable();
    if ids.windows(2).any(|two| two[0] == two[1]) {
        return broken("the model made two tool calls under one id");
    }
    match says {
        true => Ok(reply),
        false => broken("the model answered nothing"),
    }
}
