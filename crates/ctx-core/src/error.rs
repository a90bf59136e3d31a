//! One error type for everything that can go wrong in a ctx crate.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

/// Shorthand for results of this crate and of those above it.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of thing went wrong. Callers match on this, never on the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The model's window is under the guard's minimum: another model must be taken.
    WindowTooSmall,
    /// System prompt and tool schemas alone exceed the budget.
    SystemPromptTooLarge,
    /// An argument, a flag or a config value makes no sense.
    InvalidInput,
    /// The config file holds an unknown key or a value of the wrong type.
    Config,
    /// A file is of no known transcript format, or is empty.
    UnknownFormat,
    /// A transcript, an index or an answer cannot be read as what it should be.
    Corrupt,
    /// Something asked for by name is not there.
    NotFound,
    /// Two things claim one name.
    Conflict,
    /// Another process holds the lock.
    Locked,
    /// The operating system refused.
    Io,
    /// A model, an embedder or another remote service failed.
    Upstream,
    /// A model refused a prompt as too long for its window.
    Overflow,
    /// A model cannot do what was asked, or may not be used: no such model, no right to it, a
    /// feature it lacks. Another model may.
    Capability,
    /// A session could not be made small enough for its model, though it was compacted as often as
    /// it may be in one turn.
    CompactionFailure,
    /// What was asked took longer than it may.
    Timeout,
    /// An engine broke its contract.
    Contract,
    /// The caller cancelled.
    Cancelled,
}

impl ErrorKind {
    /// The stable name that other programs match on.
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
            // Spelt as the systems spell it whose hosts look for it.
            Self::CompactionFailure => "compaction_failure",
            Self::Timeout => "timeout",
            Self::Contract => "contract",
            Self::Cancelled => "cancelled",
        }
    }
}

/// An error: what was attempted, on what, why it failed, and what to do next.
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
    /// A new error of `kind`.
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

    /// Adds a named fact: a path, a line number, an id.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl fmt::Display) -> Self {
        self.context.push((key, value.to_string()));
        self
    }

    /// Adds what the reader can do next.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Marks the error as one that may pass when tried again.
    #[must_use]
    pub fn retryable(mut self) -> Self {
        self.retry = true;
        self
    }

    /// Marks the error as one that may pass when tried again after `wait`, as the other side said.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        self.retry = true;
        self.retry_after = Some(wait);
        self
    }

    /// Marks the error of a call that was refused before any work was done for it.
    #[must_use]
    pub fn unbilled(mut self) -> Self {
        self.billed = Some(false);
        self
    }

    /// Marks the error of a call for which work was done, though nothing came of it.
    #[must_use]
    pub fn billed(mut self) -> Self {
        self.billed = Some(true);
        self
    }

    /// Keeps the underlying error.
    #[must_use]
    pub fn source(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What kind of thing went wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// What the reader can do next, if the code that failed knows.
    #[must_use]
    pub fn hint_text(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// The error and what to do next, for a line that holds both.
    #[must_use]
    pub fn told(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{self}; {hint}"),
            None => self.to_string(),
        }
    }

    /// Whether trying again may help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        self.retry
    }

    /// How long the other side asks to wait before trying again.
    #[must_use]
    pub fn wait(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether the other side may charge for the call that failed. Where nobody said so, a call
    /// that could never be answered costs nothing, and any other what it was expected to cost.
    #[must_use]
    pub fn may_be_billed(&self) -> bool {
        use ErrorKind::{Capability, Config, InvalidInput, NotFound, Overflow};
        let is_refusal =
            matches!(self.kind, Overflow | Capability | InvalidInput | Config | NotFound);
        self.billed.unwrap_or(!is_refusal)
    }

    /// The named facts, in the order they were added.
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
    fn a_refusal_costs_nothing_and_a_failure_may_unless_it_is_known_better() {
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
