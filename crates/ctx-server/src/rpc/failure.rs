//! Why a call failed, as JSON-RPC says it.

use ctx_core::{Error, ErrorKind};
use serde::Serialize;
use serde_json::{Map, Value};

/// The codes of JSON-RPC 2.0, and the one of everything that ctx has a kind for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Code {
    /// The line is not JSON.
    Parse = -32700,
    /// It is JSON, but no request.
    InvalidRequest = -32600,
    /// No such method.
    UnknownMethod = -32601,
    /// The method cannot be called so.
    InvalidParams = -32602,
    /// A fault of ctx itself.
    Internal = -32603,
    /// The call was understood, and failed: `data.kind` says how.
    Failed = -32000,
}

/// The `error` of an answer.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Failure {
    code: i32,
    message: String,
    data: Box<Data>,
}

/// What a program is told of a failure beside its message.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Data {
    /// An [`ErrorKind`] by its stable name.
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    facts: Map<String, Value>,
    /// Whether the same call may succeed later.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    retryable: bool,
}

impl Failure {
    /// A failure of the protocol itself.
    pub(super) fn of_protocol(code: Code, message: impl Into<String>, hint: &str) -> Self {
        let kind = match code {
            Code::Parse => ErrorKind::Corrupt,
            Code::Internal => ErrorKind::Contract,
            Code::UnknownMethod => ErrorKind::NotFound,
            Code::InvalidRequest | Code::InvalidParams | Code::Failed => ErrorKind::InvalidInput,
        };
        let hint = Some(hint.to_owned());
        let data = Data { kind: kind.name(), hint, facts: Map::new(), retryable: false };
        let data = Box::new(data);
        Self { code: code as i32, message: message.into(), data }
    }

    /// Parameters that do not fit the method.
    pub(super) fn of_params(message: impl Into<String>) -> Self {
        Self::of_protocol(
            Code::InvalidParams,
            message,
            "docs/rpc.md lists the fields of each method",
        )
    }

    /// Adds a named fact.
    pub(super) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.facts.insert(key.to_owned(), value.into());
        self
    }
}

impl From<&Error> for Data {
    fn from(error: &Error) -> Self {
        let facts = error.context().iter();
        let facts = facts.map(|(key, value)| ((*key).to_owned(), Value::from(value.as_str())));
        Self {
            kind: error.kind().name(),
            hint: error.hint_text().filter(|hint| !hint.is_empty()).map(str::to_owned),
            facts: facts.collect(),
            retryable: error.is_retryable(),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let data = Data::from(&error);
        Self { code: Code::Failed as i32, message: error.to_string(), data: Box::new(data) }
    }
}
