//! The report of a run.

use std::fmt;

use ctx_core::EngineInfo;
use serde::Serialize;

use super::Level;

/// The outcome of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "result", rename_all = "camelCase")]
pub enum Outcome {
    /// The engine meets the requirement.
    Passed {
        /// A figure, if the case measured something.
        note: Option<String>,
    },
    /// The engine does not meet the requirement.
    Failed {
        /// What it did instead.
        reason: String,
        /// A hint for the engine's author.
        hint: String,
    },
    /// The case does not apply to this engine or machine.
    Skipped {
        /// Why.
        reason: String,
    },
}

/// One case and its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CaseReport {
    /// Its stable name.
    pub name: &'static str,
    /// The level it belongs to.
    pub level: Level,
    /// Its purpose, in one line.
    pub about: &'static str,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl CaseReport {
    /// Returns `passed`, `failed` or `skipped`.
    pub fn result(&self) -> &'static str {
        match self.outcome {
            Outcome::Passed { .. } => "passed",
            Outcome::Failed { .. } => "failed",
            Outcome::Skipped { .. } => "skipped",
        }
    }
}

/// All cases.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The engine's info; `None` if it did not start.
    pub engine: Option<EngineInfo>,
    /// The level it was tested at.
    pub level: Level,
    /// The cases, in the order they ran.
    pub cases: Vec<CaseReport>,
}

impl Report {
    /// Whether no case failed.
    pub fn is_passed(&self) -> bool {
        self.failed().next().is_none()
    }

    /// Returns the names of the failed cases, in order.
    pub fn failed(&self) -> impl Iterator<Item = &'static str> {
        self.cases.iter().filter(|case| case.result() == "failed").map(|case| case.name)
    }

    /// Returns the number of cases with this result.
    pub fn count(&self, result: &str) -> usize {
        self.cases.iter().filter(|case| case.result() == result).count()
    }
}

/// A line for each case, for the message of a failed assertion.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for case in &self.cases {
            write!(f, "{:<8} {:<20}", case.result(), case.name)?;
            match &case.outcome {
                Outcome::Passed { note } => write!(f, " {}", note.as_deref().unwrap_or_default())?,
                Outcome::Failed { reason, hint } => write!(f, " {reason} (hint: {hint})")?,
                Outcome::Skipped { reason } => write!(f, " {reason}")?,
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
