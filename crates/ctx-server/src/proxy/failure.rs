//! Errors of ours, in the client's own protocol.

use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use ctx_core::{Error, ErrorKind};
use ctx_dialect::wire::{Protocol, error_body};

use crate::http::refusal;

/// An answer that says why there is none.
pub(super) fn answer(protocol: Option<Protocol>, status: u16, error: &Error) -> Response {
    let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = match protocol {
        Some(protocol) => {
            let mut response = Response::new(Body::from(error_body(protocol, status, error)));
            *response.status_mut() = code;
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(CONTENT_TYPE, json);
            response
        }
        None => refusal(code, error),
    };
    if status == 503 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    // Who reads logs should see who said it.
    response.headers_mut().insert("x-ctx-error", HeaderValue::from_static(error.kind().name()));
    response
}

/// The status of an error before anything was sent to the client.
pub(super) fn status(error: &Error) -> u16 {
    match error.kind() {
        ErrorKind::Timeout => 504,
        ErrorKind::Upstream => 502,
        ErrorKind::Io | ErrorKind::Contract => 500,
        _ => 400,
    }
}

/// What to do about a request that cannot be made to fit.
pub(super) fn with_hint(error: Error) -> Error {
    let hint = match error.kind() {
        ErrorKind::WindowTooSmall | ErrorKind::SystemPromptTooLarge => {
            "give `ctx serve` the model's window, if it is larger: --window N"
        }
        _ => return error,
    };
    match error.hint_text() {
        Some(own) if !own.is_empty() => {
            let both = format!("{own}; {hint}");
            error.hint(both)
        }
        _ => error.hint(hint),
    }
}

/// No seat is free.
pub(super) fn busy(most: u32) -> Error {
    Error::new(ErrorKind::Upstream, "too many requests are open")
        .with("most", most)
        .retryable()
        .hint("try again, or raise server.maxRequests")
}
