//! The report of the bench. The field names are part of the command line's contract.

use std::collections::{BTreeMap, HashSet};

use ctx_core::EntryId;
use serde::Serialize;

use super::arms::{ArmKind, BenchArm};
use super::difference::{Difference, Measure, differences};
use super::handles::HandleKind;
use super::score::Figures;
use super::{BenchPlan, Share};
use crate::SessionReport;
use crate::eval::Preset;

/// A place at which a session is cut.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CutReport {
    /// The answer before which it is cut.
    pub entry_id: EntryId,
    /// Tokens of the history.
    pub history_tokens: u64,
}

/// How a history was compacted.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Setting {
    /// The share of the history's tokens that the request may have. Null at the agent's own
    /// compactions, where the limit is the size that the agent reached.
    pub budget: Option<f64>,
    /// The number of compactions.
    pub rounds: usize,
}

/// The figures of one arm in one setting.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cell {
    /// The setting.
    #[serde(flatten)]
    pub setting: Setting,
    /// The figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// An arm.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArmReport {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: ArmKind,
    /// Whether it takes part in the comparison.
    pub compared: bool,
    /// Its figures.
    pub cells: Vec<Cell>,
}

impl ArmReport {
    pub(super) fn of(arm: &BenchArm) -> Self {
        Self { name: arm.name(), kind: arm.kind(), compared: arm.is_compared(), cells: Vec::new() }
    }

    pub(super) fn recorded() -> Self {
        let (name, kind) = ("recorded".to_owned(), ArmKind::Recorded);
        Self { name, kind, compared: true, cells: Vec::new() }
    }

    /// Adds figures to the figures of a setting.
    pub(super) fn add(&mut self, setting: Setting, figures: &Figures) {
        match self.cells.iter_mut().find(|cell| cell.setting == setting) {
            Some(cell) => cell.figures += figures,
            None => self.cells.push(Cell { setting, figures: figures.clone() }),
        }
    }

    /// Returns its figures in a setting.
    pub fn figures(&self, setting: Setting) -> Option<&Figures> {
        self.cells.iter().find(|cell| cell.setting == setting).map(|cell| &cell.figures)
    }
}

/// The losses of the reference in one setting at one cut.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Loss {
    /// The session's path.
    pub session: String,
    /// The answer before which it is cut.
    pub entry_id: EntryId,
    /// How it was compacted.
    #[serde(flatten)]
    pub setting: Setting,
    /// The handles needed next, strictly.
    pub strict: Share,
    /// The handles that are not in the request, by kind.
    pub lost: BTreeMap<HandleKind, Vec<String>>,
    /// Changed files that it does not name.
    pub files: Vec<String>,
    /// Planted statements that it does not contain.
    pub statements: Vec<String>,
}

/// One session's part of the report.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionBench {
    /// The transcript.
    pub session: SessionReport,
    /// Where it is cut.
    pub cuts: Vec<CutReport>,
    /// The arms.
    pub arms: Vec<ArmReport>,
    /// The losses of the reference.
    #[serde(skip)]
    pub(super) losses: Vec<Loss>,
}

/// The bench over several sessions.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BenchReport {
    /// The name of the arm with which the others are compared.
    pub reference: String,
    /// The shares of the history's tokens.
    pub budgets: Vec<f64>,
    /// The numbers of compactions.
    pub rounds: Vec<usize>,
    /// The number of sets of planted statements.
    pub statements: usize,
    /// The arms, over all sessions.
    pub arms: Vec<ArmReport>,
    /// The differences between the reference and the other arms.
    pub differences: Vec<Difference>,
    /// The cuts at which the reference lost most, if requested.
    pub worst: Vec<Loss>,
    /// The sessions.
    pub sessions: Vec<SessionBench>,
    /// The sources of the presets.
    pub presets: Vec<Preset>,
}

impl BenchReport {
    /// Returns the report of several sessions, with the `shown` cuts at which the reference lost
    /// most.
    #[must_use]
    pub fn of(
        sessions: Vec<SessionBench>,
        presets: Vec<Preset>,
        plan: &BenchPlan,
        shown: usize,
    ) -> Self {
        let mut all: Vec<ArmReport> = Vec::new();
        for arm in sessions.iter().flat_map(|session| &session.arms) {
            let known = all.iter().position(|other| other.name == arm.name);
            let at = known.unwrap_or_else(|| {
                all.push(ArmReport { cells: Vec::new(), ..arm.clone() });
                all.len() - 1
            });
            arm.cells.iter().for_each(|cell| all[at].add(cell.setting, &cell.figures));
        }
        Self {
            reference: all.first().map(|arm| arm.name.clone()).unwrap_or_default(),
            budgets: plan.budgets.clone(),
            rounds: plan.rounds.clone(),
            statements: plan.statements.len(),
            differences: differences(&all, &sessions),
            worst: worst(&sessions, shown),
            arms: all,
            presets,
            sessions,
        }
    }

    /// Returns a difference.
    pub fn difference(&self, arm: &str, setting: Setting, measure: Measure) -> Option<&Difference> {
        let mut all = self.differences.iter();
        all.find(|it| it.arm == arm && it.setting == setting && it.measure == measure)
    }
}

/// Returns the cuts with the smallest shares, each in its worst setting. If shares are equal, cuts
/// with more handles come first.
fn worst(sessions: &[SessionBench], shown: usize) -> Vec<Loss> {
    let mut all: Vec<&Loss> = sessions.iter().flat_map(|session| &session.losses).collect();
    let share = |loss: &Loss| loss.strict.share().unwrap_or(1.0);
    all.sort_by(|one, two| {
        share(one).total_cmp(&share(two)).then(two.strict.of.cmp(&one.strict.of))
    });
    let mut cuts = HashSet::new();
    all.retain(|loss| cuts.insert((&loss.session, &loss.entry_id)));
    all.into_iter().take(shown).cloned().collect()
}
