//! One request, from the client to the provider and back.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::Response;
use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::wire::Route;
use ctx_model::Method;
use tokio::time::Instant;

use super::asked::Asked;
use super::body::{Held, Packing};
use super::ending::{Ending, passing};
use super::judge::{Answer, judge};
use super::prepare::{Prepared, Smaller, prepare};
use super::{Family, Proxy, body, failure, headers};

/// How often a request is made smaller after the provider refused it.
const MOST_RECOVERIES: u32 = 3;

/// Bodies that are larger are read on a thread that others do not wait for.
const LARGE: usize = 256 << 10;

pub(super) async fn relay(proxy: Arc<Proxy>, route: Route, request: Request) -> Response {
    let protocol = route.protocol;
    let (parts, content) = request.into_parts();
    let packing = Packing::of(&parts.headers);
    let content = match packing {
        Ok(packing) => body::read(&proxy, &parts.headers, content, packing).await,
        Err(unread) => Err(unread),
    };
    let content = match content {
        Ok(content) => content,
        Err(unread) => {
            proxy.metrics.request(protocol.name(), "rejected");
            return failure::answer(Some(protocol), unread.status, &unread.error);
        }
    };
    // A client that is slow takes no seat.
    let Ok(seat) = proxy.seats.clone().try_acquire_owned() else {
        proxy.metrics.request(protocol.name(), "rejected");
        let busy = failure::busy(proxy.settings.config.max_requests);
        return failure::answer(Some(protocol), 503, &busy);
    };
    let ending = Ending::new(proxy.clone(), protocol.name(), seat);
    let path = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let family = Family::of_conversation(protocol, path);
    let asked = Arc::new(Asked {
        url: proxy.settings.upstreams.url(family, path),
        family,
        query: parts.uri.query().map(str::to_owned),
        headers: headers::to_upstream(parts.headers, true),
        route,
    });
    Relay { proxy, asked, content, ending, spent: 0.0 }.run().await
}

struct Relay {
    proxy: Arc<Proxy>,
    asked: Arc<Asked>,
    content: Held,
    ending: Ending,
    /// Milliseconds that were spent here.
    spent: f64,
}

impl Relay {
    async fn run(mut self) -> Response {
        let mut prepared = match self.prepare(None).await {
            Ok(prepared) => prepared,
            Err(error) => {
                self.ending.rejected();
                let status = failure::status(&error);
                return failure::answer(Some(self.asked.protocol()), status, &error);
            }
        };
        let mut attempt = 1;
        loop {
            self.note(&prepared, attempt);
            let answer = match self.send(&prepared).await {
                Ok(answer) => answer,
                Err(error) => return self.failed(&error),
            };
            if prepared.told.as_ref().is_some_and(|told| told.wants_compaction)
                && answer.says("\"message\"")
                && !answer.says("\"compaction\"")
            {
                return self.failed(&uncompacted());
            }
            let Some(overflow) = answer.overflow.filter(|_| prepared.can_be_smaller()) else {
                return self.answer(answer, &prepared, attempt);
            };
            if attempt > MOST_RECOVERIES {
                return self.answer(answer, &prepared, attempt);
            }
            let smaller = Smaller { attempt, most: MOST_RECOVERIES, overflow };
            match self.prepare(Some(smaller)).await {
                // What did not change would be refused again.
                Ok(again) if again.body != prepared.body => prepared = again,
                _ => return self.answer(answer, &prepared, attempt),
            }
            attempt += 1;
        }
    }

    async fn prepare(&mut self, smaller: Option<Smaller>) -> Result<Prepared> {
        let began = Instant::now();
        let (proxy, asked, content) =
            (self.proxy.clone(), self.asked.clone(), self.content.bytes.clone());
        // A client that hangs up does not end the work: what was summarised by then is paid for, and
        // its next try finds it. It keeps its seat and its room until then.
        let (seat, space) = (self.ending.seat(), self.content.space());
        let large = self.proxy.large.clone();
        let work = async move {
            let _held = (seat, space);
            prepare(&proxy, &asked, content, smaller).await
        };
        let working = if self.content.bytes.len() > LARGE {
            let turn = large.acquire_owned().await;
            let runtime = tokio::runtime::Handle::current();
            tokio::task::spawn_blocking(move || {
                let _turn = turn;
                runtime.block_on(work)
            })
        } else {
            tokio::spawn(work)
        };
        let prepared = working.await;
        self.spent += began.elapsed().as_secs_f64() * 1_000.0;
        prepared.unwrap_or_else(|_| {
            let what = "ctx itself failed at this request";
            Err(Error::new(ErrorKind::Contract, what).hint("please report this"))
        })
    }

    fn note(&mut self, prepared: &Prepared, attempt: u32) {
        let Some(told) = &prepared.told else { return };
        let mut record = told.record.clone();
        if let Some(earlier) = self.ending.known() {
            record.number = earlier.number;
            record.compaction = record.compaction.or_else(|| earlier.compaction.take());
            for (layer, count) in &earlier.actions {
                *record.actions.entry(layer.clone()).or_default() += count;
            }
        }
        record.attempts = attempt;
        record.millis = self.spent;
        self.ending.record(record, told.conversation.clone(), told.estimated);
    }

    async fn send(&mut self, prepared: &Prepared) -> Result<Answer> {
        let request = ctx_model::Request {
            method: Method::POST,
            url: self.asked.url.clone(),
            headers: self.asked.headers.clone(),
            body: prepared.body.clone(),
        };
        // Whatever breaks off, it is not sent again: an answer may have begun, and is paid for.
        let response = self.proxy.client.send(request).await?;
        judge(self.asked.protocol(), response, prepared.window()).await
    }

    fn answer(mut self, mut answer: Answer, prepared: &Prepared, attempt: u32) -> Response {
        if answer.overflow.is_none() && answer.response.status.is_success() {
            if attempt > 1 {
                self.proxy.metrics.recoveries.inc();
            }
            if let Some(told) = &prepared.told {
                told.conversation.answered(told.sent.clone());
                if let Some(broken) = told.record.prefix_break {
                    self.proxy.metrics.prefix_break(broken.cause.name(), broken.tokens.get());
                }
            }
        }
        if let Some(record) = self.ending.known() {
            record.status = Some(answer.response.status.as_u16());
        }
        let status = answer.response.status;
        let headers = headers::to_client(std::mem::take(&mut answer.response.headers));
        // The length is looked at once more where the answer passes.
        if let Some(length) = headers.get(axum::http::header::CONTENT_LENGTH) {
            answer.response.headers.insert(axum::http::header::CONTENT_LENGTH, length.clone());
        }
        let mut response = Response::new(passing(answer, self.ending));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    fn failed(mut self, error: &Error) -> Response {
        self.ending.fails();
        failure::answer(Some(self.asked.protocol()), failure::status(error), error)
    }
}

/// What Codex is answered whose request for a compaction was taken for a question. It gives up either way.
fn uncompacted() -> Error {
    Error::new(ErrorKind::Capability, "the provider does not compact for Codex").hint(
        "start a new session with `model_provider = \"ctx\"` and `[model_providers.ctx]`, \
         `name = \"ctx\"`: Codex then compacts by itself (docs/server.md has all of it)",
    )
}
