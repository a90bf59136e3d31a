//! The bench of compactions. It measures what the arms keep of a real session's history, by labels
//! that ctx itself did not make.
//!
//! A session is cut at several places. The history before a cut is compacted in one or several
//! rounds to a share of its tokens. The bench looks in the text of the next request for:
//!
//! - **needed next**: handles (paths, names, hashes, flags, quoted text, errors, numbers) that the
//!   agent uses within the next 30,000 tokens, and that occur before the cut. *strict*: handles
//!   that no tool result and no user says first; *loose*: all;
//! - **statements** planted as messages of the user, with their updates and near-duplicates;
//! - **work**: the files that calls changed, and the open items of the todo list.
//!
//! The bench does not use the summariser's own extractor. It counts handles, not reasons, so a list
//! of names has good figures. That rule is not part of the comparison. docs/bench.md is the
//! specification, with the table of patterns, and the known weaknesses.

mod arms;
mod case;
mod difference;
mod handles;
mod lookup;
mod needed;
mod planted;
mod replayed;
mod report;
mod request;
mod run;
mod score;
mod session;
#[cfg(test)]
mod tests;
mod work;

use ctx_session::Transcript;
use serde::Serialize;

pub use arms::{ArmKind, BenchArm, CandidateProgram, SimpleRule};
pub use difference::{Difference, Measure};
pub use handles::HandleKind;
pub(crate) use handles::holds_word;
pub use planted::{Statement, built_in_statements, statements};
pub(super) use replayed::ReplayLabels;
pub use report::{ArmReport, BenchReport, Cell, CutReport, Loss, SessionBench, Setting};
pub use run::bench;
pub use score::{Figures, NeededFigures, PlantedFigures, ReceiptFigures};

pub use super::Share;

use super::EvalSetup;

/// The parameters for every session.
#[derive(Clone, Debug, Default)]
pub struct BenchPlan {
    /// The number of places at which a session is cut.
    pub cuts: usize,
    /// The shares of the history's tokens that a request may have afterwards.
    pub budgets: Vec<f64>,
    /// The numbers of compactions.
    pub rounds: Vec<usize>,
    /// The statements to plant, if any.
    pub statements: Vec<Statement>,
}

/// A session to measure.
#[derive(Debug)]
pub struct BenchSession<'a> {
    /// The transcript.
    pub transcript: &'a Transcript,
    /// Its counter, prices and calibration. Budgets count messages only, so system prompt and tools
    /// should be zero here.
    pub eval: EvalSetup,
    /// The number of the session, which decides which sets of statements it gets.
    pub number: usize,
}

/// A line of an export: a request of an arm, or the labels of a cut.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Exported<'a> {
    /// The labels of a cut at one budget.
    Labels {
        /// The answer before which the session is cut.
        entry_id: &'a str,
        /// The share of the history's tokens.
        budget: f64,
        /// The handles needed next: kind, text, whether strict, whether one retrieval call finds it.
        needed: Vec<(HandleKind, &'a str, bool, bool)>,
        /// Changed files.
        files: Vec<&'a str>,
        /// Open items of the todo list.
        todos: &'a [String],
    },
    /// A request after a compaction.
    Request {
        /// See `Labels`.
        entry_id: &'a str,
        /// How it was compacted.
        #[serde(flatten)]
        setting: Setting,
        /// The arm.
        arm: &'a str,
        /// Whether statements were planted.
        planted: bool,
        /// Its tokens.
        tokens: u64,
        /// Its text.
        text: &'a str,
    },
}

/// Callbacks while the bench runs.
#[allow(missing_debug_implementations, reason = "functions have no text")]
pub struct Hooks<'a> {
    /// Receives the number of finished compactions, and their total.
    pub progress: &'a mut dyn FnMut(usize, usize),
    /// Receives labels and requests.
    pub export: &'a mut dyn FnMut(&Exported<'_>) -> ctx_core::Result<()>,
}
