//! Failures of an engine.

use ctx_core::Error;
use ctx_engine_sdk::protocol::ErrorKind;

use super::Rejection;
use super::transport::Fault;

/// A failure of an engine.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// There was no answer.
    #[error(transparent)]
    Fault(#[from] Fault),
    /// The answer was rejected.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// The engine is not the selected one, or uses another protocol.
    #[error("{why}")]
    Unfit {
        /// Why.
        why: String,
        /// The hint.
        hint: &'static str,
    },
}

impl EngineError {
    /// Returns a stable name, for programs and logs.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fault(fault) => fault.name(),
            Self::Rejected(rejection) => rejection.name(),
            Self::Unfit { .. } => "unfit",
        }
    }

    /// Returns the key that holds [`EngineError::name`] in an error: `rejection` or `fault`.
    pub(super) fn key(&self) -> &'static str {
        match self {
            Self::Rejected(_) => "rejection",
            Self::Fault(_) | Self::Unfit { .. } => "fault",
        }
    }

    /// Returns a hint for the user.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Fault(fault) => fault.hint(),
            Self::Rejected(rejection) => rejection.hint().to_owned(),
            Self::Unfit { hint, .. } => (*hint).to_owned(),
        };
        Some(hint).filter(|hint| !hint.is_empty())
    }

    /// Adds a hint to an engine's refusal to start: its configuration may be the cause.
    pub(super) fn blame_config(&mut self, id: &str) {
        if let Self::Fault(Fault::Refused(error)) = self {
            let given = format!("the engine gets plugins.engines.{id}.config");
            error.hint = Some(match error.hint.take() {
                Some(hint) => format!("{hint} ({given})"),
                None => format!("{given}: check that it supports these settings"),
            });
        }
    }

    /// Whether the failure counts against the engine. It does not count if the engine was busy with
    /// other calls, or if the call was cancelled.
    pub(super) fn counts_as_strike(&self) -> bool {
        match self {
            Self::Fault(Fault::Busy { .. }) => false,
            _ => !self.is_cancelled(),
        }
    }

    /// Whether the call was cancelled, and the engine stopped.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_refusal(ErrorKind::Cancelled)
    }

    /// Whether the engine is unreliable after this failure, for example after a crash.
    pub(super) fn is_grave(&self) -> bool {
        match self {
            Self::Fault(fault) => {
                !matches!(fault, Fault::Refused(_) | Fault::Busy { .. } | Fault::Panicked { .. })
            }
            Self::Rejected(_) => false,
            Self::Unfit { .. } => true,
        }
    }

    /// Whether a restart would not help.
    pub(super) fn is_permanent(&self) -> bool {
        match self {
            Self::Unfit { .. } | Self::Fault(Fault::Unopened(_)) => true,
            Self::Fault(Fault::Refused(error)) => error.kind == ErrorKind::Protocol,
            _ => false,
        }
    }

    /// Whether the engine's own estimate of its answer is wrong.
    pub(super) fn is_misjudged(&self) -> bool {
        matches!(self, Self::Rejected(Rejection::OverBudget { estimated: Some(_), .. }))
    }

    /// Whether the engine requests all rows again.
    pub(super) fn is_out_of_step(&self) -> bool {
        self.is_refusal(ErrorKind::OutOfStep)
    }

    fn is_refusal(&self, of: ErrorKind) -> bool {
        matches!(self, Self::Fault(Fault::Refused(error)) if error.kind == of)
    }
}

impl From<EngineError> for Error {
    fn from(failure: EngineError) -> Self {
        match failure {
            EngineError::Fault(fault) => fault.into(),
            EngineError::Rejected(rejection) => rejection.into(),
            EngineError::Unfit { why, hint } => {
                Self::new(ctx_core::ErrorKind::Contract, why).hint(hint)
            }
        }
    }
}
