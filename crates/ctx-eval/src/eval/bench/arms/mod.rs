//! The arms, which compact a history, and their results.

mod candidate;
mod rolled;
mod rule;

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use ctx_core::{Counter, Result, Tokens};
use serde::Serialize;

pub use candidate::CandidateProgram;
pub use rule::SimpleRule;

use super::handles::HandleIds;
use super::request::Request;
use super::session::{Item, tail};
use crate::eval::{EngineArm, EvalSetup, Preset};

/// An arm of the bench.
#[derive(Debug)]
pub enum BenchArm {
    /// An engine: a profile of ctx, or another one. The first arm is the reference.
    Engine(EngineArm),
    /// Another agent's policy.
    Preset(Preset),
    /// A simple rule.
    Rule(SimpleRule),
    /// A program that writes summaries.
    Candidate(Rc<RefCell<CandidateProgram>>),
}

/// The kind of an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum ArmKind {
    /// An engine of ctx, or another one.
    Engine,
    /// Another agent's policy.
    Preset,
    /// A simple rule.
    Rule,
    /// A program of the user.
    Candidate,
    /// The summaries that the session's own agent wrote.
    Recorded,
}

impl BenchArm {
    /// Returns its name in the report.
    pub fn name(&self) -> String {
        match self {
            Self::Engine(arm) => arm.name.clone(),
            Self::Preset(preset) => preset.name.to_owned(),
            Self::Rule(rule) => rule.name().to_owned(),
            Self::Candidate(program) => program.borrow().command.clone(),
        }
    }

    pub(super) fn kind(&self) -> ArmKind {
        match self {
            Self::Engine(_) => ArmKind::Engine,
            Self::Preset(_) => ArmKind::Preset,
            Self::Rule(_) => ArmKind::Rule,
            Self::Candidate(_) => ArmKind::Candidate,
        }
    }

    /// Whether it takes part in the comparison. A rule that lists handles does not.
    pub(super) fn is_compared(&self) -> bool {
        !matches!(self, Self::Rule(SimpleRule::Identifiers))
    }

    /// Compacts a history.
    pub(super) async fn compact(&self, task: &Task<'_>, setup: &EvalSetup) -> Result<Outcome> {
        match self {
            Self::Engine(arm) => rolled::engine(arm, task, setup).await,
            Self::Preset(preset) => rolled::preset(preset, task, setup),
            Self::Rule(rule) => Ok(rule.compact(task)),
            Self::Candidate(program) => program.borrow_mut().compact(task),
        }
    }
}

/// A history to be compacted, in one or several rounds.
pub(super) struct Task<'a> {
    pub(super) history: &'a [Arc<Item>],
    /// The end of the history at each compaction. The last end is the end of the whole history.
    pub(super) ends: &'a [usize],
    /// The bench's budget after each compaction.
    pub(super) budgets: Vec<Tokens>,
    /// The most tokens after each compaction: the budget, or the size of the reference if less.
    pub(super) targets: Vec<Tokens>,
    pub(super) counter: Counter,
    pub(super) ids: &'a HandleIds,
}

impl Task<'_> {
    /// Returns each compaction: the end of its history, and the most tokens after it.
    fn rounds(&self) -> impl Iterator<Item = (usize, Tokens)> {
        self.ends.iter().copied().zip(self.targets.iter().copied())
    }

    /// Returns the index of the first message that the bench keeps beside the summary of a round.
    fn tail(&self, round: usize) -> usize {
        tail(&self.history[..self.ends[round]], self.budgets[round]).start
    }

    /// Returns the most tokens of the whole request in the end.
    pub(super) fn most(&self) -> Tokens {
        self.targets.last().copied().unwrap_or_default()
    }

    /// Returns the messages kept beside the last summary, and the most tokens of that summary.
    fn kept(&self) -> (&[Arc<Item>], Tokens) {
        let kept = &self.history[self.tail(self.ends.len() - 1)..];
        (kept, self.most() - super::session::tokens(kept))
    }
}

/// The result of an arm for a history.
#[derive(Debug, Default)]
pub(super) struct Outcome {
    pub(super) request: Request,
    /// The size after each compaction, if the arm compacts round by round.
    pub(super) sizes: Vec<Tokens>,
    /// Calls of a model that write a summary: prompt and answer.
    pub(super) calls: Vec<(Tokens, Tokens)>,
    /// The cost of the calls, from the receipts.
    pub(super) cost_usd: Option<f64>,
    /// The share of kept facts, from the receipt of the last compaction.
    pub(super) receipt: Option<f64>,
    /// Whether a round left more than its target.
    pub(super) stuck: bool,
    /// The number of compactions.
    pub(super) rounds: usize,
    /// The time of all compactions, in milliseconds.
    pub(super) millis: f64,
}
