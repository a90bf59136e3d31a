//! ctx errors in the client's protocol.

use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use ctx_core::{Error, ErrorKind};
use ctx_dialect::wire::Route;

use crate::http::refusal;

/// Returns the error response.
pub(super) fn answer(route: &Route, status: u16, error: &Error) -> Response {
    let code = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = refusal(Some(route), code, error);
    if status == 503 {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    // Logs should show that the error came from ctx.
    response.headers_mut().insert("x-ctx-error", HeaderValue::from_static(error.kind().name()));
    response
}

/// Returns the status for an error that occurs before the response has started.
pub(super) fn status(error: &Error) -> u16 {
    match error.kind() {
        ErrorKind::Timeout => 504,
        ErrorKind::Upstream => 502,
        ErrorKind::Io | ErrorKind::Contract => 500,
        _ => 400,
    }
}
