//! The compactions of a replayed session: stored compactions, and compactions by the replay.

use ctx_core::text::Slice;
use std::sync::Arc;

use ctx_core::{Counter, Entry, EntryId, Result};
use ctx_eval::{CompactionDiff, CompactionReport, ReplayReport};
use ctx_session::{ReplayMessage, StoredCompaction, Transcript};

use crate::rows::{receipt_of, unknown_compaction};
use crate::shape::CompactionRow;

/// The id prefix of compactions made by the replay.
const REPLAYED: &str = "replay-";

/// Returns the rows of all compactions, ordered by the next request. Compactions without a later
/// request come last.
pub(super) fn rows(
    stored: &[StoredCompaction],
    requests: &[Option<usize>],
    report: &ReplayReport,
) -> Vec<CompactionRow> {
    let (reported, recorded) = (&report.compactions, &report.recorded_compactions);
    let of_stored = stored.iter().zip(requests).map(|(stored, request)| {
        let report = reported.iter().find(|report| report.id.as_ref() == Some(&stored.id));
        let details = stored.details.as_ref().map(|details| details.as_str());
        CompactionRow {
            id: stored.id.to_string(),
            number: report.map(|report| report.request).or(*request).map(|request| request + 1),
            stored: true,
            recorded: recorded.iter().any(|own| own.id == stored.id),
            applied: report.is_some(),
            by: stored.by.name().to_owned(),
            at: stored.timestamp,
            undone: stored.undone,
            can_undo: stored.archived.is_none(),
            tokens_before: stored.tokens_before.or(report.map(|report| report.tokens_before)),
            tokens_after: stored.tokens_after.or_else(|| report?.tokens_after),
            messages: Some(stored.covered.messages),
            receipt: details.and_then(|text| receipt_of(&serde_json::from_str(text).ok()?)),
            summarised: None,
        }
    });
    let made = reported.iter().enumerate().filter(|(_, report)| report.id.is_none());
    let of_replay = made.map(|(nth, report)| {
        let receipt = report.details.as_ref().and_then(receipt_of);
        let messages = receipt.as_ref().and_then(|receipt| receipt.get("messages")?.as_u64());
        CompactionRow {
            id: format!("{REPLAYED}{}", nth + 1),
            number: Some(report.request + 1),
            applied: true,
            by: "replay".to_owned(),
            tokens_before: Some(report.tokens_before),
            tokens_after: report.tokens_after,
            messages: messages.and_then(|n| usize::try_from(n).ok()),
            receipt,
            ..CompactionRow::default()
        }
    });
    let mut rows: Vec<CompactionRow> = of_stored.chain(of_replay).collect();
    rows.sort_by_key(|row| row.number.unwrap_or(usize::MAX));
    rows
}

/// Returns the diff of a compaction by its id in the API.
pub(super) fn diff(
    id: &str,
    transcript: &Transcript,
    stored: &[StoredCompaction],
    (line, ends): (&[ReplayMessage], &[usize]),
    reported: &[CompactionReport],
    counter: &Counter,
) -> Result<CompactionDiff> {
    if let Some(stored) = stored.iter().find(|stored| &*stored.id == id) {
        return CompactionDiff::of_stored(transcript, stored, counter);
    }
    let nth = id.strip_prefix(REPLAYED).and_then(|nth| nth.parse::<usize>().ok());
    let nth = nth.and_then(|nth| nth.checked_sub(1));
    let report = nth.and_then(|nth| reported.get(nth)).filter(|report| report.id.is_none());
    let (Some(nth), Some(report)) = (nth, report) else { return Err(unknown_compaction(id)) };
    let place = |id: &EntryId| line.iter().position(|item| item.item.entry.id() == id);
    let before = nth.checked_sub(1).and_then(|before| reported.get(before));
    let from = before.and_then(|before| place(&before.first_kept_entry_id)).unwrap_or(0);
    let end = ends.get(report.request).copied().unwrap_or(line.len());
    let to = place(&report.first_kept_entry_id).unwrap_or(end).clamp(from, line.len());
    let covered = entries(line.slice(from..to));
    let kept = entries(line.slice(to..end.max(to)));
    Ok(CompactionDiff::new(id.into(), report.summary.clone(), &covered, &kept, counter))
}

fn entries(line: &[ReplayMessage]) -> Vec<Arc<Entry>> {
    line.iter().map(|item| item.item.entry.clone()).collect()
}
