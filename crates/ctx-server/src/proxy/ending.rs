//! What becomes of a request, noted at its end, whichever end that is.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use bytes::Bytes;
use ctx_core::Error;
use ctx_dialect::wire::{Seen, Watch};
use ctx_model::Catalogue;
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;

use super::Proxy;
use super::conversation::Conversation;
use super::judge::Answer;
use crate::trace::{Outcome, Record};

/// The smallest request by which the counter is corrected: in smaller ones what providers add by
/// themselves outweighs the rest.
const TELLING: u64 = 500;

/// A request on its way. Whoever drops it before its end has hung up.
pub(super) struct Ending {
    proxy: Arc<Proxy>,
    protocol: &'static str,
    record: Option<Box<Record>>,
    /// The conversation, and what its request was estimated at.
    conversation: Option<(Arc<Conversation>, u64)>,
    seat: Arc<OwnedSemaphorePermit>,
}

impl Ending {
    pub(super) fn new(
        proxy: Arc<Proxy>,
        protocol: &'static str,
        seat: OwnedSemaphorePermit,
    ) -> Self {
        Self { proxy, protocol, record: None, conversation: None, seat: Arc::new(seat) }
    }

    /// Its seat, for work that goes on when the client hung up.
    pub(super) fn seat(&self) -> Arc<OwnedSemaphorePermit> {
        self.seat.clone()
    }

    /// Takes over what is known of the request by now.
    pub(super) fn record(
        &mut self,
        record: Record,
        conversation: Arc<Conversation>,
        estimated: u64,
    ) {
        self.record = Some(Box::new(record));
        self.conversation = Some((conversation, estimated));
    }

    /// What is known of it, to be changed.
    pub(super) fn known(&mut self) -> Option<&mut Record> {
        self.record.as_deref_mut()
    }

    /// Notes that it never was asked: its own fault.
    pub(super) fn rejected(self) {
        let mut this = self;
        this.proxy.metrics.request(this.protocol, "rejected");
        // There is nothing to be said at the drop any more.
        this.protocol = "";
    }

    /// Notes that the provider gave no answer.
    pub(super) fn fails(&mut self) {
        self.ends(Outcome::Failed, None);
    }

    /// Notes an end.
    fn ends(&mut self, outcome: Outcome, watch: Option<&Watch>) {
        if self.protocol.is_empty() {
            return;
        }
        let protocol = std::mem::take(&mut self.protocol);
        let metrics = &self.proxy.metrics;
        metrics.request(protocol, outcome.name());
        let usage = watch.and_then(Watch::usage);
        if let Some(usage) = usage {
            metrics.output_tokens.inc_by(usage.output);
        }
        let Some(mut record) = self.record.take() else { return };
        record.outcome = outcome;
        if let Some((conversation, _)) = &self.conversation
            && outcome == Outcome::Ok
            && record.attempts > 1
        {
            conversation.recovered();
        }
        if let Some(usage) = usage {
            record.prompt_tokens = Some(usage.prompt());
            record.cached_tokens = Some(usage.cache_read);
            let model = record.model.as_deref().and_then(|name| Catalogue::embedded().find(name));
            record.cost_usd = model.map(|model| model.prices.cost(&usage).0);
            if let Some((conversation, estimated)) = &self.conversation
                && outcome == Outcome::Ok
                && *estimated >= TELLING
                && is_plausible(usage.prompt(), *estimated)
            {
                conversation.report(usage.prompt(), *estimated);
            }
        }
        metrics.raw_tokens.inc_by(record.raw_tokens.get());
        metrics.sent_tokens.inc_by(record.sent_tokens.get());
        metrics.added.observe(record.millis / 1_000.0);
        self.proxy.trace.add(*record);
        self.proxy.note_unwritten();
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.ends(Outcome::Abandoned, None);
    }
}

/// Whether a provider may have counted so: some count only what was not in their cache.
pub(super) fn is_plausible(counted: u64, estimated: u64) -> bool {
    counted >= estimated / 4 && counted <= estimated.saturating_mul(4)
}

/// An answer on its way to the client.
struct Passing {
    answer: Answer,
    ending: Ending,
    /// Bytes that are to come, where the provider said how many.
    left: Option<u64>,
}

/// The bytes of an answer as they come, with what was held back first.
pub(super) fn passing(answer: Answer, ending: Ending) -> Body {
    let length = answer.response.headers.get(CONTENT_LENGTH);
    let left = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let passing = Passing { answer, ending, left };
    let pieces = stream::unfold(Some(passing), |state| async move {
        let mut passing = state?;
        match passing.next().await {
            Ok(Some(piece)) => Some((Ok::<Bytes, Error>(piece), Some(passing))),
            Ok(None) => {
                passing.done();
                None
            }
            Err(error) => {
                passing.ending.ends(Outcome::Failed, Some(&passing.answer.watch));
                Some((Err(error), None))
            }
        }
    });
    Body::from_stream(pieces)
}

impl Passing {
    async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let piece = match self.answer.held.pop_front() {
            Some(piece) => piece,
            None if self.answer.is_whole => return Ok(None),
            None => match self.answer.response.body.chunk().await? {
                Some(piece) => {
                    self.answer.watch.push(&piece);
                    piece
                }
                None => return Ok(None),
            },
        };
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(piece.len() as u64);
            // Nobody asks for more when all that was announced has come.
            if *left == 0 {
                self.done();
            }
        }
        Ok(Some(piece))
    }

    fn done(&mut self) {
        let watch = &mut self.answer.watch;
        watch.end();
        let is_ok = self.answer.response.status.is_success();
        let outcome = match (is_ok, watch.seen(), watch.failure()) {
            (false, ..) | (true, Seen::Failure, _) => Outcome::Refused,
            (true, _, Some(_)) => Outcome::Failed,
            (true, _, None) => Outcome::Ok,
        };
        self.ending.ends(outcome, Some(&*watch));
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        // A client that has read the last event may close before the connection does.
        let watch = &self.answer.watch;
        if watch.is_finished() && self.answer.response.status.is_success() {
            self.ending.ends(Outcome::Ok, Some(watch));
        } else {
            self.ending.ends(Outcome::Abandoned, Some(watch));
        }
    }
}
