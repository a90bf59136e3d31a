//! Parses calls and writes answers.

use ctx_dialect::json::{Object, has_lone_surrogate, mend_surrogates, quote};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::error::{ErrorCode, RpcError};
use super::method::Method;

/// A call of a host.
#[derive(Debug)]
pub(super) struct RpcCall {
    /// The request id as JSON text. `None` for a notification, which gets no answer.
    pub(super) id: Option<String>,
    pub(super) method: Method,
    params: Option<Box<RawValue>>,
}

/// An invalid call: the id to answer, if any, and the error.
#[derive(Debug)]
pub(super) struct InvalidCall {
    pub(super) id: Option<String>,
    pub(super) failure: RpcError,
}

impl RpcCall {
    /// Parses a line.
    pub(super) fn parse(line: Vec<u8>) -> Result<Self, InvalidCall> {
        let unknown = |failure| InvalidCall { id: Some("null".to_owned()), failure };
        let text = text_of(line).map_err(unknown)?;
        if text.trim_start().starts_with('[') {
            return Err(unknown(RpcError::of_protocol(
                ErrorCode::InvalidRequest,
                "batches are not supported",
                "send each request on its own line",
            )));
        }
        let object = Object::parse(&text).map_err(|error| {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            unknown(RpcError::of_protocol(
                ErrorCode::Parse,
                format!("invalid JSON object: {}", why.unwrap_or_default()),
                "send one JSON-RPC 2.0 request per line",
            ))
        })?;
        let id = object.field("id").map(|id| id.get().to_owned());
        let fail = |failure| InvalidCall { id: id.clone(), failure };
        let invalid = |message: &str| {
            let hint = r#"send {"jsonrpc":"2.0","id":1,"method":"...","params":{...}}"#;
            // Without an id it could be a notification, but it is invalid in any case.
            let id = Some(id.clone().unwrap_or_else(|| "null".to_owned()));
            InvalidCall {
                id,
                failure: RpcError::of_protocol(ErrorCode::InvalidRequest, message, hint),
            }
        };
        if id.as_ref().is_some_and(|id| id.starts_with(['{', '[', 't', 'f'])) {
            let failure = invalid("invalid id: expected a string, a number or null").failure;
            return Err(unknown(failure));
        }
        if object.text("jsonrpc").as_deref() != Some("2.0") {
            return Err(invalid("missing or invalid \"jsonrpc\": expected \"2.0\""));
        }
        let Some(name) = object.text("method") else {
            return Err(invalid("missing method"));
        };
        let Some(method) = Method::from_name(&name) else {
            let known = Method::names().join(", ");
            let message = format!("unknown method {}", quote(&name));
            let hint = format!("the methods are {known}");
            return Err(fail(RpcError::of_protocol(ErrorCode::UnknownMethod, message, &hint)));
        };
        let params = object.get("params").map(ToOwned::to_owned);
        Ok(Self { id, method, params })
    }

    /// Parses the parameters.
    pub(super) fn params<'a, T: Deserialize<'a>>(&'a self) -> Result<T, RpcError> {
        let text = self.params.as_ref().map_or("{}", |params| params.get());
        if !text.starts_with('{') {
            return Err(RpcError::of_params("params must be an object with named fields"));
        }
        serde_json::from_str(text).map_err(|error| {
            RpcError::of_params(format!("invalid params of {}: {error}", self.method.name()))
        })
    }

    /// Returns the session id.
    pub(super) fn session_id(&self) -> Option<String> {
        Object::of(self.params.as_ref()?)?.owned("sessionId")
    }
}

/// Makes the line parseable: lone surrogates, as written by JavaScript for truncated texts, are
/// replaced. A carriage return, valid only between JSON tokens, becomes a space, because answers
/// repeat parts of the line within a line.
fn text_of(mut line: Vec<u8>) -> Result<String, RpcError> {
    for byte in &mut line {
        if *byte == b'\r' {
            *byte = b' ';
        }
    }
    let text = String::from_utf8(line).map_err(|_| {
        RpcError::of_protocol(ErrorCode::Parse, "invalid UTF-8 in the line", "send JSON in UTF-8")
    })?;
    Ok(if has_lone_surrogate(&text) { mend_surrogates(&text) } else { text })
}

/// Returns a result as JSON text.
pub(super) fn json<T: Serialize>(result: &T) -> Result<String, RpcError> {
    serde_json::to_string(result).map_err(|error| {
        let message = format!("cannot write the answer: {error}");
        RpcError::of_protocol(ErrorCode::Internal, message, "please report this")
    })
}

/// Returns an answer as a line, including the line break.
pub(super) fn answer(id: &str, result: Result<String, RpcError>) -> String {
    let (key, value) = match result {
        Ok(result) => ("result", result),
        Err(failure) => ("error", json(&failure).unwrap_or_else(|_| "{}".to_owned())),
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{key}\":{value}}}\n")
}
