//! The agent's own compactions, with the summaries its model wrote.

use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::{Counter, Entry, EntryId, Result, Role, Tokens};
use ctx_extract::{ExtractInput, extract};
use ctx_facts::{CitedMessage, FactLedger, FileLists, PreviousSummary};
use ctx_layers::compaction::{RepairOptions, SourceIndex, Ungrounded, repair};
use ctx_session::{BranchMessage, CompactionAuthor, Transcript};

use super::arm_totals::ArmTotals;
use super::bench::ReplayLabels;
use super::losses::{cited_message, kept, ungrounded};
use super::report::{KeptNext, RecordedSummary, RowKind, SummaryFigures};
use super::run::{answer_tokens, boundless};
use super::share::Share;
use super::{EvalSetup, text};
use crate::RecordedUsage;
use crate::calibration::{Cut, seen, walk};

/// The row of the agent's own compactions.
pub(super) const RECORDED: &str = "recorded";

/// The row with ctx's summaries in place of the agent's.
const IN_ITS_PLACE: &str = "recorded, ctx-extractive";

/// A compaction of the agent.
pub(super) struct Point {
    /// Its index among the entries of the transcript.
    pub(super) index: usize,
    id: EntryId,
    /// The context before it.
    pub(super) before: Vec<Arc<Entry>>,
    /// The context after it.
    pub(super) after: Vec<Arc<Entry>>,
}

/// The maximum number of messages in all contexts around compactions, as a multiple of the session's
/// messages. Compactions that keep little need about 2.
const CONTEXTS: usize = 8;

/// Returns the agent's own compactions on the path to the leaf, oldest first. In a damaged file
/// each may keep everything. Then only the first compactions are returned.
pub(super) fn points(transcript: &Transcript, messages: usize) -> Result<Vec<Point>> {
    let mut points = Vec::new();
    let mut left = messages.saturating_mul(CONTEXTS);
    for compaction in transcript.compaction_list(None)? {
        if compaction.by == CompactionAuthor::Ctx || compaction.undone {
            continue;
        }
        let Some(index) = transcript.index_of(&compaction.id) else { continue };
        let entry = transcript.entries.get(index);
        let parent = entry.and_then(|entry| transcript.entries.get(entry.parent()?));
        let Some(parent) = parent else { continue };
        let before = transcript.context(Some(&parent.id))?.entries;
        let after = transcript.context(Some(&compaction.id))?.entries;
        let size = before.len() + after.len();
        if size > left {
            break;
        }
        left -= size;
        points.push(Point { index, id: compaction.id, before, after });
    }
    Ok(points)
}

/// Returns the agent's compactions as indices in the transcript, with the sizes of the contexts
/// after them.
pub(super) fn cuts(points: &[Point], sizes: &[Tokens]) -> Vec<Cut> {
    points.iter().zip(sizes).map(|(point, &size)| (point.index, size)).collect()
}

/// Returns the sizes of the agent's contexts after its compactions.
pub(super) fn sizes(points: &[Point], counter: &Counter) -> Result<Vec<Tokens>> {
    points.iter().map(|point| tokens(&point.after, counter)).collect()
}

fn tokens(entries: &[Arc<Entry>], counter: &Counter) -> Result<Tokens> {
    entries.iter().map(|entry| entry.tokens(counter)).sum()
}

/// Returns the counter's relative error for each request with a reported size.
pub(super) fn estimate_errors(
    line: &[BranchMessage],
    walked: &[(Tokens, Tokens)],
    recorded: &RecordedUsage,
) -> Vec<f64> {
    let answers = line.iter().filter(|item| item.request);
    let errors = answers.zip(walked).filter_map(|(item, (estimate, _))| {
        let prompt = recorded.prompt(item.entry.id())? as f64;
        Some((f64::from(estimate.0) - prompt).abs() / prompt)
    });
    errors.collect()
}

/// Returns two rows, the agent's own and ctx's in its place, and the individual summaries.
pub(super) fn recorded(
    transcript: &Transcript,
    line: &[BranchMessage],
    points: &[Point],
    setup: &EvalSetup,
    labels: &ReplayLabels,
) -> Result<(Vec<ArmTotals>, Vec<RecordedSummary>)> {
    let prices = setup.baseline.prices(setup.prices);
    let mut own = ArmTotals::new(RECORDED, RowKind::Recorded, prices);
    let mut ours = ArmTotals::new(IN_ITS_PLACE, RowKind::Recorded, prices);
    let ledger = setup.baseline.corrected(boundless(setup));
    let (fixed, corrected) = (ledger.fixed(), |tokens| ledger.corrected(tokens));
    let own_sizes = sizes(points, &setup.counter)?;
    let (mut our_sizes, mut our_texts) = (Vec::new(), Vec::new());
    let mut summaries = Vec::new();
    for (point, &size) in points.iter().zip(&own_sizes) {
        let Some((found, text)) = compare(point, &setup.counter)? else {
            our_sizes.push(size);
            our_texts.push(None);
            continue;
        };
        our_texts.push(Some(text));
        let before = fixed + tokens(&point.before, &setup.counter)?;
        let our_size = size - found.recorded.tokens + found.ctx.tokens;
        our_sizes.push(our_size);
        own.summary_call(corrected(before), found.recorded.tokens);
        for (sums, figures, size) in
            [(&mut own, &found.recorded, size), (&mut ours, &found.ctx, our_size)]
        {
            sums.cut(corrected(before), corrected(fixed + size));
            sums.unsupported(&figures.ungrounded);
            let facts = found.facts;
            let kept = figures.coverage.map_or(0, |share| (share * facts as f64).round() as u64);
            sums.coverage += Share { of: facts, kept };
        }
        summaries.push(found);
    }
    let model = (setup.model.as_deref(), setup.prices);
    let reported = setup.baseline.recorded.totals(setup.window, points.len(), model);
    for (sums, sizes) in [(&mut own, &own_sizes), (&mut ours, &our_sizes)] {
        let mut size = |entry: &Entry| seen(entry, &setup.counter);
        let walked = walk(transcript, line, &cuts(points, sizes), fixed, &mut size)?;
        let answers = line.iter().filter(|item| item.request);
        for (item, &(sent, prefix)) in answers.zip(&walked) {
            let answer = answer_tokens(&item.entry, setup)?;
            let (sent, prefix) = (corrected(sent), corrected(prefix));
            sums.request(sent, prefix, item.entry.timestamp(), answer);
        }
        sums.errors = estimate_errors(line, &walked, &setup.baseline.recorded);
    }
    own.row.needed_next = kept_next(transcript, line, points, &[], labels)?;
    ours.row.needed_next = kept_next(transcript, line, points, &our_texts, labels)?;
    if let Some(reported) = &reported {
        own.report(reported);
    }
    let mut rows = Vec::new();
    if reported.is_some() || !summaries.is_empty() {
        rows.push(own);
    }
    if !summaries.is_empty() {
        rows.push(ours);
    }
    Ok((rows, summaries))
}

/// Returns what the requests keep of what the agent needs next, with these summaries in place of its
/// own.
fn kept_next(
    transcript: &Transcript,
    line: &[BranchMessage],
    points: &[Point],
    summaries: &[Option<String>],
    labels: &ReplayLabels,
) -> Result<KeptNext> {
    let (mut kept, mut text) = (KeptNext::default(), String::new());
    let mut next = points.iter().enumerate().peekable();
    for item in line {
        let index = transcript.index_of(item.entry.id()).unwrap_or_default();
        while let Some((nth, point)) = next.next_if(|(_, point)| point.index < index) {
            text.clear();
            for entry in &point.after {
                match summaries.get(nth) {
                    Some(Some(summary)) if is_summary(entry) => text.push_str(summary),
                    _ => text::add_message(&*entry.message()?, &mut text),
                }
                text.push('\n');
            }
        }
        if item.request {
            labels.judge_text(item.entry.id(), &text, &mut kept);
        }
        text::add_message(&*item.entry.message()?, &mut text);
    }
    Ok(kept)
}

fn is_summary(entry: &Entry) -> bool {
    entry.outline().is_ok_and(|facts| facts.role == Role::CompactionSummary)
}

/// Judges a recorded summary and ctx's summary, and returns ctx's. Returns `None` if the agent left
/// no text summary.
fn compare(point: &Point, counter: &Counter) -> Result<Option<(RecordedSummary, String)>> {
    let Some(summary) = point.after.iter().find(|entry| is_summary(entry)) else {
        return Ok(None);
    };
    let summary = summary.message()?.plain_text();
    let staying: HashSet<&EntryId> = point.after.iter().map(|entry| entry.id()).collect();
    let (old, messages): (Vec<_>, Vec<_>) =
        point.before.iter().partition(|entry| is_summary(entry));
    let (kept_messages, removed): (Vec<_>, Vec<_>) =
        messages.into_iter().partition(|entry| staying.contains(entry.id()));
    let removed: Vec<CitedMessage> =
        removed.into_iter().filter_map(|entry| cited_message(entry)).collect();
    let mut beside = String::new();
    for entry in &kept_messages {
        text::add_message(&*entry.message()?, &mut beside);
    }
    let mut previous = String::new();
    for entry in old {
        previous.push_str(&entry.message()?.plain_text());
    }
    let mut source = removed.clone();
    source.extend(kept_messages.into_iter().filter_map(|entry| cited_message(entry)));
    let previous = Some(previous).filter(|text| !text.is_empty());
    let previous = previous.as_deref();
    let judge = |summary: &str| figures(summary, &beside, &removed, &source, previous, counter);
    let (recorded, Share { of: facts, .. }) = judge(&summary);
    let ours = our_summary(&removed, &source, previous, counter.text(&summary), counter);
    let (entry_id, messages, ctx) = (point.id.clone(), removed.len(), judge(&ours).0);
    Ok(Some((RecordedSummary { entry_id, messages, facts, recorded, ctx }, ours)))
}

fn figures(
    summary: &str,
    beside: &str,
    removed: &[CitedMessage],
    source: &[CitedMessage],
    previous: Option<&str>,
    counter: &Counter,
) -> (SummaryFigures, Share) {
    let alone = kept(removed, summary);
    let figures = SummaryFigures {
        tokens: counter.text(summary),
        in_summary: alone.share(),
        coverage: kept(removed, &format!("{summary}\n{beside}")).share(),
        ungrounded: ungrounded(summary, source, previous),
    };
    (figures, alone)
}

/// Returns a summary as the summariser reads it.
pub(super) fn previous_summary(text: &str, counter: &Counter) -> PreviousSummary {
    PreviousSummary {
        files: FileLists::in_summary(text),
        entry: None,
        tokens: counter.text(text),
        text: text.to_owned(),
    }
}

/// Returns ctx's extractive summary of the same messages, audited and repaired, at the same size.
fn our_summary(
    removed: &[CitedMessage],
    source: &[CitedMessage],
    previous: Option<&str>,
    budget: Tokens,
    counter: &Counter,
) -> String {
    let facts = FactLedger::of(removed).facts();
    let before = previous.map(|text| previous_summary(text, counter));
    let job = ExtractInput {
        state: None,
        messages: removed,
        facts: &facts,
        previous: before.as_ref(),
        turn_start: None,
        focus: None,
        budget,
        counter,
    };
    let grounds = SourceIndex::of(source, previous, &[]);
    let how = RepairOptions { budget, counter, ungrounded: Ungrounded::Remove };
    repair(&extract(&job), &facts.required, &grounds, &how).text
}
