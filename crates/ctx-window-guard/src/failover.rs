//! The error for a window that is too small.

use std::fmt;

use ctx_core::{Error, ErrorKind, Tokens};

use crate::ContextWindowSource;

/// The model's context window is too small: nothing was sent, and another model must be used.
///
/// It converts to a [`ctx_core::Error`] of kind [`ErrorKind::WindowTooSmall`] with the facts
/// `window`, `source` and `minimum` (the smallest accepted window).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailoverError {
    /// The rejected window.
    pub window: Tokens,
    /// The smallest accepted window.
    pub minimum: Tokens,
    /// Where the window size comes from.
    pub source: ContextWindowSource,
}

impl FailoverError {
    fn hint(&self) -> String {
        let minimum = self.minimum;
        let key = match self.source {
            ContextWindowSource::Model => None,
            ContextWindowSource::ModelsConfig => Some("models.providers.*.models[].contextWindow"),
            ContextWindowSource::AgentContextTokens => Some("agents.defaults.contextTokens"),
            ContextWindowSource::Default => Some("agents.defaults.windowGuard.defaultTokens"),
        };
        match key {
            Some(key) => format!(
                "use a model with a window of at least {minimum} tokens, or raise `{key}` if the \
                 model has more"
            ),
            None => format!("use a model with a window of at least {minimum} tokens"),
        }
    }
}

impl fmt::Display for FailoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { window, minimum, source } = self;
        write!(
            f,
            "Model context window too small ({window} tokens; source={source}). Minimum is {minimum}."
        )
    }
}

impl std::error::Error for FailoverError {}

impl From<FailoverError> for Error {
    fn from(failover: FailoverError) -> Self {
        Self::new(ErrorKind::WindowTooSmall, failover.to_string())
            .with("window", failover.window)
            .with("source", failover.source)
            .with("minimum", failover.minimum)
            .hint(failover.hint())
            .source(failover)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_names_the_smallest_accepted_window() {
        let error = Error::from(FailoverError {
            window: Tokens(8_000),
            minimum: Tokens(16_000),
            source: ContextWindowSource::AgentContextTokens,
        });
        assert_eq!(error.kind(), ErrorKind::WindowTooSmall);
        assert!(error.to_string().starts_with(
            "Model context window too small (8000 tokens; source=agentContextTokens). Minimum is \
             16000."
        ));
        let facts: Vec<_> = error.context().iter().map(|(k, v)| format!("{k}={v}")).collect();
        assert_eq!(facts, ["window=8000", "source=agentContextTokens", "minimum=16000"]);
        assert!(
            error.hint_text().is_some_and(|h| h.contains("16000") && h.contains("contextTokens"))
        );
    }
}
