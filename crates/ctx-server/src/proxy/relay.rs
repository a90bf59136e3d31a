//! Relays one request from the client to the provider and back.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::extract::Request;
use axum::http::header::CONTENT_LENGTH;
use axum::response::Response;
use bytes::Bytes;
use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::wire::{
    Intercept, Request as WireRequest, Route, SummaryRequest, context_compaction,
    has_context_edits, with_compaction,
};
use ctx_trace::Record;
use tokio::time::Instant;

use super::body::{ContentEncoding, RequestBody};
use super::client_compaction::{self, Verdict};
use super::client_request::ClientRequest;
use super::client_summaries::{self, AskedSummary, recognised, remember, summarise_quoted};
use super::config::{ClientCompaction, CompactionBy};
use super::held_answer::{HeldAnswer, is_encoded};
use super::pending::{PendingRequest, passing};
use super::prepare::{Prepared, Purpose, Retry, prepare};
use super::provider_compaction::{self, CompactibleRequest};
use super::retrieval::{Exchange, Retrieval, retrieving};
use super::send::send;
use super::stored_responses::refers;
use super::{Family, Proxy, body, failure, headers};

/// Maximum number of retries with a smaller request after an overflow.
const MOST_RECOVERIES: u32 = 3;

/// Larger bodies are parsed on a blocking thread, and those that refer to a longer history.
const LARGE: usize = 256 << 10;

pub(super) async fn relay(proxy: Arc<Proxy>, route: Route, request: Request) -> Response {
    let protocol = route.protocol;
    let (parts, content) = request.into_parts();
    let encoding = ContentEncoding::of(&parts.headers);
    let admitted = body::admit(&proxy, protocol.name(), &parts.headers, content, encoding).await;
    let (content, permit) = match admitted {
        Ok(admitted) => admitted,
        Err(refused) => return failure::answer(&route, refused.status, &refused.error),
    };
    let pending = PendingRequest::new(proxy.clone(), protocol.name(), permit);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let family = Family::of_conversation(&route, path);
    let client_request = Arc::new(ClientRequest {
        url: proxy.settings.upstreams.url(family, path),
        family,
        query: parts.uri.query().map(str::to_owned),
        headers: headers::to_upstream(parts.headers, true),
        route,
    });
    Relay { proxy, client_request, content, pending, spent: 0.0, summary: None }.run().await
}

struct Relay {
    proxy: Arc<Proxy>,
    client_request: Arc<ClientRequest>,
    content: RequestBody,
    pending: PendingRequest,
    /// Milliseconds spent in ctx.
    spent: f64,
    /// The summary of a compaction of `context_management` made for this request, and the tokens that
    /// it was made of.
    summary: Option<(String, u64)>,
}

impl Relay {
    async fn run(mut self) -> Response {
        let (route, body) = (&self.client_request.route, &self.content.bytes);
        let wants_compaction = client_compaction::asks_for_compaction(route, body);
        if wants_compaction && self.proxy.compacts(self.client_request.family) {
            return self.compact().await;
        }
        if self.proxy.settings.config.client_compaction == ClientCompaction::Ctx
            && !route.is_bedrock
            && let Some(asked) = recognised(&self.proxy, &self.client_request, body)
            && let Some(text) = self.summarise(asked).await
        {
            return self.summarised(&text, false);
        }
        if let Some(summary) = self.compact_context().await {
            return self.summarised(&summary, true);
        }
        let mut prepared = match self.prepare(Purpose::Send).await {
            Ok(prepared) => prepared,
            Err(_) if wants_compaction && self.may_compact() => return self.compact().await,
            Err(error) => {
                self.pending.rejected();
                let status = failure::status(&error);
                return failure::answer(&self.client_request.route, status, &error);
            }
        };
        self.pending.stores(prepared.stored.take());
        if let Some(asked) = self.asked(&prepared) {
            let conversation =
                prepared.context.as_ref().map(|context| context.conversation.clone());
            let (proxy, client_request) = (&self.proxy, &self.client_request);
            let body = &self.content.bytes;
            self.pending.asked =
                AskedSummary::of(proxy, client_request, asked, body, conversation).await;
        }
        self.exchange(prepared, wants_compaction).await
    }

    /// Sends a request, in a smaller form after each refusal, until it is answered.
    async fn exchange(mut self, mut prepared: Prepared, wants_compaction: bool) -> Response {
        let mut attempt = 1;
        loop {
            self.note(&mut prepared, attempt);
            let mut answer = match self.send(&prepared).await {
                Ok(answer) => answer,
                Err(error) => return self.failed(&error),
            };
            if wants_compaction && self.may_compact() && self.is_uncompacted(&mut answer).await {
                return self.compact().await;
            }
            if self.refuses_edits(&mut answer, &prepared).await {
                if let Some(summary) = self.compact_context().await {
                    return self.summarised(&summary, true);
                }
                if let Ok(again) = self.prepare(Purpose::Send).await {
                    prepared = again;
                    continue;
                }
            }
            let Some(overflow) = answer.overflow.filter(|_| prepared.can_be_smaller()) else {
                return self.answer(answer, &prepared, attempt);
            };
            if attempt > MOST_RECOVERIES {
                return self.answer(answer, &prepared, attempt);
            }
            let retry = Retry { attempt, most: MOST_RECOVERIES, overflow };
            match self.prepare(Purpose::Retry(retry)).await {
                // An unchanged request would be refused again.
                Ok(again) if again.body != prepared.body => {
                    prepared = again;
                    self.pending.stores(prepared.stored.take());
                }
                _ => return self.answer(answer, &prepared, attempt),
            }
            attempt += 1;
        }
    }

    /// Returns the client's request for a summary, if a prepared request is one.
    fn asked(&self, prepared: &Prepared) -> Option<SummaryRequest> {
        let is_off = self.proxy.settings.config.client_compaction == ClientCompaction::Off;
        match &prepared.context {
            Some(context) => context.asked.filter(|_| !is_off),
            None => recognised(&self.proxy, &self.client_request, &self.content.bytes),
        }
    }

    fn may_compact(&self) -> bool {
        self.proxy.settings.config.compaction != CompactionBy::Upstream
    }

    /// Whether the provider refuses a request because of its `context_management`, as gateways do.
    /// Remembers that.
    async fn refuses_edits(&self, answer: &mut HeldAnswer, prepared: &Prepared) -> bool {
        const FIELD: &str = "context_management";
        if !matches!(answer.response.status.as_u16(), 400 | 422) {
            return false;
        }
        let body = std::str::from_utf8(&prepared.body).unwrap_or_default();
        if !has_context_edits(self.client_request.protocol(), body) {
            return false;
        }
        answer.hold_all().await;
        // An error of a value in it names its path.
        let text = answer.text().to_lowercase();
        let is_unknown =
            ["extra", "permitted", "unknown", "unrecognized", "unsupported", "unexpected"];
        let refuses = text.contains(FIELD)
            && !text.contains("context_management.")
            && is_unknown.iter().any(|word| text.contains(word));
        if refuses {
            self.proxy.refuses_edits.store(true, Ordering::Relaxed);
            let url = self.proxy.settings.upstreams.base(self.client_request.family);
            self.proxy.warn(&format!("{url} does not know {FIELD}: ctx makes its edits"));
        }
        refuses
    }

    /// Whether ctx must compact, because the provider did not. Remembers a
    /// provider that does not compact.
    async fn is_uncompacted(&self, answer: &mut HeldAnswer) -> bool {
        answer.hold_all().await;
        let verdict = Verdict::of(answer);
        if verdict == Verdict::Cannot {
            self.proxy.set_cannot_compact(self.client_request.family);
        }
        verdict != Verdict::Pass
    }

    /// Compacts the history, and answers with an item that replaces it.
    async fn compact(mut self) -> Response {
        let mut prepared = match self.prepare(Purpose::Compact).await {
            Ok(prepared) => prepared,
            Err(error) => return self.failed(&error),
        };
        self.note(&mut prepared, 1);
        let sent = prepared.context.as_ref().map_or(0, |context| context.record.sent_tokens.get());
        let content = prepared.compacted.unwrap_or_default();
        let body = String::from_utf8_lossy(&prepared.body);
        let route = &self.client_request.route;
        let response = client_compaction::answer(route, &body, &content, sent);
        self.pending.answered();
        response
    }

    /// Summarises the history for the client; `None` if that fails, so that its model does.
    async fn summarise(&mut self, asked: SummaryRequest) -> Option<String> {
        let body = self.content.bytes.clone();
        let text = std::str::from_utf8(&body).ok()?;
        let request = WireRequest::parse(&self.client_request.route, text).ok()?;
        if let Some(known) = asked.repeated(&request) {
            return Some(known);
        }
        let summary = match asked.is_quoted() {
            true => summarise_quoted(&self.proxy, &self.client_request, asked, &request).await,
            false => {
                let history = Bytes::from(asked.history(&request).ok()??);
                let purpose = Purpose::Summarise(asked.focus(&request));
                let prepared = self.prepare_body(history, purpose).await;
                self.prepared_summary(asked, prepared).await
            }
        };
        let summary = summary.unwrap_or_else(|error| {
            self.proxy.warn(&format!("the client's model writes a summary: {error}"));
            None
        });
        summary.map(|summary| asked.answer(&summary))
    }

    /// Returns the summary of a prepared request, and remembers it.
    async fn prepared_summary(
        &mut self,
        asked: SummaryRequest,
        prepared: Result<Prepared>,
    ) -> Result<Option<String>> {
        let mut prepared = prepared?;
        self.note(&mut prepared, 1);
        let Some((context, text)) = prepared.context.zip(prepared.compacted) else {
            return Ok(None);
        };
        let kept = asked.answer(&text);
        let kept = asked.summary(&kept).unwrap_or_default();
        remember(&self.proxy, &self.client_request, &context.conversation, kept).await?;
        Ok(Some(text))
    }

    /// Makes the compaction that `context_management` asks for, if the provider refuses that: the
    /// history goes on with the summary, as if the client had received it. Returns the summary if
    /// the client wants it alone.
    async fn compact_context(&mut self) -> Option<String> {
        if !self.proxy.refuses_edits.load(Ordering::Relaxed) {
            return None;
        }
        let body = self.content.bytes.clone();
        let text = std::str::from_utf8(&body).ok()?;
        if !has_context_edits(self.client_request.protocol(), text) {
            return None;
        }
        let request = WireRequest::parse(&self.client_request.route, text).ok()?;
        let asked = context_compaction(&request)?;
        let purpose = Purpose::Summarise(asked.instructions);
        let mut prepared = match self.prepare_body(body.clone(), purpose).await {
            Ok(prepared) => prepared,
            Err(error) => {
                self.proxy.warn(&format!("a history is not compacted for its client: {error}"));
                return None;
            }
        };
        self.note(&mut prepared, 1);
        let summary = prepared.compacted?;
        if let Some(context) = prepared.context
            && let Some(compactible) =
                CompactibleRequest::of(&self.proxy, &self.client_request, &self.content)
        {
            compactible.keep_own(summary.clone(), context.conversation.id.clone()).await;
        }
        if asked.pauses {
            return Some(summary);
        }
        self.content.bytes = Bytes::from(with_compaction(&request, &summary)?);
        let tokens = self.pending.known().map_or(0, |record| record.raw_tokens.get());
        self.summary = Some((summary, tokens));
        None
    }

    /// Answers with a summary, which may be a compaction of Anthropic.
    fn summarised(mut self, text: &str, is_compaction: bool) -> Response {
        let tokens = self.pending.known().map_or(0, |record| record.raw_tokens.get());
        let body = String::from_utf8_lossy(&self.content.bytes);
        let response =
            client_summaries::answer(&self.client_request, &body, text, is_compaction, tokens);
        self.pending.answered();
        response
    }

    async fn prepare(&mut self, purpose: Purpose) -> Result<Prepared> {
        self.prepare_body(self.content.bytes.clone(), purpose).await
    }

    async fn prepare_body(&mut self, content: Bytes, purpose: Purpose) -> Result<Prepared> {
        let began = Instant::now();
        let (proxy, client_request) = (self.proxy.clone(), self.client_request.clone());
        // The work continues if the client disconnects: its summary will be billed anyway, and the
        // next attempt can use it. The permit and the memory are held until then.
        let (permit, space) = (self.pending.permit(), self.content.space());
        let large = self.proxy.large.clone();
        let work = async move {
            let _held = (permit, space);
            prepare(&proxy, &client_request, content, purpose).await
        };
        let (route, body) = (&self.client_request.route, &self.content.bytes);
        let is_large = body.len() > LARGE
            || client_compaction::has_reference(route, body)
            || provider_compaction::may_be_in(body)
            || refers(route, body);
        let working = if is_large {
            let large_permit = large.acquire_owned().await;
            let runtime = tokio::runtime::Handle::current();
            tokio::task::spawn_blocking(move || {
                let _large_permit = large_permit;
                runtime.block_on(work)
            })
        } else {
            tokio::spawn(work)
        };
        let prepared = working.await;
        self.spent += began.elapsed().as_secs_f64() * 1_000.0;
        prepared.unwrap_or_else(|_| {
            let what = "internal error of ctx in this request";
            Err(Error::new(ErrorKind::Contract, what).hint("please report this"))
        })
    }

    /// Takes the record of a prepared request. Its entries are not needed there any more.
    fn note(&mut self, prepared: &mut Prepared, attempt: u32) {
        let Some(context) = &mut prepared.context else { return };
        let entries = std::mem::take(&mut context.record.entries);
        let mut record = Record { entries, ..context.record.clone() };
        if let Some(earlier) = self.pending.known() {
            record.number = earlier.number;
            record.compaction = record.compaction.or_else(|| earlier.compaction.take());
            for (layer, count) in &earlier.actions {
                *record.actions.entry(layer.clone()).or_default() += count;
            }
        }
        record.attempts = attempt;
        record.millis = self.spent;
        self.pending.record(record, context.conversation.clone(), context.estimated);
    }

    async fn send(&mut self, prepared: &Prepared) -> Result<HeldAnswer> {
        let applied = prepared.applied_edits.as_deref();
        let edits = (applied.is_some() || self.summary.is_some()).then(|| {
            let answer = Intercept::new(self.client_request.protocol(), &[]);
            answer.with_context_edits(self.summary.clone(), applied)
        });
        let (proxy, client_request) = (&self.proxy, &self.client_request);
        send(proxy, client_request, prepared.body.clone(), prepared.window(), edits).await
    }

    fn answer(mut self, mut answer: HeldAnswer, prepared: &Prepared, attempt: u32) -> Response {
        if answer.overflow.is_none() && answer.response.status.is_success() {
            if attempt > 1 {
                self.proxy.metrics.recoveries.inc();
            }
            if let Some(context) = &prepared.context {
                context.conversation.answered(context.sent.clone());
                if let Some(broken) = context.record.prefix_break {
                    self.proxy.metrics.prefix_break(broken.cause.name(), broken.tokens.get());
                }
            }
        }
        if let Some(record) = self.pending.known() {
            record.status = Some(answer.response.status.as_u16());
        }
        // A compaction of ctx is audited already.
        if self.summary.is_none() {
            let (proxy, client_request) = (&self.proxy, &self.client_request);
            self.pending.compactible = CompactibleRequest::of(proxy, client_request, &self.content);
        }
        let status = answer.response.status;
        let context = prepared.context.as_ref().filter(|_| prepared.retrieves);
        let is_readable = status.is_success() && !is_encoded(&answer.response.headers);
        let retrieval = context.filter(|_| is_readable).map(Retrieval::new);
        let mut headers = headers::to_client(std::mem::take(&mut answer.response.headers));
        let body = match retrieval {
            Some(retrieval) => {
                // The length of all rounds is not known.
                headers.remove(CONTENT_LENGTH);
                let exchange = Exchange {
                    retrieval,
                    body: prepared.body.clone(),
                    window: prepared.window(),
                    proxy: self.proxy,
                    client_request: self.client_request,
                };
                retrieving(exchange, answer, self.pending)
            }
            None => {
                // The length is needed again while the answer passes.
                if let Some(length) = headers.get(CONTENT_LENGTH) {
                    answer.response.headers.insert(CONTENT_LENGTH, length.clone());
                }
                passing(answer, self.pending)
            }
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    fn failed(mut self, error: &Error) -> Response {
        self.pending.fails();
        failure::answer(&self.client_request.route, failure::status(error), error)
    }
}
