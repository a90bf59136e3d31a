//! Errors of calls and host calls.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The kind of an error, for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The sides speak different major versions of the protocol.
    Protocol,
    /// The verb or service is not supported.
    Unsupported,
    /// The request cannot be parsed.
    BadRequest,
    /// The engine's copy of the session differs from what the host expects. The host sends the
    /// whole session again.
    OutOfStep,
    /// The call was cancelled.
    Cancelled,
    /// The engine panicked. It may be called again.
    Panic,
    /// The engine cannot do what was requested, now or with this input. Unknown kinds are read as
    /// this one.
    #[default]
    #[serde(other)]
    Failed,
}

/// An error as sent over the protocol.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Error {
    /// The kind, for programs.
    pub kind: ErrorKind,
    /// The message, for people.
    pub message: String,
    /// How to fix it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The result type of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Creates an error of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Creates an [`ErrorKind::Failed`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Sets the hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " ({hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::new(ErrorKind::BadRequest, error.to_string())
    }
}
