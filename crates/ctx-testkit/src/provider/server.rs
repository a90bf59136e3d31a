//! The HTTP server: connections in, deliveries out.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use ctx_core::Usage;
use http_body_util::{BodyExt, Limited};
use hyper::StatusCode;
use hyper::body::Incoming;
use hyper::header::{CONTENT_LENGTH, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use super::answer::{self, Response};
use super::api::Api;
use super::builder::Scenario;
use super::delivery::{self, Action, Delivery};
use super::failure::FailureKind;
use super::ledger::{Ledger, Ticket};
use super::playbook::Playbook;
use super::prompt::Prompt;
use super::request::{Outcome, Request};
use super::script::{Cut, Moment, Reply, Wait};
use super::step::Step;
use super::strict::{Fault, Strict};
use super::wire::{self, Mode, Wire};

/// The maximum size of a request.
const MAX_REQUEST: usize = 256 << 20;
/// Byte offset of a cut in the middle of the headers: within the second line.
const IN_HEADERS: usize = 30;
/// Not HTTP, not UTF-8, no line break.
const GARBAGE: &[u8] = b"\x16\x03\x01\xff\xfe\x00\x80garbage\x00\xc3\x28\xa0\xa1";

/// The state that answers depend on.
pub(super) struct Shared {
    /// The settings. Its script is in the playbook.
    pub(super) scenario: Scenario,
    /// The checks of a strict provider.
    pub(super) strict: Option<Strict>,
    pub(super) playbook: Playbook,
    pub(super) ledger: Arc<Ledger>,
    pub(super) releases: Arc<Semaphore>,
}

/// How a request is handled.
struct Taken {
    step: Step,
    /// Why it is refused, if it is.
    refusal: Option<String>,
    /// The refusal of a strict provider, which uses no step.
    refused: Option<Fault>,
}

/// Answers the requests of a connection.
pub(super) async fn connection(stream: TcpStream, shared: Arc<Shared>) {
    let fault = wire::Fault::default();
    let wire = Wire::new(stream, fault.clone());
    let service = service_fn(|request| {
        let (shared, fault) = (Arc::clone(&shared), fault.clone());
        async move { Ok::<_, Infallible>(shared.answer(request, fault).await) }
    });
    // It ends with an error if a script or a client cuts it.
    let _ = http1::Builder::new().serve_connection(wire, service).await;
}

impl Shared {
    async fn answer(
        &self,
        incoming: hyper::Request<Incoming>,
        fault: wire::Fault,
    ) -> hyper::Response<Delivery> {
        let request = read(incoming).await;
        let known = request.api;
        let usage = match known {
            Some(api) if api.is_completion() => self.playbook.charge(&request, api),
            _ => Usage::default(),
        };
        let (request, ticket) = self.ledger.enter(Request { usage, ..request });
        let reported = self.scenario.report_window(&request);
        let (Some(api), None) = (known, &reported) else {
            let answer = reported.unwrap_or_else(|| answer::not_found(&request));
            return self.deliver(answer, &Step::default(), fault, ticket);
        };
        let Taken { step, refusal, refused } = self.take(&request, api);
        if step.wait_at == Moment::BeforeHeaders {
            delivery::wait(step.wait, &self.releases).await;
        }
        let asks = api != Api::Models && request.json.is_null();
        let response = match asks {
            true => answer::not_json(api),
            false => match &refused {
                Some(fault) => answer::refused(&request, api, fault),
                None => self.scenario.respond(&request, api, &step, self.strict.as_ref()),
            },
        };
        ticket.answered(response.status, refusal, response.usage);
        match (&step.reply, step.cut) {
            (Reply::Garbage, _) => {
                ticket.set(Outcome::Sent);
                fault.set(Mode::Instead(Bytes::from_static(GARBAGE)));
            }
            (_, Some(cut @ (Cut::BeforeHeaders | Cut::InHeaders))) => {
                ticket.set(Outcome::Cut);
                fault.set(Mode::CloseAfter(if cut == Cut::InHeaders { IN_HEADERS } else { 0 }));
            }
            _ => {}
        }
        self.deliver(response, &step, fault, ticket)
    }

    /// A wrong key and a full window are checked before the script, as with a real provider.
    fn take(&self, request: &Request, api: Api) -> Taken {
        let refusal = |step: Step, why: String| Taken { step, refusal: Some(why), refused: None };
        let key = self.scenario.key.as_deref();
        if key.is_some() && key != request.key() {
            return refusal(Step::error(FailureKind::Unauthorized), "the key is wrong".to_owned());
        }
        if api.is_completion() && !request.json.is_null() {
            let fault = self.strict.as_ref().and_then(|strict| strict.fault(request, api));
            if let Some(fault) = fault {
                return Taken {
                    refused: Some(fault.clone()),
                    ..refusal(Step::default(), fault.message)
                };
            }
            if let Some(why) = self.scenario.overflow(request) {
                return refusal(Step::overflow(), why);
            }
        }
        Taken { step: self.playbook.step(request, api), refusal: None, refused: None }
    }

    fn deliver(
        &self,
        response: Response,
        step: &Step,
        fault: wire::Fault,
        ticket: Ticket,
    ) -> hyper::Response<Delivery> {
        let streams = response.headers.iter().any(|(_, value)| value.contains("event-stream"));
        let ends = response.events.endless.is_none();
        let length: usize = response.events.all.iter().map(Bytes::len).sum();
        let actions = response.events.actions(step);
        if actions.iter().all(|action| matches!(action, Action::Wait(Wait::No))) {
            ticket.set(Outcome::Sent);
        }
        let body = Delivery::new(actions, Arc::clone(&self.releases), fault, ticket);
        let mut built = hyper::Response::new(body);
        // Statuses under 200 are not final answers, and a script may contain any number.
        let status = StatusCode::from_u16(response.status.max(200));
        *built.status_mut() = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let headers = built.headers_mut();
        for (name, value) in response.headers {
            let parsed = (HeaderName::from_bytes(name.as_bytes()), HeaderValue::from_str(&value));
            if let (Ok(name), Ok(value)) = parsed {
                headers.append(name, value);
            }
        }
        headers.append("x-request-id", HeaderValue::from_static("req_fake"));
        if !streams && ends {
            headers.insert(CONTENT_LENGTH, HeaderValue::from(length));
        }
        built
    }
}

/// Reads a whole request. One that is too large or incomplete is recorded without a body.
async fn read(incoming: hyper::Request<Incoming>) -> Request {
    let (head, body) = incoming.into_parts();
    let body = match Limited::new(body, MAX_REQUEST).collect().await {
        Ok(all) => all.to_bytes(),
        Err(_) => Bytes::new(),
    };
    let json = serde_json::from_slice(&body).unwrap_or_default();
    let headers = head.headers.iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    let path = head.uri.path_and_query().map_or("", |path| path.as_str()).to_owned();
    Request {
        number: 0,
        method: head.method.as_str().to_owned(),
        api: Api::of(head.method.as_str(), head.uri.path()),
        path,
        headers: headers.collect(),
        prompt: Prompt::of(&json),
        json,
        body,
        usage: Usage::default(),
        status: 0,
        refusal: None,
        outcome: Outcome::Open,
    }
}
