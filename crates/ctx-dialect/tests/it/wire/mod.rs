//! Requests taken apart and put together again, and answers watched.

mod pairs;
mod provider;
mod put;
mod random;
mod take;
mod watch;

use ctx_dialect::wire::{Out, Request, Route, route};

/// The route of that API's usual path.
pub(crate) fn path(name: &str) -> Route {
    let path = match name {
        "chat" => "/v1/chat/completions",
        "responses" => "/v1/responses",
        "messages" => "/v1/messages",
        _ => "/v1beta/models/gemini-2.5-pro:generateContent",
    };
    route("POST", path).expect("a path that is known")
}

pub(crate) fn take<'a>(name: &str, body: &'a str) -> Request<'a> {
    Request::take(&path(name), body).expect("a request that is in order")
}

pub(crate) fn all_told(request: &Request<'_>) -> Vec<Out<'static>> {
    (0..request.units.len()).map(Out::Told).collect()
}
