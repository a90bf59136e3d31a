//! What an engine did instead of its work.

use std::fmt;

use ctx_core::Error;
use ctx_engine_sdk::protocol::{self, ErrorKind};

use super::Rejection;
use crate::carrier::Fault;

/// What an engine did instead of its work.
#[derive(Debug)]
pub enum Trouble {
    /// There was no answer.
    Fault(Fault),
    /// There was one that is not carried out.
    Rejected(Rejection),
    /// The engine is another than the one that was selected, or speaks another protocol.
    Unfit {
        /// Why.
        why: String,
        /// What to do.
        hint: &'static str,
    },
}

impl Trouble {
    /// A stable name, for programs and logs.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Fault(fault) => fault.name(),
            Self::Rejected(rejection) => rejection.name(),
            Self::Unfit { .. } => "unfit",
        }
    }

    /// Under which name an error tells [`Trouble::name`]: `rejection` or `fault`.
    pub(super) fn fact(&self) -> &'static str {
        match self {
            Self::Rejected(_) => "rejection",
            Self::Fault(_) | Self::Unfit { .. } => "fault",
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Fault(fault) => fault.hint(),
            Self::Rejected(rejection) => rejection.hint().to_owned(),
            Self::Unfit { hint, .. } => (*hint).to_owned(),
        };
        Some(hint).filter(|hint| !hint.is_empty())
    }

    /// Says of a refusal to start that there is a configuration that it may be of.
    pub(super) fn is_of_config(&mut self, id: &str) {
        if let Self::Fault(Fault::Refused(error)) = self {
            let given = format!("it was given what plugins.engines.{id}.config says");
            error.hint = Some(match error.hint.take() {
                Some(hint) => format!("{hint} ({given})"),
                None => format!("{given}: see whether that is what it expects"),
            });
        }
    }

    /// Whether the engine is to blame: not where others kept it busy, or where it was told to stop.
    pub(super) fn is_a_strike(&self) -> bool {
        match self {
            Self::Fault(Fault::Busy { .. }) => false,
            _ => !self.is_cancelled(),
        }
    }

    /// Whether it was told to stop, and did.
    pub(super) fn is_cancelled(&self) -> bool {
        matches!(
            self,
            Self::Fault(Fault::Refused(protocol::Error { kind: ErrorKind::Cancelled, .. }))
        )
    }

    /// Whether the engine did not come to an end by itself, or came to a bad one: no call of it can
    /// be relied on.
    pub(super) fn is_grave(&self) -> bool {
        match self {
            Self::Fault(fault) => {
                !matches!(fault, Fault::Refused(_) | Fault::Busy { .. } | Fault::Panicked { .. })
            }
            Self::Rejected(_) => false,
            Self::Unfit { .. } => true,
        }
    }

    /// Whether starting it again would change nothing.
    pub(super) fn is_for_good(&self) -> bool {
        match self {
            Self::Unfit { .. } | Self::Fault(Fault::Unopened(_)) => true,
            Self::Fault(Fault::Refused(error)) => error.kind == ErrorKind::Protocol,
            _ => false,
        }
    }

    /// Whether the engine takes its answer for something else than it is.
    pub(super) fn is_misjudged(&self) -> bool {
        matches!(self, Self::Rejected(Rejection::OverBudget { estimated: Some(_), .. }))
    }

    /// Whether the engine asks to be told everything again.
    pub(super) fn is_out_of_step(&self) -> bool {
        matches!(
            self,
            Self::Fault(Fault::Refused(protocol::Error { kind: ErrorKind::OutOfStep, .. }))
        )
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fault(fault) => fault.fmt(f),
            Self::Rejected(rejection) => rejection.fmt(f),
            Self::Unfit { why, .. } => f.write_str(why),
        }
    }
}

impl std::error::Error for Trouble {}

impl From<Fault> for Trouble {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<Rejection> for Trouble {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

impl From<Trouble> for Error {
    fn from(trouble: Trouble) -> Self {
        match trouble {
            Trouble::Fault(fault) => fault.into(),
            Trouble::Rejected(rejection) => rejection.into(),
            Trouble::Unfit { why, hint } => {
                Self::new(ctx_core::ErrorKind::Contract, why).hint(hint)
            }
        }
    }
}
