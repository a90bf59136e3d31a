//! What an evaluation found. The field names are part of the command line's contract.

use ctx_core::{EntryId, Tokens};
use serde::Serialize;

use super::Preset;
use crate::{SessionCalibration, SessionReport};

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum RowKind {
    /// Nothing was ever left out.
    None,
    /// The default engine under one of our profiles.
    Profile,
    /// An engine, by its id.
    Engine,
    /// What another agent does, from its documented constants.
    Preset,
    /// What the agent itself did, as recorded; or our summary in the place of its.
    Recorded,
}

/// One candidate over one session, or over all of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvalRow {
    /// The candidate.
    pub name: String,
    /// What it is.
    pub kind: RowKind,
    /// How many requests there were.
    pub requests: usize,
    /// Sum of the tokens sent, all by the report's counter.
    pub sent_tokens: u64,
    /// Share of the sent tokens that the provider's cache would have held, 0 to 1.
    pub prefix_reuse: Option<f64>,
    /// What the requests and the summary calls would have cost, in USD; null where no price is known.
    pub cost_usd: Option<f64>,
    /// Tokens of the request after over those before, mean over all times history was cut; null
    /// where it never was.
    pub compression_ratio: Option<f64>,
    /// Calls for summaries that a model would have had to answer. Failed ones count.
    pub calls: u64,
    /// How far the candidate's own counter is off what the provider reported: median over the
    /// recorded requests of the absolute relative error; null where nothing was reported.
    pub estimate_error: Option<f64>,
    /// Of the must-keep facts in what was left out, the share that still stood in the request
    /// afterwards. All times that something was left out count, by their facts; null where no fact
    /// ever was. Losses under a tenth of the window are judged together with those that follow.
    pub coverage: Option<f64>,
    /// Identifiers and numbers in summaries that stand nowhere in their sources.
    pub ungrounded: u64,
    /// The first of them.
    pub invented: Vec<String>,
    /// Requests that would not have fitted the window, and times that room had to be made and was
    /// not.
    pub wedges: usize,
    /// How many times history was cut.
    pub cuts: usize,
    /// Why the candidate did not get to the end, if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A session compacted once, to a share of its tokens.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OnceRow {
    /// The candidate.
    pub name: String,
    /// What it is.
    pub kind: RowKind,
    /// Tokens before.
    pub tokens_before: u64,
    /// Tokens after.
    pub tokens_after: u64,
    /// Must-keep facts in what was left out: the more is left out, the more there are.
    pub facts: u64,
    /// Share of them that stands in the request afterwards; null where there were none.
    pub coverage: Option<f64>,
    /// Identifiers and numbers in the summary that stand nowhere in its source.
    pub ungrounded: u64,
    /// Sessions, and how many of them got to the share.
    pub sessions: usize,
    /// See `sessions`.
    pub reached: usize,
    /// Why it could not be measured, where it could not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<String>,
}

/// A summary that the agent's own model wrote, and ours of the same passage at the same size.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RecordedSummary {
    /// The recorded compaction.
    pub entry_id: EntryId,
    /// Messages it stands for.
    pub messages: usize,
    /// Must-keep facts in them.
    pub facts: u64,
    /// The recorded one.
    pub recorded: SummaryFigures,
    /// Ours, extractive, with audit and repair, in a budget of as many tokens as the recorded one has.
    pub ctx: SummaryFigures,
}

/// How good a summary is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryFigures {
    /// Its tokens.
    pub tokens: Tokens,
    /// Share of the facts that stand in the summary alone; null where there were none.
    pub in_summary: Option<f64>,
    /// Share of the facts that stand in the summary and in what was kept beside it.
    pub coverage: Option<f64>,
    /// Identifiers and numbers that stand nowhere in the source.
    pub ungrounded: Vec<String>,
}

/// All recorded summaries and ours of the same passages, added up: the comparison at equal size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EqualSize {
    /// How many summaries of the agents' own models there are.
    pub summaries: usize,
    /// Must-keep facts in the messages they stand for.
    pub facts: u64,
    /// The recorded ones.
    pub recorded: SummarySums,
    /// Ours, none of which has more tokens than the one that it is compared with.
    pub ctx: SummarySums,
}

impl EqualSize {
    /// The sums, where there are any recorded summaries.
    pub(super) fn of<'a>(found: impl Iterator<Item = &'a RecordedSummary>) -> Option<Self> {
        let nothing = SummarySums { tokens: 0, kept: 0, ungrounded: 0 };
        let mut sums = Self { summaries: 0, facts: 0, recorded: nothing, ctx: nothing };
        for summary in found {
            sums.summaries += 1;
            sums.facts += summary.facts;
            sums.recorded.add(&summary.recorded, summary.facts);
            sums.ctx.add(&summary.ctx, summary.facts);
        }
        (sums.summaries > 0).then_some(sums)
    }
}

/// What several summaries amount to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SummarySums {
    /// Their tokens.
    pub tokens: u64,
    /// Must-keep facts that stand in the summaries alone.
    pub kept: u64,
    /// Identifiers and numbers that stand nowhere in their sources.
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
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionEval {
    /// The transcript.
    pub session: SessionReport,
    /// The model's window.
    pub window: Tokens,
    /// The model whose prices were taken.
    pub model: Option<String>,
    /// The candidates.
    pub rows: Vec<EvalRow>,
    /// The session compacted once.
    pub once: Vec<OnceRow>,
    /// The agent's own summaries.
    pub recorded: Vec<RecordedSummary>,
    /// How counted sizes were corrected by what the provider reported; null where it reported
    /// nothing.
    pub calibration: Option<SessionCalibration>,
    /// What the sums over several sessions are made from, a row each.
    #[serde(skip)]
    pub(super) sums: Vec<super::tally::Sums>,
}

/// An evaluation.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvalReport {
    /// How all sizes were counted.
    pub counter: String,
    /// The share that sessions were compacted to once.
    pub compact_to: f64,
    /// The candidates, over all sessions.
    pub rows: Vec<EvalRow>,
    /// The agents' own summaries and ours in as many tokens; null where none was recorded.
    pub equal_size: Option<EqualSize>,
    /// Each session compacted once, over all sessions. What is left differs in size, and so do the
    /// facts in what is gone: a coverage means little without both.
    pub once: Vec<OnceRow>,
    /// The sessions.
    pub sessions: Vec<SessionEval>,
    /// What the presets are made from.
    pub presets: Vec<Preset>,
    /// What has to be known to read the figures.
    pub notes: Vec<String>,
}
