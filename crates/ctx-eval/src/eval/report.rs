//! The report of an evaluation. The field names are part of the command line's contract.

use std::ops::AddAssign;

use ctx_core::{EntryId, Tokens};
use serde::Serialize;

use super::{Preset, Share};
use crate::{SessionCalibration, SessionReport};

/// The kind of a row.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RowKind {
    /// Nothing was ever dropped.
    #[default]
    None,
    /// The default engine under a profile of ctx.
    Profile,
    /// An engine, by its id.
    Engine,
    /// Another agent's policy, from its documented constants.
    Preset,
    /// The agent's own compactions as recorded, or with ctx's summary in place of its own.
    Recorded,
}

/// One candidate over one session, or over all of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvalRow {
    /// The candidate.
    pub name: String,
    /// Its kind.
    pub kind: RowKind,
    /// The number of requests.
    pub requests: usize,
    /// Sum of the tokens sent, all by the report's counter.
    pub sent_tokens: u64,
    /// Share of the sent tokens that the provider's cache would have held, 0 to 1.
    pub prefix_reuse: Option<f64>,
    /// The cost of the requests and the summary calls, in USD; null if no price is known.
    pub cost_usd: Option<f64>,
    /// Tokens of the request after a cut divided by the tokens before it. The mean over all cuts of
    /// history; null without cuts.
    pub compression_ratio: Option<f64>,
    /// Summary calls that a model would have had to answer, including failed ones.
    pub calls: u64,
    /// The error of the candidate's own counter against the provider's figures: median over the
    /// recorded requests of the absolute relative error; null if nothing was reported.
    pub estimate_error: Option<f64>,
    /// The share of required facts in dropped messages that remained in the request. All losses
    /// count, weighted by their facts; null without any such fact. Losses under a tenth of the
    /// window are judged together with later losses.
    pub coverage: Option<f64>,
    /// Identifiers and numbers in summaries that are nowhere in their sources.
    pub ungrounded: u64,
    /// The first of them.
    pub invented: Vec<String>,
    /// Requests that would not have fitted the window, and failed attempts to free tokens.
    pub wedges: usize,
    /// How often history was cut.
    pub cuts: usize,
    /// What requests keep of what the agent needs next.
    pub needed_next: KeptNext,
    /// Tokens of the blocks that long-term memory inserted, each counted once.
    pub block_tokens: u64,
    /// Why the candidate did not finish, if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// What the requests of a replay keep of what the agent needs next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeptNext {
    /// Handles that the agent could know only from before the request.
    pub strict: Share,
    /// All handles needed next.
    pub loose: Share,
    /// Calls that repeat an earlier one with the same result, and how many of these results a
    /// recalled block of the request had.
    pub repeated: Share,
}

impl AddAssign for KeptNext {
    fn add_assign(&mut self, other: Self) {
        self.strict += other.strict;
        self.loose += other.loose;
        self.repeated += other.repeated;
    }
}

/// A session compacted once, to a share of its tokens.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SingleCompactionRow {
    /// The candidate.
    pub name: String,
    /// Its kind.
    pub kind: RowKind,
    /// Tokens before.
    pub tokens_before: u64,
    /// Tokens after.
    pub tokens_after: u64,
    /// Required facts in dropped messages. Their number grows with the dropped messages.
    pub facts: u64,
    /// How many of them are in the request afterwards.
    #[serde(skip)]
    pub(super) kept: u64,
    /// Their share; null without any.
    pub coverage: Option<f64>,
    /// Identifiers and numbers in the summary that are nowhere in its source.
    pub ungrounded: u64,
    /// The number of sessions, and how many of them reached the share.
    pub sessions: usize,
    /// See `sessions`.
    pub reached: usize,
    /// Why it could not be measured, if it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A summary by the agent's own model, and ctx's summary of the same messages at the same size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedSummary {
    /// The recorded compaction.
    pub entry_id: EntryId,
    /// The number of messages it replaces.
    pub messages: usize,
    /// Required facts in them.
    pub facts: u64,
    /// The recorded summary.
    pub recorded: SummaryFigures,
    /// ctx's summary: extractive, audited and repaired, limited to the tokens of the recorded one.
    pub ctx: SummaryFigures,
}

/// The quality of a summary.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryFigures {
    /// Its tokens.
    pub tokens: Tokens,
    /// The share of the facts that are in the summary alone; null without any.
    pub in_summary: Option<f64>,
    /// The share of the facts that are in the summary or in the messages kept beside it.
    pub coverage: Option<f64>,
    /// Identifiers and numbers that are nowhere in the source.
    pub ungrounded: Vec<String>,
}

/// The comparison at equal size: the sums over all recorded summaries, and over ctx's summaries of
/// the same messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EqualSize {
    /// The number of summaries by the agents' own models.
    pub summaries: usize,
    /// Required facts in the messages they replace.
    pub facts: u64,
    /// The recorded summaries.
    pub recorded: SummarySums,
    /// The summaries of ctx. None has more tokens than the recorded summary.
    pub ctx: SummarySums,
}

impl EqualSize {
    /// Returns the sums, if there are any recorded summaries.
    pub(super) fn of<'a>(found: impl Iterator<Item = &'a RecordedSummary>) -> Option<Self> {
        let mut sums = Self::default();
        for summary in found {
            sums.summaries += 1;
            sums.facts += summary.facts;
            sums.recorded.add(&summary.recorded, summary.facts);
            sums.ctx.add(&summary.ctx, summary.facts);
        }
        (sums.summaries > 0).then_some(sums)
    }
}

/// The sums of several summaries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SummarySums {
    /// Their tokens.
    pub tokens: u64,
    /// Required facts that are in the summaries alone.
    pub kept: u64,
    /// Identifiers and numbers that are nowhere in their sources.
    pub ungrounded: u64,
}

impl SummarySums {
    fn add(&mut self, figures: &SummaryFigures, facts: u64) {
        self.tokens += figures.tokens.get();
        self.kept += figures.in_summary.map_or(0, |share| (share * facts as f64).round() as u64);
        self.ungrounded += figures.ungrounded.len() as u64;
    }
}

/// One session's part of the report.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEval {
    /// The transcript.
    pub session: SessionReport,
    /// The model's window.
    pub window: Tokens,
    /// The model whose prices were used.
    pub model: Option<String>,
    /// The candidates.
    pub rows: Vec<EvalRow>,
    /// The session compacted once.
    pub once: Vec<SingleCompactionRow>,
    /// The agent's own summaries.
    pub recorded: Vec<RecordedSummary>,
    /// How counted sizes were corrected by the provider's figures; null if it reported none.
    pub calibration: Option<SessionCalibration>,
    /// The inputs of the sums over several sessions, one per row.
    #[serde(skip)]
    pub(super) sums: Vec<super::arm_totals::ArmTotals>,
}

/// An evaluation.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvalReport {
    /// The counter of all sizes.
    pub counter: String,
    /// The share that sessions were compacted to once.
    pub compact_to: f64,
    /// The candidates, over all sessions.
    pub rows: Vec<EvalRow>,
    /// The agents' own summaries and ctx's summaries at equal size; null if none was recorded.
    pub equal_size: Option<EqualSize>,
    /// Each session compacted once, over all sessions. The remaining sizes and the numbers of
    /// dropped facts differ, so a coverage must be read with both.
    pub once: Vec<SingleCompactionRow>,
    /// The sessions.
    pub sessions: Vec<SessionEval>,
    /// The sources of the presets.
    pub presets: Vec<Preset>,
    /// Notes needed to interpret the figures.
    pub notes: Vec<String>,
}
