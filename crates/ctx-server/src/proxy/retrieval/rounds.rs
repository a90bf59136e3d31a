//! Continues an answer over the calls of ctx's tools.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use ctx_core::{Error, ErrorKind, ToolCall};
use ctx_dialect::wire::{Intercept, Round, results, with_elements};
use futures_util::stream;

use super::super::Proxy;
use super::super::client_request::ClientRequest;
use super::super::held_answer::HeldAnswer;
use super::super::pending::{AnswerStream, PendingRequest};
use super::super::send::send;
use super::{AnsweredCalls, NAMES, Retrieval};

/// Maximum number of rounds of one answer.
const MOST_ROUNDS: usize = 8;

/// Replaces a result with which the request was refused.
const REFUSED: &str = "[ctx: the provider refused the request with this text: go on without it]";

/// What is needed to send a request again with results.
pub(in crate::proxy) struct Exchange {
    pub(in crate::proxy) proxy: Arc<Proxy>,
    pub(in crate::proxy) client_request: Arc<ClientRequest>,
    pub(in crate::proxy) retrieval: Retrieval,
    /// The last body sent.
    pub(in crate::proxy) body: Bytes,
    pub(in crate::proxy) window: u64,
}

struct Rounds {
    exchange: Exchange,
    stream: AnswerStream,
    intercept: Intercept,
    count: usize,
}

/// Returns the bytes of an answer, over as many rounds as the model wants, within the limits.
pub(in crate::proxy) fn retrieving(
    exchange: Exchange,
    answer: HeldAnswer,
    pending: PendingRequest,
) -> Body {
    let intercept = Intercept::new(exchange.client_request.protocol(), NAMES);
    let stream = AnswerStream::new(answer, pending, None);
    let rounds = Rounds { exchange, stream, intercept, count: 0 };
    Body::from_stream(stream::unfold(Some(rounds), |rounds| async move {
        let mut rounds = rounds?;
        match rounds.next().await {
            Ok((piece, true)) => Some((Ok::<_, Error>(piece), Some(rounds))),
            Ok((piece, false)) => {
                rounds.stream.done();
                Some((Ok(piece), None))
            }
            Err(error) => {
                rounds.stream.failed();
                Some((Err(error), None))
            }
        }
    }))
}

impl Rounds {
    /// Returns the next bytes for the client, and whether there are more.
    async fn next(&mut self) -> Result<(Bytes, bool), Error> {
        loop {
            if let Some(piece) = self.stream.next().await? {
                let out = self.intercept.push(&piece);
                if !out.is_empty() {
                    return Ok((out.into(), true));
                }
                continue;
            }
            let mut round = self.intercept.end_round();
            if let Some((beside, calls)) = round.postponed.take() {
                self.exchange.retrieval.postpone(self.exchange.window);
                let answered = self.answered(calls).await;
                let Exchange { proxy, retrieval, .. } = &self.exchange;
                retrieval.keep(proxy, beside, answered).await;
            }
            if round.calls.is_empty() {
                return Ok((round.out.into(), false));
            }
            let mut out = std::mem::take(&mut round.out);
            let next = self.next_round(round).await?;
            match next {
                Some(answer) => {
                    self.stream.next_round(answer);
                    if !out.is_empty() {
                        return Ok((out.into(), true));
                    }
                }
                None => {
                    out.extend(self.intercept.give_up());
                    return Ok((out.into(), false));
                }
            }
        }
    }

    async fn answered(&mut self, calls: Vec<ToolCall>) -> AnsweredCalls {
        let mut answered = Vec::with_capacity(calls.len());
        for call in calls {
            let text = self.exchange.retrieval.answer(&call).await;
            self.stream.count_retrieval();
            answered.push((call, text));
        }
        answered
    }

    /// Sends the request again with the results; `None` if the answer must end without them.
    ///
    /// # Errors
    ///
    /// The provider failed.
    async fn next_round(&mut self, round: Round) -> Result<Option<HeldAnswer>, Error> {
        self.count += 1;
        if self.count > MOST_ROUNDS {
            return Ok(None);
        }
        let mut answered = self.answered(round.calls).await;
        for is_last in [false, true] {
            if is_last {
                answered.iter_mut().for_each(|(_, text)| REFUSED.clone_into(text));
            }
            let exchange = &mut self.exchange;
            let protocol = exchange.client_request.protocol();
            let more = format!("{},{}", round.answer, results(protocol, &answered));
            let body = String::from_utf8_lossy(&exchange.body);
            let Some(body) = with_elements(protocol, &body, &more) else { return Ok(None) };
            let body = Bytes::from(body);
            let window = exchange.window;
            let answer =
                send(&exchange.proxy, &exchange.client_request, body.clone(), window, None).await?;
            let status = answer.response.status;
            if status.is_success() && answer.overflow.is_none() {
                exchange.body = body;
                return Ok(Some(answer));
            }
            if answer.overflow.is_none() && ![400, 413, 422].contains(&status.as_u16()) {
                let what = "the provider failed after ctx answered a call of the model";
                return Err(Error::new(ErrorKind::Upstream, what).with("status", status));
            }
        }
        Ok(None)
    }
}
