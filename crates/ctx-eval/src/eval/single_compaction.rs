//! Compacts a whole session once, to a share of its tokens.

use ctx_core::{
    CompactRequest, CompactionTrigger, ContextView, EntryId, Error, ErrorKind, Result, TokenLedger,
    Tokens, TurnContext,
};
use ctx_session::BranchMessage;

use super::losses::{Losses, cited_messages_in, ungrounded};
use super::presets::{PresetContext, squeeze};
use super::report::SingleCompactionRow;
use super::run::{boundless, own_ledger};
use super::share::Share;
use super::{EngineArm, EvalArm, EvalSetup};

/// A request up to this factor over the share still counts as having reached it, because the
/// counter rounds up for each message.
const TOLERANCE: f64 = 1.01;

/// Compacts the session under one candidate, or reports why it cannot. A candidate that never drops
/// anything has nothing to measure.
pub(super) async fn compact_once(
    line: &[BranchMessage],
    candidate: &EvalArm,
    setup: &EvalSetup,
) -> Option<SingleCompactionRow> {
    if matches!(candidate, EvalArm::FullHistory) {
        return None;
    }
    let mut row = SingleCompactionRow {
        name: candidate.name().to_owned(),
        kind: candidate.kind(),
        sessions: 1,
        ..SingleCompactionRow::default()
    };
    if let Err(error) = measure(line, candidate, setup, &mut row).await {
        row.failed = Some(error.to_string());
    }
    Some(row)
}

async fn measure(
    line: &[BranchMessage],
    candidate: &EvalArm,
    setup: &EvalSetup,
    row: &mut SingleCompactionRow,
) -> Result<()> {
    let mut view = view_of(line, boundless(setup))?;
    let before = view.used();
    let most = before.scale(setup.compact_to);
    row.tokens_before = before.get();
    let mut losses = Losses::new(before);
    for item in line {
        losses.add_message(&item.entry);
    }
    // The view records an edit for each message that was never part of the request; these are
    // discarded here.
    view.finish()?;
    let summary = match candidate {
        EvalArm::FullHistory => None,
        EvalArm::Preset(preset) => {
            let history: Vec<_> = line.iter().map(|item| item.entry.clone()).collect();
            // The window is exactly filled by the session.
            let moment = PresetContext { window: before, new_turn: true, history: &history };
            squeeze(preset, &mut view, &moment, most)?.summary.map(|made| made.text)
        }
        EvalArm::Engine(contender) => compact(line, contender, setup, &mut view, most).await?,
    };
    let finished = view.finish()?;
    losses.note(&finished.edits);
    if let Some(summary) = summary {
        let mut source = losses.messages();
        source.extend(cited_messages_in(&view));
        row.ungrounded = ungrounded(&summary, &source, None).len() as u64;
    }
    let kept = losses.judge(&view)?;
    row.tokens_after = finished.tokens.get();
    (row.facts, row.kept) = (kept.of, kept.kept);
    row.coverage = kept.share();
    row.reached = usize::from(finished.tokens <= most.scale(TOLERANCE));
    Ok(())
}

fn view_of(line: &[BranchMessage], ledger: TokenLedger) -> Result<ContextView> {
    let mut view = ContextView::new(ledger);
    for item in line {
        view.append(item.entry.clone())?;
    }
    Ok(view)
}

/// Requests the compaction from an engine, in a window that the session just fills, and applies it.
async fn compact(
    line: &[BranchMessage],
    contender: &EngineArm,
    setup: &EvalSetup,
    view: &mut ContextView,
    most: Tokens,
) -> Result<Option<String>> {
    // At most a quarter of the window is reserve.
    let window = view.used().scale(4.0 / 3.0).max(contender.ledger.window());
    let ledger = own_ledger(contender, setup, window);
    let last = line.iter().rev().find_map(|item| item.entry.timestamp());
    let turn = TurnContext::at(last.unwrap_or_default());
    let (session_id, whole) = (setup.session.path.clone(), view_of(line, ledger)?);
    let mut request = CompactRequest::new(session_id, whole, turn, CompactionTrigger::Manual);
    request.token_budget = Some(most);
    request.force = true;
    let answer = contender.engine.compact(request).await?;
    let Some(compacted) = answer.result.filter(|_| answer.compacted) else {
        let reason = answer.reason.unwrap_or_else(|| "the engine did not compact".to_owned());
        return Err(Error::new(ErrorKind::Capability, reason));
    };
    let summary = compacted.summary.clone();
    view.compact(compacted, EntryId::from("compaction"), "eval", "compacted once")?;
    view.take_compactions();
    Ok(Some(summary).filter(|text| !text.is_empty()))
}

/// Merges the rows of several sessions per candidate: sums, and coverage weighted by facts.
pub(super) fn join(rows: impl Iterator<Item = SingleCompactionRow>) -> Vec<SingleCompactionRow> {
    let mut joined: Vec<SingleCompactionRow> = Vec::new();
    for row in rows {
        let same = |sum: &&mut SingleCompactionRow| sum.kind == row.kind && sum.name == row.name;
        let Some(sum) = joined.iter_mut().find(same) else {
            joined.push(row);
            continue;
        };
        sum.tokens_before += row.tokens_before;
        sum.tokens_after += row.tokens_after;
        sum.facts += row.facts;
        sum.ungrounded += row.ungrounded;
        sum.sessions += row.sessions;
        sum.reached += row.reached;
        sum.failed = sum.failed.take().or(row.failed);
        sum.kept += row.kept;
        sum.coverage = Share { of: sum.facts, kept: sum.kept }.share();
    }
    joined
}
