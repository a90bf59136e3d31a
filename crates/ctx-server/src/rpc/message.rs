//! A line as a call, and an answer as a line.

use ctx_dialect::json::{Object, has_lone_surrogate, mend_surrogates, quote};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::failure::{Code, Failure};
use super::method::Method;

/// What a host asks.
#[derive(Debug)]
pub(super) struct Call {
    /// Who waits for the answer: JSON text. `None` for a notification, which gets none.
    pub(super) id: Option<String>,
    pub(super) method: Method,
    params: Option<Box<RawValue>>,
}

/// A line that is no call: whom to tell, if anybody, and what.
#[derive(Debug)]
pub(super) struct Refused {
    pub(super) id: Option<String>,
    pub(super) failure: Failure,
}

impl Call {
    /// Reads a line.
    pub(super) fn parse(line: Vec<u8>) -> Result<Self, Refused> {
        let unknown = |failure| Refused { id: Some("null".to_owned()), failure };
        let text = text_of(line).map_err(unknown)?;
        if text.trim_start().starts_with('[') {
            return Err(unknown(Failure::of_protocol(
                Code::InvalidRequest,
                "batches are not supported",
                "send each request on a line of its own",
            )));
        }
        let object = Object::parse(&text).map_err(|error| {
            let why = std::error::Error::source(&error).map(ToString::to_string);
            unknown(Failure::of_protocol(
                Code::Parse,
                format!("the line is no JSON object: {}", why.unwrap_or_default()),
                "send one JSON-RPC 2.0 request a line",
            ))
        })?;
        let id = object.field("id").map(|id| id.get().to_owned());
        let fail = |failure| Refused { id: id.clone(), failure };
        let invalid = |message: &str| {
            let hint = r#"send {"jsonrpc":"2.0","id":1,"method":"...","params":{...}}"#;
            // Without a method it cannot be told from a notification, but it surely is a fault.
            let id = Some(id.clone().unwrap_or_else(|| "null".to_owned()));
            Refused { id, failure: Failure::of_protocol(Code::InvalidRequest, message, hint) }
        };
        if id.as_ref().is_some_and(|id| id.starts_with(['{', '[', 't', 'f'])) {
            let failure = invalid("an id is a string, a number or null").failure;
            return Err(unknown(failure));
        }
        if object.text("jsonrpc").as_deref() != Some("2.0") {
            return Err(invalid("this is no request of JSON-RPC 2.0"));
        }
        let Some(name) = object.text("method") else {
            return Err(invalid("the request names no method"));
        };
        let Some(method) = Method::from_name(&name) else {
            let known = Method::ALL.map(Method::name).join(", ");
            let message = format!("no method {}", quote(&name));
            let hint = format!("the methods are {known}");
            return Err(fail(Failure::of_protocol(Code::UnknownMethod, message, &hint)));
        };
        let params = object.get("params").map(ToOwned::to_owned);
        Ok(Self { id, method, params })
    }

    /// The parameters as the method takes them.
    pub(super) fn params<'a, T: Deserialize<'a>>(&'a self) -> Result<T, Failure> {
        let text = self.params.as_ref().map_or("{}", |params| params.get());
        if !text.starts_with('{') {
            return Err(Failure::of_params("params must be an object with named fields"));
        }
        serde_json::from_str(text).map_err(|error| {
            Failure::of_params(format!("wrong params of {}: {error}", self.method.name()))
        })
    }

    /// The session that is meant.
    pub(super) fn session_id(&self) -> Option<String> {
        Object::of(self.params.as_ref()?)?.owned("sessionId")
    }
}

/// The line as text that can be parsed: half a surrogate pair, as JavaScript writes it where a text
/// was cut, is mended. A carriage return can only stand between JSON tokens; it becomes a blank,
/// because parts of the line go out again in lines.
fn text_of(mut line: Vec<u8>) -> Result<String, Failure> {
    for byte in &mut line {
        if *byte == b'\r' {
            *byte = b' ';
        }
    }
    let text = String::from_utf8(line).map_err(|_| {
        Failure::of_protocol(Code::Parse, "the line is not UTF-8", "send JSON in UTF-8")
    })?;
    Ok(if has_lone_surrogate(&text) { mend_surrogates(&text) } else { text })
}

/// A result as JSON text.
pub(super) fn json<T: Serialize>(result: &T) -> Result<String, Failure> {
    serde_json::to_string(result).map_err(|error| {
        let message = format!("the answer cannot be written: {error}");
        Failure::of_protocol(Code::Internal, message, "please report this")
    })
}

/// An answer as a line, its end included.
pub(super) fn answer(id: &str, result: Result<String, Failure>) -> String {
    let (key, value) = match result {
        Ok(result) => ("result", result),
        Err(failure) => ("error", json(&failure).unwrap_or_else(|_| "{}".to_owned())),
    };
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"{key}\":{value}}}\n")
}
