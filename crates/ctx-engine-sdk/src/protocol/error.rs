//! Why a call has no answer.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What went wrong, for programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The sides speak different major versions of the protocol.
    Protocol,
    /// The verb or service is not offered.
    Unsupported,
    /// The request cannot be read.
    BadRequest,
    /// What the engine knows of the session is not what the host thinks it knows. The host sends
    /// all of it again.
    OutOfStep,
    /// The call was cancelled.
    Cancelled,
    /// The engine panicked. It may go on.
    Panic,
    /// The engine cannot do what was asked, now or with this input. Kinds that are not known are
    /// read as this one.
    #[default]
    #[serde(other)]
    Failed,
}

/// An error that travels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Error {
    /// What went wrong, for programs.
    pub kind: ErrorKind,
    /// What went wrong, for people.
    pub message: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

/// The result of whatever may fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of a kind.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// [`ErrorKind::Failed`].
    pub fn failed(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Failed, message)
    }

    /// Says what to do about it.
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
