//! Tests of splitting and reassembling requests, and of watching answers.

mod assemble;
mod chat_bridge;
mod context_edits;
mod converse;
mod intercept;
mod pairs;
mod provider;
mod random;
mod request;
mod summary_request;
mod watch;

use ctx_dialect::wire::{OutgoingUnit, Protocol, Request, Route, route};

/// Returns the route of this API's default path.
pub(crate) fn path(name: &str) -> Route {
    let path = match name {
        "chat" => "/v1/chat/completions",
        "responses" => "/v1/responses",
        "messages" => "/v1/messages",
        "converse" => "/model/anthropic.claude-v1%3A0/converse",
        _ => "/v1beta/models/gemini-2.5-pro:generateContent",
    };
    route("POST", path).expect("a known path")
}

pub(crate) fn parse<'a>(name: &str, body: &'a str) -> Request<'a> {
    Request::parse(&path(name), body).expect("a valid request")
}

pub(crate) fn all_unchanged(request: &Request<'_>) -> Vec<OutgoingUnit<'static>> {
    (0..request.units.len()).map(OutgoingUnit::Unchanged).collect()
}

/// The APIs of the fake provider.
pub(crate) const FAKED: [Protocol; 4] =
    [Protocol::Chat, Protocol::Responses, Protocol::Messages, Protocol::Gemini];
