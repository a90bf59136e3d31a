//! A whole session compacted once, to a share of its tokens.

use std::sync::Arc;

use ctx_core::{
    CompactRequest, CompactionTrigger, ContextView, EntryId, Error, ErrorKind, Result,
    SequentialIds, TokenLedger, Tokens, TurnContext,
};
use ctx_session::LineItem;

use super::losses::{Kept, Losses, said_in, ungrounded};
use super::presets::{Moment, squeeze};
use super::report::OnceRow;
use super::run::{boundless, own_ledger};
use super::{Candidate, Contender, EvalSetup};

/// A request may be over the share by this much of it and still have reached it: the counter rounds
/// up for each message.
const TOLERANCE: f64 = 1.01;

/// Compacts the session under one candidate, or says why that cannot be done. There is nothing to
/// measure where nothing is ever left out.
pub(super) async fn once(
    line: &[LineItem],
    candidate: &Candidate,
    setup: &EvalSetup,
) -> Option<OnceRow> {
    if matches!(candidate, Candidate::Nothing) {
        return None;
    }
    let mut row = OnceRow {
        name: candidate.name().to_owned(),
        kind: candidate.kind(),
        tokens_before: 0,
        tokens_after: 0,
        facts: 0,
        coverage: None,
        ungrounded: 0,
        sessions: 1,
        reached: 0,
        failed: None,
    };
    if let Err(error) = measure(line, candidate, setup, &mut row).await {
        row.failed = Some(error.to_string());
    }
    Some(row)
}

async fn measure(
    line: &[LineItem],
    candidate: &Candidate,
    setup: &EvalSetup,
    row: &mut OnceRow,
) -> Result<()> {
    let mut view = view_of(line, boundless(setup))?;
    let before = view.used();
    let most = before.scale(setup.compact_to);
    row.tokens_before = before.get();
    let mut losses = Losses::new(before);
    for item in line {
        losses.know(&item.entry);
    }
    // A view has an edit for each message that never was in the request.
    view.finish()?;
    let summary = match candidate {
        Candidate::Nothing => None,
        Candidate::Preset(preset) => {
            let history: Vec<_> = line.iter().map(|item| item.entry.clone()).collect();
            // The window is what the session would just fill.
            let moment = Moment { window: before, new_turn: true, history: &history };
            squeeze(preset, &mut view, &moment, most)?.summary.map(|made| made.text)
        }
        Candidate::Engine(contender) => compact(line, contender, setup, &mut view, most).await?,
    };
    let finished = view.finish()?;
    losses.note(&finished.edits);
    if let Some(summary) = summary {
        let mut source = losses.said();
        source.extend(said_in(&view));
        row.ungrounded = ungrounded(&summary, &source, None).len() as u64;
    }
    let kept = losses.judge(&view)?;
    row.tokens_after = finished.tokens.get();
    row.facts = kept.facts;
    row.coverage = kept.share();
    row.reached = usize::from(finished.tokens <= most.scale(TOLERANCE));
    Ok(())
}

fn view_of(line: &[LineItem], ledger: TokenLedger) -> Result<ContextView> {
    let mut view = ContextView::new(ledger);
    for item in line {
        view.append(item.entry.clone())?;
    }
    Ok(view)
}

/// Asks an engine for the compaction, in a window that the session would just fill, and carries out
/// what it answers.
async fn compact(
    line: &[LineItem],
    contender: &Contender,
    setup: &EvalSetup,
    view: &mut ContextView,
    most: Tokens,
) -> Result<Option<String>> {
    // A quarter of the window at most is reserve.
    let window = view.used().scale(4.0 / 3.0).max(contender.ledger.window());
    let ledger = own_ledger(contender, setup, window);
    let turn = TurnContext {
        now: line.iter().rev().find_map(|item| item.entry.timestamp()).unwrap_or_default(),
        last_request: None,
        ids: Arc::new(SequentialIds::default()),
        profile: contender.profile,
    };
    let mut request = CompactRequest::new(
        setup.session.path.clone(),
        view_of(line, ledger)?,
        turn,
        CompactionTrigger::Manual,
    );
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

/// The rows of several sessions as one each: sums, and coverage weighted by facts.
pub(super) fn join(rows: impl Iterator<Item = OnceRow>) -> Vec<OnceRow> {
    let mut joined: Vec<(OnceRow, Kept)> = Vec::new();
    for row in rows {
        let kept = row.coverage.map_or(0, |share| (share * row.facts as f64).round() as u64);
        let kept = Kept { facts: row.facts, kept };
        let same = |(sum, _): &&mut (OnceRow, Kept)| sum.kind == row.kind && sum.name == row.name;
        let Some((sum, all)) = joined.iter_mut().find(same) else {
            joined.push((row, kept));
            continue;
        };
        sum.tokens_before += row.tokens_before;
        sum.tokens_after += row.tokens_after;
        sum.facts += row.facts;
        sum.ungrounded += row.ungrounded;
        sum.sessions += row.sessions;
        sum.reached += row.reached;
        sum.failed = sum.failed.take().or(row.failed);
        *all += kept;
        sum.coverage = all.share();
    }
    joined.into_iter().map(|(row, _)| row).collect()
}
