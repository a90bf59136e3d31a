//! The error data of a failed call.

use ctx_core::{Error, ErrorKind};
use serde::Serialize;
use serde_json::{Map, Value};

/// Machine-readable error data beside the message.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Data {
    /// The stable name of an [`ErrorKind`].
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    /// The context of the error.
    pub facts: Map<String, Value>,
    /// Whether a retry of the call may succeed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    retryable: bool,
}

impl Data {
    /// Creates the data of a failure other than an [`Error`].
    pub fn new(kind: ErrorKind, hint: &str) -> Self {
        let hint = Some(hint.to_owned());
        Self { kind: kind.name(), hint, facts: Map::new(), retryable: false }
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
