//! Records the outcome of a request, however it ends.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::CONTENT_LENGTH;
use bytes::Bytes;
use ctx_core::{Error, Usage};
use ctx_dialect::wire::{AnswerState, Watch};
use ctx_model::Catalogue;
use ctx_runtime::trace_compaction;
use ctx_trace::{Record, RequestOutcome, is_plausible};
use futures_util::stream;
use tokio::sync::OwnedSemaphorePermit;
use tracing::Span;
use tracing::field::Empty;

use super::Proxy;
use super::client_summaries::AskedSummary;
use super::conversation::Conversation;
use super::held_answer::HeldAnswer;
use super::provider_compaction::CompactibleRequest;
use super::stored_responses::StoredRequest;

/// Minimum size of a request that corrects the counter: in smaller ones, the tokens added by
/// providers outweigh the rest.
const MIN_CALIBRATION_TOKENS: u64 = 500;

/// A pending request. Dropping it early means that the client disconnected.
pub(super) struct PendingRequest {
    proxy: Arc<Proxy>,
    protocol: &'static str,
    record: Option<Box<Record>>,
    /// The conversation, and the estimate of its request.
    conversation: Option<(Arc<Conversation>, u64)>,
    permit: Arc<OwnedSemaphorePermit>,
    /// The request, if the provider stores its answer.
    stored: Option<StoredRequest>,
    /// The client's request for a summary, if it is one.
    pub(super) asked: Option<AskedSummary>,
    /// The request, if the provider may compact it.
    pub(super) compactible: Option<Arc<CompactibleRequest>>,
    /// The rounds before the last one.
    earlier: Option<EarlierRounds>,
    span: Span,
}

/// The usage of the rounds of an answer before the last one.
#[derive(Clone, Copy, Debug)]
struct EarlierRounds {
    first: Usage,
    output: u64,
    cost: f64,
}

impl PendingRequest {
    pub(super) fn new(
        proxy: Arc<Proxy>,
        protocol: &'static str,
        permit: OwnedSemaphorePermit,
    ) -> Self {
        Self {
            proxy,
            protocol,
            record: None,
            conversation: None,
            permit: Arc::new(permit),
            stored: None,
            asked: None,
            compactible: None,
            earlier: None,
            span: span_of(protocol),
        }
    }

    /// Returns the permit, for work that continues after the client has disconnected.
    pub(super) fn permit(&self) -> Arc<OwnedSemaphorePermit> {
        self.permit.clone()
    }

    /// Sets the record of the request.
    pub(super) fn record(
        &mut self,
        record: Record,
        conversation: Arc<Conversation>,
        estimated: u64,
    ) {
        self.record = Some(Box::new(record));
        self.conversation = Some((conversation, estimated));
    }

    /// Sets the request of an answer that the provider stores.
    pub(super) fn stores(&mut self, request: Option<StoredRequest>) {
        self.stored = request;
    }

    /// Returns the record, for updates.
    pub(super) fn known(&mut self) -> Option<&mut Record> {
        self.record.as_deref_mut()
    }

    /// Records that the request was rejected by ctx.
    pub(super) fn rejected(self) {
        let mut this = self;
        this.proxy.metrics.request(this.protocol, "rejected");
        this.span.record("error.type", "rejected");
        // Nothing more to record on drop.
        this.protocol = "";
    }

    /// Records that the provider gave no answer.
    pub(super) fn fails(&mut self) {
        self.ends(RequestOutcome::Failed, None);
    }

    /// Records that ctx itself gave the answer.
    pub(super) fn answered(&mut self) {
        if let Some(record) = &mut self.record {
            record.status = Some(200);
        }
        self.ends(RequestOutcome::Ok, None);
    }

    /// Records an outcome.
    fn ends(&mut self, outcome: RequestOutcome, watch: Option<&Watch>) {
        if self.protocol.is_empty() {
            return;
        }
        let protocol = std::mem::take(&mut self.protocol);
        let metrics = &self.proxy.metrics;
        metrics.request(protocol, outcome.name());
        let usage = watch.and_then(Watch::usage);
        let output = |earlier: EarlierRounds| earlier.output;
        let output = self.earlier.map_or(0, output) + usage.map_or(0, |usage| usage.output);
        metrics.output_tokens.inc_by(output);
        let Some(mut record) = self.record.take() else { return };
        record.outcome = outcome;
        if let Some(asked) = self.asked.take().filter(|_| outcome == RequestOutcome::Ok) {
            asked.end(&self.proxy);
        }
        if outcome == RequestOutcome::Refused {
            let status = record.status.unwrap_or_default();
            let note =
                format!("conversation {}: refused by the provider ({status})", record.session);
            (self.proxy.settings.note)(&note);
        }
        if let Some((conversation, _)) = &self.conversation
            && outcome == RequestOutcome::Ok
            && record.attempts > 1
        {
            conversation.recovered();
        }
        // The results of later rounds are not part of the estimate.
        if let Some(first) = self.earlier.map(|earlier| earlier.first).or(usage) {
            record.prompt_tokens = Some(first.prompt());
            record.cached_tokens = Some(first.cache_read);
            let last = watch.map_or(Some(0.0), |watch| cost(&record, watch));
            record.cost_usd = last.map(|last| last + self.earlier.map_or(0.0, |all| all.cost));
            if let Some((conversation, estimated)) = &self.conversation
                && outcome == RequestOutcome::Ok
                && *estimated >= MIN_CALIBRATION_TOKENS
                && is_plausible(first.prompt(), *estimated)
            {
                conversation.report(first.prompt(), *estimated);
            }
        }
        metrics.raw_tokens.inc_by(record.raw_tokens.get());
        metrics.sent_tokens.inc_by(record.sent_tokens.get());
        metrics.added.observe(record.millis / 1_000.0);
        finish_span(&self.span, &record, output);
        self.proxy.trace.add(*record);
        self.proxy.note_unwritten();
    }
}

/// Returns the span of a request, by the conventions of OpenTelemetry for generative AI.
fn span_of(protocol: &'static str) -> Span {
    tracing::info_span!(
        parent: None,
        "proxied",
        otel.name = "chat",
        otel.kind = "client",
        gen_ai.operation.name = "chat",
        gen_ai.provider.name = match protocol {
            "messages" => "anthropic",
            "gemini" => "gcp.gemini",
            "converse" => "aws.bedrock",
            _ => "openai",
        },
        gen_ai.request.model = Empty,
        gen_ai.conversation.id = Empty,
        gen_ai.usage.input_tokens = Empty,
        gen_ai.usage.output_tokens = Empty,
        gen_ai.usage.cache_read.input_tokens = Empty,
        http.response.status_code = Empty,
        error.r#type = Empty,
        ctx.tokens.received = Empty,
        ctx.tokens.sent = Empty,
    )
}

/// Adds the outcome to the span of a request, and its compaction as an event.
fn finish_span(span: &Span, record: &Record, output: u64) {
    if let Some(model) = &record.model {
        span.record("gen_ai.request.model", model);
        span.record("otel.name", format!("chat {model}"));
    }
    span.record("gen_ai.conversation.id", &record.session);
    // Collectors get unsigned numbers as text.
    span.record("gen_ai.usage.input_tokens", record.prompt_tokens.map(u64::cast_signed));
    span.record("gen_ai.usage.output_tokens", output.cast_signed());
    let cached = record.cached_tokens.map(u64::cast_signed);
    span.record("gen_ai.usage.cache_read.input_tokens", cached);
    span.record("http.response.status_code", record.status.map(i64::from));
    span.record("ctx.tokens.received", record.raw_tokens.get().cast_signed());
    span.record("ctx.tokens.sent", record.sent_tokens.get().cast_signed());
    if record.outcome != RequestOutcome::Ok {
        span.record("error.type", record.outcome.name());
    }
    if let Some(made) = &record.compaction {
        let details = made.details.as_ref();
        span.in_scope(|| trace_compaction(made.tokens_before, made.tokens_after, details));
    }
}

/// Returns the cost of an answer, with the compactions made for it, at the catalogue's prices.
fn cost(record: &Record, watch: &Watch) -> Option<f64> {
    let prices = Catalogue::embedded().find(record.model.as_deref()?)?.prices;
    let usages = watch.usage().into_iter().chain(watch.compaction_usage().iter().copied());
    Some(usages.map(|usage| prices.cost(&usage).0).sum())
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        self.ends(RequestOutcome::Abandoned, None);
    }
}

/// An answer that is being sent to the client.
pub(super) struct AnswerStream {
    answer: HeldAnswer,
    pending: PendingRequest,
    /// The number of remaining bytes, if announced.
    left: Option<u64>,
    /// Whether another round follows.
    continues: bool,
    /// The number of compactions in this round whose originals are kept.
    kept: usize,
}

/// Returns the bytes of an answer, starting with the held ones.
pub(super) fn passing(answer: HeldAnswer, pending: PendingRequest) -> Body {
    let length = answer.response.headers.get(CONTENT_LENGTH);
    let left = length.and_then(|length| length.to_str().ok()?.parse().ok());
    let passing = AnswerStream::new(answer, pending, left);
    let pieces = stream::unfold(Some(passing), |state| async move {
        let mut passing = state?;
        match passing.next().await {
            Ok(Some(piece)) => Some((Ok::<Bytes, Error>(piece), Some(passing))),
            Ok(None) => {
                passing.done();
                None
            }
            Err(error) => {
                passing.failed();
                Some((Err(error), None))
            }
        }
    });
    Body::from_stream(pieces)
}

impl AnswerStream {
    pub(super) fn new(answer: HeldAnswer, pending: PendingRequest, left: Option<u64>) -> Self {
        Self { answer, pending, left, continues: false, kept: 0 }
    }

    /// Continues with the answer of another round.
    pub(super) fn next_round(&mut self, answer: HeldAnswer) {
        self.answer.watch.end();
        if let Some((request, answer)) =
            self.pending.stored.as_mut().zip(self.answer.watch.take_response())
        {
            request.add_round(&answer);
        }
        let watch = &self.answer.watch;
        if let Some((usage, record)) = watch.usage().zip(self.pending.record.as_ref()) {
            let none = EarlierRounds { first: usage, output: 0, cost: 0.0 };
            let earlier = self.pending.earlier.get_or_insert(none);
            earlier.output += usage.output;
            earlier.cost += cost(record, watch).unwrap_or_default();
        }
        (self.continues, self.kept) = (false, 0);
        self.answer = answer;
    }

    /// Records that ctx answers a call of the model.
    pub(super) fn count_retrieval(&mut self) {
        self.continues = true;
        if let Some(record) = self.pending.known() {
            *record.actions.entry("retrieval".to_owned()).or_default() += 1;
        }
    }

    /// Records that the answer broke off.
    pub(super) fn failed(&mut self) {
        self.pending.ends(RequestOutcome::Failed, Some(&self.answer.watch));
    }

    pub(super) async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        let piece = match self.answer.held.pop_front() {
            Some(piece) => piece,
            None if self.answer.is_whole => return Ok(None),
            None => match self.answer.chunk().await? {
                Some(piece) => {
                    self.answer.watch.push(&piece);
                    piece
                }
                None => return Ok(None),
            },
        };
        if let Some(asked) = &mut self.pending.asked {
            asked.push(&piece);
        }
        // Before the client can send them.
        self.keep_originals().await;
        if let Some(left) = &mut self.left {
            *left = left.saturating_sub(piece.len() as u64);
            // After the announced length, the body is not polled again.
            if *left == 0 {
                self.done();
            }
        }
        Ok(Some(piece))
    }

    /// Keeps what the compactions stand for that have arrived.
    async fn keep_originals(&mut self) {
        let Some(request) = self.pending.compactible.clone() else { return };
        while let Some(content) = self.answer.watch.compactions().get(self.kept) {
            self.kept += 1;
            let conversation = self.pending.conversation.as_ref().map(|(known, _)| &**known);
            let kept = request.keep(content.clone(), conversation).await;
            if let Some((record, mut kept)) = self.pending.record.as_mut().zip(kept) {
                kept.request = record.number;
                record.compaction.get_or_insert(kept);
            }
        }
    }

    /// Records the end of the answer.
    pub(super) fn done(&mut self) {
        let watch = &mut self.answer.watch;
        watch.end();
        let is_ok = self.answer.response.status.is_success();
        if let Some((mut request, answer)) = self.pending.stored.take().zip(watch.take_response()) {
            request.add_round(&answer);
            let proxy = &self.pending.proxy;
            if let Err(error) = proxy.responses.add(request) {
                proxy.warn(&format!("a restart will forget a history at the provider: {error}"));
            }
        }
        let outcome = match (is_ok, watch.state(), watch.failure()) {
            (false, ..) | (true, AnswerState::Failure, _) => RequestOutcome::Refused,
            (true, _, Some(_)) => RequestOutcome::Failed,
            (true, _, None) => RequestOutcome::Ok,
        };
        self.pending.ends(outcome, Some(&*watch));
    }
}

impl Drop for AnswerStream {
    fn drop(&mut self) {
        // A client may disconnect right after the last event.
        let watch = &self.answer.watch;
        if watch.is_finished() && !self.continues && self.answer.response.status.is_success() {
            self.pending.ends(RequestOutcome::Ok, Some(watch));
        } else {
            self.pending.ends(RequestOutcome::Abandoned, Some(watch));
        }
    }
}
