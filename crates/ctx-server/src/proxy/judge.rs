//! Whether an answer may pass: held back until it shows that the prompt was not too long.

use std::collections::VecDeque;
use std::time::Duration;

use axum::http::HeaderMap;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH};
use bytes::Bytes;
use ctx_core::Result;
use ctx_dialect::wire::{Protocol, Seen, Watch};
use ctx_model::{Body, Overflow, Response, overflow, silent_overflow};
use tokio::time::{Instant, timeout_at};

/// The most that is held back. What is larger and has said nothing yet is no refusal.
const MOST_HELD: usize = 1 << 20;

/// So long an answer is held back that has begun and says nothing: a refusal comes at once, and a
/// client that hears nothing may give up.
const PATIENCE: Duration = Duration::from_secs(10);

/// An answer of a provider, as far as it has come.
pub(super) struct Answer {
    pub(super) response: Response,
    pub(super) held: VecDeque<Bytes>,
    pub(super) watch: Watch,
    /// Whether all of it is held.
    pub(super) is_whole: bool,
    /// How the provider says that the prompt was too long, if it does.
    pub(super) overflow: Option<Overflow>,
}

/// Reads an answer until it is known what it is.
///
/// # Errors
///
/// As [`Body::chunk`]: the provider stalled or broke off before anything was said.
pub(super) async fn judge(protocol: Protocol, response: Response, window: u64) -> Result<Answer> {
    let is_refusal = !response.status.is_success();
    let mut answer = Answer {
        response,
        held: VecDeque::new(),
        watch: Watch::new(protocol),
        is_whole: false,
        overflow: None,
    };
    if is_packed(&answer.response.headers) {
        return Ok(answer);
    }
    let (mut bytes, until) = (0, Instant::now() + PATIENCE);
    loop {
        let next = next(&mut answer.response.body);
        let next = match is_refusal {
            // One that breaks off or stalls is a refusal all the same: its status says so.
            true => match timeout_at(until, next).await {
                Ok(Ok(next)) => next,
                Ok(Err(_)) => {
                    answer.response.headers.remove(CONTENT_LENGTH);
                    None
                }
                Err(_) => break,
            },
            false => match timeout_at(until, next).await {
                Ok(next) => next?,
                Err(_) => return Ok(answer),
            },
        };
        let Some(piece) = next else {
            answer.is_whole = true;
            break;
        };
        bytes += piece.len();
        let seen = answer.watch.push(&piece);
        answer.held.push_back(piece);
        let is_told = matches!(seen, Seen::Content | Seen::Failure) && !is_refusal;
        if is_told || bytes > MOST_HELD {
            break;
        }
    }
    if answer.is_whole {
        answer.watch.end();
    }
    answer.overflow = answer.judged(is_refusal, window);
    Ok(answer)
}

impl Answer {
    /// Whether what was held says that, in an answer that is none of an error.
    pub(super) fn says(&self, text: &str) -> bool {
        let held: Vec<u8> = self.held.iter().flatten().copied().collect();
        self.response.status.is_success() && String::from_utf8_lossy(&held).contains(text)
    }

    fn judged(&self, is_refusal: bool, window: u64) -> Option<Overflow> {
        if is_refusal {
            let text: Vec<u8> = self.held.iter().flatten().copied().collect();
            let text = String::from_utf8_lossy(&text);
            return overflow(self.response.status.as_u16(), &text);
        }
        match self.watch.seen() {
            Seen::Failure => overflow(0, &self.watch.failure()?.json),
            Seen::Empty => {
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
            Seen::Nothing | Seen::Content => None,
        }
    }
}

/// Whether an answer is packed, though nobody asked for that: it cannot be read as it passes.
fn is_packed(headers: &HeaderMap) -> bool {
    let how = headers.get(CONTENT_ENCODING);
    how.is_some_and(|how| !how.as_bytes().eq_ignore_ascii_case(b"identity"))
}

async fn next(body: &mut Body) -> Result<Option<Bytes>> {
    loop {
        match body.chunk().await? {
            Some(piece) if piece.is_empty() => {}
            other => return Ok(other),
        }
    }
}
