//! Holds an answer back until it is clear that the prompt was not too long.

use std::collections::VecDeque;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use bytes::Bytes;
use ctx_core::Result;
use ctx_dialect::wire::{AnswerState, ChatAnswer, Intercept, Protocol, Watch};
use ctx_model::{Overflow, Response, overflow, silent_overflow};
use tokio::time::{Instant, timeout_at};

/// Maximum number of held bytes. A larger answer is not a refusal.
const MOST_HELD: usize = 1 << 20;

/// Maximum number of held bytes of a compaction.
const MOST_COMPACTED: usize = 16 << 20;

/// How long an answer without content is held: a refusal arrives at once, and a client that
/// receives nothing may give up.
const PATIENCE: Duration = Duration::from_secs(10);

/// A provider's answer, as far as received.
pub(super) struct HeldAnswer {
    pub(super) response: Response,
    pub(super) held: VecDeque<Bytes>,
    pub(super) watch: Watch,
    /// Whether it is held completely.
    pub(super) is_whole: bool,
    /// The overflow reported by the provider, if any.
    pub(super) overflow: Option<Overflow>,
    /// Converts it for the client, if it is of another API.
    conversion: Option<Conversion>,
}

/// How an answer is changed for the client as it passes.
pub(super) enum Conversion {
    /// It is one of chat completions, and becomes one of the Responses API.
    Chat(ChatAnswer),
    /// It gets what ctx did in place of the provider.
    Edits(Intercept),
}

impl Conversion {
    fn push(&mut self, piece: &[u8]) -> Vec<u8> {
        match self {
            Self::Chat(answer) => answer.push(piece),
            Self::Edits(answer) => answer.push(piece),
        }
    }

    fn end(&mut self) -> Vec<u8> {
        match self {
            Self::Chat(answer) => answer.end(),
            Self::Edits(answer) => answer.end_round().out,
        }
    }
}

/// Reads an answer until its kind is known.
///
/// # Errors
///
/// See [`HeldAnswer::chunk`]: the provider stalled or disconnected before any content.
pub(super) async fn hold_answer(
    protocol: Protocol,
    mut response: Response,
    window: u64,
    conversion: Option<Conversion>,
) -> Result<HeldAnswer> {
    let is_refusal = !response.status.is_success();
    let conversion = conversion.filter(|_| !is_refusal);
    if conversion.is_some() {
        response.headers.remove(CONTENT_LENGTH);
    }
    let mut answer = HeldAnswer {
        response,
        conversion,
        held: VecDeque::new(),
        watch: Watch::new(protocol),
        is_whole: false,
        overflow: None,
    };
    if is_encoded(&answer.response.headers) {
        return Ok(answer);
    }
    let (mut bytes, until) = (0, Instant::now() + PATIENCE);
    loop {
        let next = match timeout_at(until, answer.chunk()).await {
            Ok(Ok(next)) => next,
            // A truncated or stalled refusal is still recognised by its status.
            Ok(Err(_)) if is_refusal => {
                answer.response.headers.remove(CONTENT_LENGTH);
                None
            }
            Ok(Err(error)) => return Err(error),
            Err(_) if is_refusal => break,
            Err(_) => return Ok(answer),
        };
        let Some(piece) = next else {
            answer.is_whole = true;
            break;
        };
        bytes += piece.len();
        let seen = answer.watch.push(&piece);
        answer.held.push_back(piece);
        let is_decided = matches!(seen, AnswerState::Content | AnswerState::Failure) && !is_refusal;
        if is_decided || bytes > MOST_HELD {
            break;
        }
    }
    if answer.is_whole {
        answer.watch.end();
    }
    answer.overflow = answer.overflow_of_answer(is_refusal, window);
    Ok(answer)
}

impl HeldAnswer {
    /// Returns the next bytes for the client; `None` at the end.
    ///
    /// # Errors
    ///
    /// See [`Body::chunk`](ctx_model::Body::chunk).
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>> {
        loop {
            let piece = self.response.body.chunk().await?;
            let out = match (&mut self.conversion, &piece) {
                (None, _) => piece,
                (Some(conversion), Some(piece)) => Some(conversion.push(piece).into()),
                (Some(conversion), None) => {
                    let end = conversion.end();
                    self.conversion = None;
                    Some(end.into())
                }
            };
            match out {
                Some(piece) if piece.is_empty() => {}
                other => return Ok(other),
            }
        }
    }

    /// Holds the rest of an answer, up to [`MOST_COMPACTED`]. An interrupted answer stays incomplete.
    pub(super) async fn hold_all(&mut self) {
        let mut bytes: usize = self.held.iter().map(Bytes::len).sum();
        while !self.is_whole && bytes <= MOST_COMPACTED {
            let Ok(next) = self.chunk().await else { return };
            match next {
                Some(piece) => {
                    bytes += piece.len();
                    self.watch.push(&piece);
                    self.held.push_back(piece);
                }
                None => {
                    self.is_whole = true;
                    self.watch.end();
                }
            }
        }
    }

    /// Returns the held bytes as text.
    pub(super) fn text(&self) -> String {
        let held: Vec<u8> = self.held.iter().flatten().copied().collect();
        String::from_utf8_lossy(&held).into_owned()
    }

    fn overflow_of_answer(&self, is_refusal: bool, window: u64) -> Option<Overflow> {
        if is_refusal {
            return overflow(self.response.status.as_u16(), &self.text());
        }
        match self.watch.state() {
            AnswerState::Failure => overflow(0, &self.watch.failure()?.json),
            AnswerState::Empty => {
                let usage = self.watch.usage().unwrap_or_default();
                let is_full = self.watch.is_window_full();
                let full = || Overflow {
                    used: None,
                    prompt: None,
                    limit: None,
                    pattern: "finish-reason",
                    provider: "any",
                };
                silent_overflow(&usage, window, true).or_else(|| is_full.then(full))
            }
            AnswerState::Pending | AnswerState::Content => None,
        }
    }
}

/// Whether an answer is compressed despite the request: the proxy cannot read it as it passes.
pub(super) fn is_encoded(headers: &HeaderMap) -> bool {
    let encoding = headers.get(CONTENT_ENCODING);
    encoding.is_some_and(|encoding| !encoding.as_bytes().eq_ignore_ascii_case(b"identity"))
}
