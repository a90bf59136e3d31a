//! The compactions of a replayed session: those that are stored with it, and those of the replay.

use std::collections::HashMap;
use std::sync::Arc;

use ctx_core::{Counter, Entry, EntryId, Error, ErrorKind, Result};
use ctx_eval::{CompactionReport, Diff};
use ctx_session::Transcript;
use ctx_session::compactions::{ReplayItem, StoredCompaction};

use crate::inspect::rows::receipt_of;
use crate::inspect::shape::CompactionRow;

/// What begins the id of a compaction that the replay made.
const REPLAYED: &str = "replay-";

/// The rows of all of them, in the order in which they took effect; those that no request came after
/// last.
pub(super) fn rows(
    stored: &[StoredCompaction],
    numbers: &[Option<usize>],
    reported: &[CompactionReport],
) -> Vec<CompactionRow> {
    let of_stored = stored.iter().zip(numbers).map(|(stored, number)| {
        let report = reported.iter().find(|report| report.id.as_ref() == Some(&stored.id));
        let details = stored.details.as_ref().map(|details| details.as_str());
        CompactionRow {
            id: stored.id.to_string(),
            number: report.map(|report| report.request + 1).or(*number),
            stored: true,
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

/// The number of the request that came after each stored compaction on the branch.
pub(super) fn numbers(
    transcript: &Transcript,
    stored: &[StoredCompaction],
    (line, ends): (&[ReplayItem], &[usize]),
) -> Vec<Option<usize>> {
    let path = transcript.path(None).unwrap_or_default();
    let places: HashMap<usize, usize> =
        path.into_iter().enumerate().map(|(place, index)| (index, place)).collect();
    let place = |id: &str| places.get(&transcript.index_of(id)?).copied();
    let requests = ends.iter().filter_map(|&end| place(line.get(end)?.item.entry.id()));
    let requests: Vec<usize> = requests.collect();
    let number = |stored: &StoredCompaction| {
        let place = place(&stored.id)?;
        let before = requests.partition_point(|&request| request < place);
        (before < requests.len()).then_some(before + 1)
    };
    stored.iter().map(number).collect()
}

/// The diff of a compaction by its id in the API.
pub(super) fn diff(
    id: &str,
    transcript: &Transcript,
    stored: &[StoredCompaction],
    (line, ends): (&[ReplayItem], &[usize]),
    reported: &[CompactionReport],
    counter: &Counter,
) -> Result<Diff> {
    if let Some(stored) = stored.iter().find(|stored| &*stored.id == id) {
        return Diff::of_stored(transcript, stored, counter);
    }
    let nth = id.strip_prefix(REPLAYED).and_then(|nth| nth.parse::<usize>().ok());
    let nth = nth.and_then(|nth| nth.checked_sub(1));
    let report = nth.and_then(|nth| reported.get(nth)).filter(|report| report.id.is_none());
    let (Some(nth), Some(report)) = (nth, report) else { return Err(no_such(id)) };
    let place = |id: &EntryId| line.iter().position(|item| item.item.entry.id() == id);
    let before = nth.checked_sub(1).and_then(|before| reported.get(before));
    let from = before.and_then(|before| place(&before.first_kept_entry_id)).unwrap_or(0);
    let end = ends.get(report.request).copied().unwrap_or(line.len());
    let to = place(&report.first_kept_entry_id).unwrap_or(end).clamp(from, line.len());
    let covered = entries(line.get(from..to).unwrap_or_default());
    let kept = entries(line.get(to..end.max(to)).unwrap_or_default());
    Ok(Diff::new(id.into(), report.summary.clone(), &covered, &kept, counter))
}

pub(super) fn no_such(id: &str) -> Error {
    Error::new(ErrorKind::NotFound, "the session has no such compaction")
        .with("compaction", id.chars().take(80).collect::<String>())
        .hint("those of the session are listed with it")
}

fn entries(line: &[ReplayItem]) -> Vec<Arc<Entry>> {
    line.iter().map(|item| item.item.entry.clone()).collect()
}
