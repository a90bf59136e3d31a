//! Compares engines, profiles and other agents' policies over recorded transcripts.
//!
//! Each candidate replays a session as [`crate::replay`] does. It edits the view before a recorded
//! request, and the request is measured. The audit of layer 3 compares dropped messages with sent
//! messages, so that one rule judges policies with and without summaries. The same input gives the
//! same report, byte for byte.

mod arm_totals;
pub mod bench;
mod losses;
mod presets;
mod recorded;
mod report;
mod run;
mod share;
mod single_compaction;
mod text;

use std::sync::Arc;

use ctx_core::{ContextEngine, Counter, Entry, Result, TokenLedger, Tokens};
use ctx_model::Prices;
use ctx_session::Transcript;

pub use presets::{ALL as PRESETS, Preset};
pub use report::{
    EqualSize, EvalReport, EvalRow, KeptNext, RecordedSummary, RowKind, SessionEval,
    SingleCompactionRow, SummaryFigures, SummarySums,
};

use crate::calibration::{seen, walk};
use crate::{Baseline, SessionReport};
use arm_totals::ArmTotals;
use bench::ReplayLabels;
pub use share::Share;

/// The default share that a session is compacted to once.
pub const COMPACT_TO: f64 = 0.3;

/// The settings for evaluating one session.
#[derive(Clone, Debug)]
pub struct EvalSetup {
    /// The transcript, for the report.
    pub session: SessionReport,
    /// The model's window.
    pub window: Tokens,
    /// The counter for all sizes of all candidates.
    pub counter: Counter,
    /// Tokens of the system prompt, if the transcript has it.
    pub system: Tokens,
    /// Tokens of the tool schemas, if the transcript has them.
    pub tools: Tokens,
    /// The provider's figures for the session, which correct counted sizes.
    pub baseline: Baseline,
    /// The model whose prices are used, and the prices.
    pub model: Option<String>,
    /// See `model`.
    pub prices: Option<Prices>,
    /// The share that the session is compacted to once, between 0 and 1.
    pub compact_to: f64,
}

/// An engine to be evaluated.
#[derive(Clone)]
pub struct EngineArm {
    /// Its name in the report: the profile's, or the engine's id.
    pub name: String,
    /// [`RowKind::Profile`] or [`RowKind::Engine`].
    pub kind: RowKind,
    /// The engine.
    pub engine: Arc<dyn ContextEngine>,
    /// Its own reserve and counter. The counter is only used to report its error.
    pub ledger: TokenLedger,
}

ctx_core::partial_debug!(EngineArm, it, name = it.name, kind = it.kind);

/// A candidate of the comparison.
#[derive(Clone, Debug)]
pub enum EvalArm {
    /// Never drops anything.
    FullHistory,
    /// An engine.
    Engine(EngineArm),
    /// Another agent's policy.
    Preset(Preset),
}

impl EvalArm {
    /// Its name in the report.
    pub fn name(&self) -> &str {
        match self {
            Self::FullHistory => "nothing",
            Self::Engine(contender) => &contender.name,
            Self::Preset(preset) => preset.name,
        }
    }

    /// Its kind.
    pub fn kind(&self) -> RowKind {
        match self {
            Self::FullHistory => RowKind::None,
            Self::Engine(contender) => contender.kind,
            Self::Preset(_) => RowKind::Preset,
        }
    }
}

/// Evaluates the candidates over one session. If the transcript holds the agent's own compactions,
/// the report has rows for them too. `progress` receives the number of finished candidates.
///
/// # Errors
///
/// Errors of reading the transcript. A candidate that fails has a row with the failure.
pub async fn evaluate(
    transcript: &Transcript,
    candidates: &[EvalArm],
    setup: &EvalSetup,
    mut progress: impl FnMut(usize),
) -> Result<SessionEval> {
    let mut line = transcript.main_line()?;
    // Each arm reads each message many times.
    for message in &mut line {
        message.entry = Arc::new(message.entry.loaded()?);
    }
    let labels = ReplayLabels::of(&line, setup)?;
    let points = recorded::points(transcript, line.len())?;
    let mut errors: Vec<(Counter, Vec<f64>)> = Vec::new();
    let mut sums = Vec::with_capacity(candidates.len() + 2);
    let mut once_rows = Vec::new();
    for (done, candidate) in candidates.iter().enumerate() {
        let mut ran = run::run(&line, candidate, setup, &labels).await;
        let own = match candidate {
            EvalArm::Engine(contender) => *contender.ledger.counter(),
            EvalArm::FullHistory | EvalArm::Preset(_) => setup.counter,
        };
        if !errors.iter().any(|(counter, _)| *counter == own) {
            let sizes = recorded::sizes(&points, &own)?;
            let fixed = setup.system + setup.tools;
            let cuts = recorded::cuts(&points, &sizes);
            let mut size = |entry: &Entry| seen(entry, &own);
            let walked = walk(transcript, &line, &cuts, fixed, &mut size)?;
            let reported = &setup.baseline.recorded;
            errors.push((own, recorded::estimate_errors(&line, &walked, reported)));
        }
        let known = errors.iter().find(|(counter, _)| *counter == own);
        ran.errors = known.map(|(_, errors)| errors.clone()).unwrap_or_default();
        sums.push(ran);
        once_rows.extend(single_compaction::compact_once(&line, candidate, setup).await);
        progress(done + 1);
    }
    let (mut rows, summaries) = recorded::recorded(transcript, &line, &points, setup, &labels)?;
    rows.append(&mut sums);
    Ok(SessionEval {
        session: setup.session.clone(),
        window: setup.window,
        model: setup.model.clone(),
        rows: rows.iter().map(ArmTotals::row).collect(),
        once: once_rows,
        recorded: summaries,
        calibration: setup.baseline.calibration,
        sums: rows,
    })
}

impl EvalReport {
    /// Returns the report of several sessions. It lists the presets that the rows name.
    #[must_use]
    pub fn of(sessions: Vec<SessionEval>, counter: &Counter, compact_to: f64) -> Self {
        let mut joined: Vec<ArmTotals> = Vec::new();
        let any_recorded = sessions.iter().any(|session| !session.recorded.is_empty());
        for sums in sessions.iter().flat_map(|session| &session.sums) {
            let same = |other: &&mut ArmTotals| {
                other.row.kind == sums.row.kind && other.row.name == sums.row.name
            };
            match joined.iter_mut().find(same) {
                Some(all) => all.join(sums),
                None => joined.push(sums.clone()),
            }
        }
        let named = |preset: &Preset| {
            joined
                .iter()
                .any(|sums| sums.row.kind == RowKind::Preset && sums.row.name == preset.name)
        };
        Self {
            counter: counter.kind.name().to_owned(),
            compact_to,
            rows: joined.iter().map(ArmTotals::row).collect(),
            equal_size: EqualSize::of(sessions.iter().flat_map(|session| &session.recorded)),
            once: single_compaction::join(sessions.iter().flat_map(|session| session.once.clone())),
            presets: PRESETS.iter().copied().filter(named).collect(),
            notes: notes(counter, compact_to, any_recorded),
            sessions,
        }
    }
}

/// Returns the notes needed to interpret the figures.
fn notes(counter: &Counter, compact_to: f64, recorded: bool) -> Vec<String> {
    let counter = counter.kind.name();
    let mut notes = vec![
        "presets: a policy from its documented constants, not the program; where a rival lets a model \
         write the summary, it is replaced by ctx's extractive summariser without audit and repair, as \
         large as the rival lets its model write, but at most a quarter of what it replaces"
            .to_owned(),
        format!(
            "recorded is what the provider reported, over all requests of the session; all other sizes \
             are counted by {counter} and calibrated by these reports: a constant for system prompt \
             and tools, and a factor; the estimate error is that of the candidate's own counter, \
             uncalibrated"
        ),
        "coverage: required facts in dropped or truncated messages that are still in the request \
         afterwards, anywhere in it, over the whole session; by ctx's own audit"
            .to_owned(),
        "ungrounded: identifiers and numbers in summaries that are not in their sources"
            .to_owned(),
        "wedges: requests larger than the window, times that tokens had to be freed and were not, and \
         requests that an engine failed to assemble"
            .to_owned(),
        format!(
            "at {:.0} %: the whole session compacted once, to that share of its tokens at most, by the \
             candidate's own rule for what stays; in brackets if not every session reached it; the \
             remaining sizes differ, so compare shares only at similar sizes",
            compact_to * 100.0
        ),
    ];
    if recorded {
        notes.push(
            "recorded, ctx-extractive: the same session with ctx's extractive summary, audited and \
             repaired, in the place of each of the agent's, in as many tokens"
                .to_owned(),
        );
    }
    notes
}
