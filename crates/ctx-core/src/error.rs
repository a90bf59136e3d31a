//! The error type of all ctx crates.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// The result type of this crate and of the crates that use it.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// The kind of an error. Callers match on this, never on the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The model's window is below the guard's minimum: another model is needed.
    WindowTooSmall,
    /// System prompt and tool schemas alone exceed the budget.
    SystemPromptTooLarge,
    /// An argument, a flag or a config value is invalid.
    InvalidInput,
    /// The config file has an unknown key or a value of the wrong type.
    Config,
    /// A file is empty or not in a known transcript format.
    UnknownFormat,
    /// A transcript, an index or an answer is malformed.
    Corrupt,
    /// A named item does not exist.
    NotFound,
    /// A name is already in use.
    Conflict,
    /// Another process holds the lock.
    Locked,
    /// The operating system reported an error.
    Io,
    /// A model, an embedder or another remote service failed.
    Upstream,
    /// A model refused a prompt as too long for its window.
    Overflow,
    /// A model cannot serve the request, or may not be used: unknown model, missing permission, a
    /// missing feature. Another model may work.
    Capability,
    /// A session did not fit its model even after the maximum number of compactions in one turn.
    CompactionFailure,
    /// The operation exceeded its deadline.
    Timeout,
    /// An engine violated its contract.
    Contract,
    /// The caller cancelled the operation.
    Cancelled,
}

impl ErrorKind {
    /// Returns the stable name that other programs match on.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WindowTooSmall => "windowTooSmall",
            Self::SystemPromptTooLarge => "systemPromptTooLarge",
            Self::InvalidInput => "invalidInput",
            Self::Config => "config",
            Self::UnknownFormat => "unknownFormat",
            Self::Corrupt => "corrupt",
            Self::NotFound => "notFound",
            Self::Conflict => "conflict",
            Self::Locked => "locked",
            Self::Io => "io",
            Self::Upstream => "upstream",
            Self::Overflow => "overflow",
            Self::Capability => "capability",
            // The spelling that hosts of other systems match on.
            Self::CompactionFailure => "compaction_failure",
            Self::Timeout => "timeout",
            Self::Contract => "contract",
            Self::Cancelled => "cancelled",
        }
    }
}

/// An error: the attempted operation and its object, the cause, and what to do next.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: Cow<'static, str>,
    context: Vec<(&'static str, String)>,
    hint: Option<String>,
    retry: bool,
    retry_after: Option<Duration>,
    billed: Option<bool>,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Creates an error of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            context: Vec::new(),
            hint: None,
            retry: false,
            retry_after: None,
            billed: None,
            source: None,
        }
    }

    /// Adds a named value: a path, a line number, an id.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.context.push((key, value.to_string()));
        self
    }

    /// Adds a hint about what to do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint, unless there is one.
    #[must_use]
    pub fn hint_or(mut self, hint: impl Into<String>) -> Self {
        self.hint.get_or_insert_with(|| hint.into());
        self
    }

    /// Returns another error of this kind, with the same hint.
    #[must_use]
    pub fn reworded(&self, message: impl Into<Cow<'static, str>>) -> Self {
        Self { hint: self.hint.clone(), ..Self::new(self.kind, message) }
    }

    /// Marks the error as retryable.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retry = true;
        self
    }

    /// Marks the error as retryable after `wait`, as the server requested.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry = true;
        self.retry_after = Some(wait);
        self
    }

    /// Marks the error of a call that was refused before any work was done.
    #[must_use]
    pub fn unbilled(mut self) -> Self {
        self.billed = Some(false);
        self
    }

    /// Marks the error of a call that caused work but returned no result.
    #[must_use]
    pub fn billed(mut self) -> Self {
        self.billed = Some(true);
        self
    }

    /// Sets the underlying error.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Returns the kind of the error.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// Returns the hint about what to do next, if there is one.
    #[must_use]
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Returns the error and its hint as one line.
    #[must_use]
    pub fn told(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }

    /// Whether a retry may succeed.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.retry
    }

    /// Returns how long the server asks to wait before a retry.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether the server may charge for the failed call. If this is unset, a call that could never
    /// succeed costs nothing, and any other call its expected cost.
    #[must_use]
    pub fn may_be_billed(&self) -> bool {
        use ErrorKind::{Capability, Config, InvalidInput, NotFound, Overflow};
        let is_refusal =
            matches!(self.kind, Overflow | Capability | InvalidInput | Config | NotFound);
        self.billed.unwrap_or(!is_refusal)
    }

    /// Returns the named values, in the order in which they were added.
    #[must_use]
    pub fn context(&self) -> &[(&'static str, String)] {
        &self.context
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        let mut separator = " (";
        for (key, value) in &self.context {
            write!(f, "{separator}{key}: {value}")?;
            separator = ", ";
        }
        if !self.context.is_empty() {
            f.write_str(")")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|e| e as &(dyn std::error::Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_free_and_a_failure_may_be_billed_unless_marked() {
        let error = |kind| Error::new(kind, "x");
        for (kind, billed) in [
            (ErrorKind::Overflow, false),
            (ErrorKind::Capability, false),
            (ErrorKind::Upstream, true),
            (ErrorKind::Timeout, true),
        ] {
            assert_eq!(error(kind).may_be_billed(), billed, "{kind:?}");
            assert!(error(kind).billed().may_be_billed());
            assert!(!error(kind).unbilled().may_be_billed());
        }
    }
}
