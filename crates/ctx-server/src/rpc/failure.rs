//! Why a call failed, as JSON-RPC says it.

use ctx_core::{Error, ErrorKind};
use serde::Serialize;
use serde_json::Value;

use crate::lines::Data;

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

impl Failure {
    /// A failure of the protocol itself.
    pub(super) fn of_protocol(code: Code, message: impl Into<String>, hint: &str) -> Self {
        let kind = match code {
            Code::Parse => ErrorKind::Corrupt,
            Code::Internal => ErrorKind::Contract,
            Code::UnknownMethod => ErrorKind::NotFound,
            Code::InvalidRequest | Code::InvalidParams | Code::Failed => ErrorKind::InvalidInput,
        };
        let data = Box::new(Data::new(kind, hint));
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

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let data = Data::from(&error);
        Self { code: Code::Failed as i32, message: error.to_string(), data: Box::new(data) }
    }
}
