//! API responses; errors are JSON too.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use ctx_core::{Error, ErrorKind};
use serde::Serialize;
use serde_json::{Value, json};

/// The error of a request.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    error: Box<Error>,
}

impl ApiError {
    /// A request without the right to write.
    pub(crate) fn forbidden(error: Error) -> Self {
        Self { status: StatusCode::FORBIDDEN, kind: "forbidden", error: Box::new(error) }
    }

    /// Too many concurrent requests.
    pub(crate) fn busy(error: Error) -> Self {
        Self { status: StatusCode::SERVICE_UNAVAILABLE, kind: "busy", error: Box::new(error) }
    }
}

impl From<Error> for ApiError {
    fn from(error: Error) -> Self {
        let kind = error.kind();
        let status = match kind {
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::InvalidInput => StatusCode::BAD_REQUEST,
            ErrorKind::Conflict | ErrorKind::Locked => StatusCode::CONFLICT,
            ErrorKind::WindowTooSmall
            | ErrorKind::SystemPromptTooLarge
            | ErrorKind::UnknownFormat
            | ErrorKind::Corrupt
            | ErrorKind::Config => StatusCode::UNPROCESSABLE_ENTITY,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, kind: kind.name(), error: Box::new(error) }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { status, kind, error } = self;
        let body = json!({
            "error": { "kind": kind, "message": error.to_string(), "hint": error.hint_text() }
        });
        (status, no_store(Json(body))).into_response()
    }
}

/// The result of an API request.
pub(crate) type ApiResult<T = Response> = std::result::Result<T, ApiError>;

/// Serialises a value as JSON.
pub(crate) fn json_of(value: &impl Serialize) -> ApiResult {
    let text = serde_json::to_vec(value).map_err(|error| {
        Error::new(ErrorKind::Io, "the answer cannot be written as JSON").source(error)
    })?;
    let kind = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok(no_store((kind, text)))
}

/// Returns 202 with the progress: the client repeats the request.
pub(crate) fn accepted(value: &Value) -> ApiResult {
    Ok((StatusCode::ACCEPTED, json_of(value)?).into_response())
}

/// Forbids the browser to cache the response, because it contains content of sessions.
fn no_store(answer: impl IntoResponse) -> Response {
    let mut answer = answer.into_response();
    let headers = answer.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    answer
}
