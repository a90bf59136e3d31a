//! Engines, profiles and other agents' policies side by side, over recorded transcripts.
//!
//! Each candidate replays a session as [`crate::replay`] does: before each recorded request it edits
//! the view, and what would have been sent is measured. What it left out is compared with what it sent
//! by the audit of layer 3, so that a policy without summaries is judged by the same rule as one with.
//! The same input gives the same report, byte for byte.

mod losses;
mod once;
pub mod page;
mod presets;
mod recorded;
mod report;
mod run;
mod tally;
mod text;

use std::sync::Arc;

use ctx_core::{ContextEngine, Counter, Entry, Profile, Result, TokenLedger, Tokens};
use ctx_model::Prices;
use ctx_session::Transcript;

pub use presets::{ALL as PRESETS, Preset};
pub use report::{
    EqualSize, EvalReport, EvalRow, OnceRow, RecordedSummary, RowKind, SessionEval, SummaryFigures,
    SummarySums,
};

use crate::calibration::walk;
use crate::{Baseline, SessionReport};
use tally::Sums;

/// The share that a session is compacted to once, where nobody says otherwise.
pub const COMPACT_TO: f64 = 0.3;

/// What one session is evaluated with.
#[derive(Clone, Debug)]
pub struct EvalSetup {
    /// The transcript, for the report.
    pub session: SessionReport,
    /// The model's window.
    pub window: Tokens,
    /// How all sizes are counted, whoever sends them.
    pub counter: Counter,
    /// Tokens of the system prompt, where the transcript has it.
    pub system: Tokens,
    /// Tokens of the tool schemas, where the transcript has them.
    pub tools: Tokens,
    /// What the provider reported of the session, by which counted sizes are corrected.
    pub baseline: Baseline,
    /// The model whose prices are taken, and the prices.
    pub model: Option<String>,
    /// See `model`.
    pub prices: Option<Prices>,
    /// The share that the session is compacted to once, between 0 and 1.
    pub compact_to: f64,
}

/// An engine to be evaluated.
#[derive(Clone)]
pub struct Contender {
    /// Its name in the report: the profile's, or the engine's id.
    pub name: String,
    /// [`RowKind::Profile`] or [`RowKind::Engine`].
    pub kind: RowKind,
    /// The engine.
    pub engine: Arc<dyn ContextEngine>,
    /// The profile it runs under.
    pub profile: Profile,
    /// Its own reserve and counter. The counter is only used to say how far it is off.
    pub ledger: TokenLedger,
}

impl std::fmt::Debug for Contender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contender")
            .field("name", &self.name)
            .field("kind", &self.kind)
            .field("profile", &self.profile)
            .finish_non_exhaustive()
    }
}

/// What is compared.
#[derive(Clone, Debug)]
pub enum Candidate {
    /// Nothing is ever left out.
    Nothing,
    /// An engine.
    Engine(Contender),
    /// Another agent's policy.
    Preset(Preset),
}

impl Candidate {
    /// Its name in the report.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Nothing => "nothing",
            Self::Engine(contender) => &contender.name,
            Self::Preset(preset) => preset.name,
        }
    }

    /// What it is.
    #[must_use]
    pub fn kind(&self) -> RowKind {
        match self {
            Self::Nothing => RowKind::None,
            Self::Engine(contender) => contender.kind,
            Self::Preset(_) => RowKind::Preset,
        }
    }
}

/// Evaluates the candidates over one session. Where the transcript holds compactions of the agent's
/// own, there are rows for them too. `progress` hears how many candidates are done.
///
/// # Errors
///
/// What reading the transcript may give. A candidate that fails is a row that says so.
pub async fn evaluate(
    transcript: &Transcript,
    candidates: &[Candidate],
    setup: &EvalSetup,
    mut progress: impl FnMut(usize),
) -> Result<SessionEval> {
    let line = transcript.main_line()?;
    let points = recorded::points(transcript, line.len())?;
    let mut errors: Vec<(Counter, Vec<f64>)> = Vec::new();
    let mut sums = Vec::with_capacity(candidates.len() + 2);
    let mut once_rows = Vec::new();
    for (done, candidate) in candidates.iter().enumerate() {
        let mut ran = run::run(&line, candidate, setup).await;
        let own = match candidate {
            Candidate::Engine(contender) => *contender.ledger.counter(),
            Candidate::Nothing | Candidate::Preset(_) => setup.counter,
        };
        if !errors.iter().any(|(counter, _)| *counter == own) {
            let sizes = recorded::sizes(&points, &own)?;
            let fixed = setup.system + setup.tools;
            let cuts = recorded::cuts(&points, &sizes);
            let mut size = |entry: &Entry| recorded::seen(entry, &own);
            let walked = walk(transcript, &line, &cuts, fixed, &mut size)?;
            let reported = &setup.baseline.recorded;
            errors.push((own, recorded::estimate_errors(&line, &walked, reported)));
        }
        let known = errors.iter().find(|(counter, _)| *counter == own);
        ran.errors = known.map(|(_, errors)| errors.clone()).unwrap_or_default();
        sums.push(ran);
        once_rows.extend(once::once(&line, candidate, setup).await);
        progress(done + 1);
    }
    let (mut rows, summaries) = recorded::recorded(transcript, &line, &points, setup)?;
    rows.append(&mut sums);
    Ok(SessionEval {
        session: setup.session.clone(),
        window: setup.window,
        model: setup.model.clone(),
        rows: rows.iter().map(Sums::row).collect(),
        once: once_rows,
        recorded: summaries,
        calibration: setup.baseline.calibration,
        sums: rows,
    })
}

impl EvalReport {
    /// The report of several sessions. Presets are those that the rows name.
    #[must_use]
    pub fn of(sessions: Vec<SessionEval>, counter: &Counter, compact_to: f64) -> Self {
        let mut joined: Vec<Sums> = Vec::new();
        let any_recorded = sessions.iter().any(|session| !session.recorded.is_empty());
        for sums in sessions.iter().flat_map(|session| &session.sums) {
            let same = |other: &&mut Sums| other.kind == sums.kind && other.name == sums.name;
            match joined.iter_mut().find(same) {
                Some(all) => all.join(sums),
                None => joined.push(sums.clone()),
            }
        }
        let named = |preset: &Preset| {
            joined.iter().any(|sums| sums.kind == RowKind::Preset && sums.name == preset.name)
        };
        Self {
            counter: counter.kind().name().to_owned(),
            compact_to,
            rows: joined.iter().map(Sums::row).collect(),
            equal_size: EqualSize::of(sessions.iter().flat_map(|session| &session.recorded)),
            once: once::join(sessions.iter().flat_map(|session| session.once.clone())),
            presets: PRESETS.into_iter().filter(named).collect(),
            notes: notes(counter, compact_to, any_recorded),
            sessions,
        }
    }
}

/// What has to be known to read the figures.
fn notes(counter: &Counter, compact_to: f64, recorded: bool) -> Vec<String> {
    let counter = counter.kind().name();
    let mut notes = vec![
        "presets: a policy from its documented constants, not the program; where a rival lets a model \
         write the summary, the stand-in is ctx's extractive summariser without audit and repair, as \
         large as the rival lets its model write, but at most a quarter of what it stands for"
            .to_owned(),
        format!(
            "recorded is what the provider reported, over all requests of the session; all other sizes \
             are counted by {counter} and calibrated by these reports: a constant for system prompt \
             and tools, and a factor; the estimate error is that of the candidate's own counter, \
             uncalibrated"
        ),
        "coverage: must-keep facts of what was left out or shortened that still stand in the request \
         afterwards, wherever they stand in it, over all of the session; by ctx's own audit"
            .to_owned(),
        "ungrounded: identifiers and numbers in summaries that nothing they stand for says"
            .to_owned(),
        "wedges: requests larger than the window, times that room had to be made and was not, and \
         requests that an engine failed to make"
            .to_owned(),
        format!(
            "at {:.0} %: the whole session compacted once, to that share of its tokens at most, by the \
             candidate's own rule for what stays; in brackets where not every session got there; what \
             is left differs in size, so shares kept compare only beside it",
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
