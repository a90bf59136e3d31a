//! Errors in the form of JSON-RPC.

use ctx_core::{Error, ErrorKind};
use serde::Serialize;
use serde_json::Value;

use crate::lines::Data;

/// The codes of JSON-RPC 2.0, and one code for all errors with an error kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ErrorCode {
    /// The line is not JSON.
    Parse = -32700,
    /// It is JSON, but not a request.
    InvalidRequest = -32600,
    /// Unknown method.
    UnknownMethod = -32601,
    /// Invalid parameters.
    InvalidParams = -32602,
    /// An internal error of ctx.
    Internal = -32603,
    /// The call was valid and failed: `data.kind` has the error kind.
    Failed = -32000,
}

/// The `error` of an answer.
#[derive(Clone, Debug, Serialize)]
pub(super) struct RpcError {
    code: i32,
    message: String,
    data: Box<Data>,
}

impl RpcError {
    /// Creates an error of the protocol itself.
    pub(super) fn of_protocol(code: ErrorCode, message: impl Into<String>, hint: &str) -> Self {
        let kind = match code {
            ErrorCode::Parse => ErrorKind::Corrupt,
            ErrorCode::Internal => ErrorKind::Contract,
            ErrorCode::UnknownMethod => ErrorKind::NotFound,
            ErrorCode::InvalidRequest | ErrorCode::InvalidParams | ErrorCode::Failed => {
                ErrorKind::InvalidInput
            }
        };
        let data = Box::new(Data::new(kind, hint));
        Self { code: code as i32, message: message.into(), data }
    }

    /// Creates an error for invalid parameters.
    pub(super) fn of_params(message: impl Into<String>) -> Self {
        Self::of_protocol(
            ErrorCode::InvalidParams,
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

impl From<Error> for RpcError {
    fn from(error: Error) -> Self {
        let data = Data::from(&error);
        Self { code: ErrorCode::Failed as i32, message: error.to_string(), data: Box::new(data) }
    }
}
