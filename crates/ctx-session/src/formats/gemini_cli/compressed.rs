//! History that Gemini CLI replaced by a snapshot. Its chat file has no record of that: the client
//! writes a list of messages that begins with the snapshot.

use ctx_core::Result;
use ctx_dialect::gemini;
use ctx_dialect::json::{Object, ObjectWriter};
use indexmap::IndexMap;
use serde_json::value::RawValue;

use super::PiLines;

/// The messages of a chat with their ids, in the order of the file.
pub(super) type Messages<'a> = IndexMap<String, &'a RawValue>;

/// Replaced history.
pub(super) struct Compressed<'a> {
    pub(super) messages: Messages<'a>,
    /// The id that the snapshot had at first: it gets another one when the list is written again.
    id: String,
    snapshot: &'a RawValue,
}

impl Compressed<'_> {
    /// Writes the snapshot as a compaction that keeps nothing: the messages after it follow.
    pub(super) fn write_summary(&self, lines: &mut PiLines<Vec<u8>>) -> Result<()> {
        let id = format!("{}.summary", self.id);
        let snapshot = Object::of(self.snapshot).unwrap_or_default();
        let time = snapshot.get("timestamp").map_or("null", RawValue::get);
        let summary = gemini::parse_raw(self.snapshot).plain_text();
        let fields = ObjectWriter::new().text("summary", &summary).text("firstKeptEntryId", &id);
        lines.entry("compaction", &id, time, &fields)
    }
}

/// Replaces the messages by a list that Gemini CLI wrote. Returns what the list compressed.
pub(super) fn replace<'a>(
    messages: &mut Messages<'a>,
    list: Messages<'a>,
) -> Option<Compressed<'a>> {
    let mut earlier = std::mem::replace(messages, list);
    let at = snapshot_at(messages)?;
    let (id, &snapshot) = messages.get_index(at)?;
    // The list is also written after tools, and has then as many messages as before.
    let text = |raw: &RawValue| gemini::parse_raw(raw).plain_text();
    let before = snapshot_at(&earlier).and_then(|at| earlier.get_index(at));
    let is_same = before.is_some_and(|(_, before)| text(before) == text(snapshot));
    if is_same && sent(messages) >= sent(&earlier) {
        return None;
    }
    let kept = messages.len() - at - 2;
    earlier.truncate(earlier.len().saturating_sub(kept));
    // What describes the workspace stays.
    let from = snapshot_at(&earlier).map_or(at, |at| at + 2);
    let covered = earlier.split_off(from.min(earlier.len()));
    Some(Compressed { messages: covered, id: id.clone(), snapshot })
}

/// Removes the snapshot and its answer.
pub(super) fn remove_snapshot(messages: &mut Messages<'_>) {
    if let Some(at) = snapshot_at(messages) {
        messages.drain(at..at + 2);
    }
}

/// Returns the place of the snapshot: it is the first message, or follows the description of the
/// workspace, and has a fixed answer.
fn snapshot_at(messages: &Messages<'_>) -> Option<usize> {
    let has = |at: usize, kind: &str, text: &str| {
        messages.get_index(at).is_some_and(|(_, raw)| {
            is(raw, kind) && gemini::parse_raw(raw).plain_text().contains(text)
        })
    };
    (0..2).find(|&at| has(at, "user", "<state_snapshot>") && has(at + 1, "gemini", "Got it."))
}

/// Returns the number of messages that are sent to the model.
fn sent(messages: &Messages<'_>) -> usize {
    messages.values().filter(|raw| is(raw, "user") || is(raw, "gemini")).count()
}

fn is(message: &RawValue, kind: &str) -> bool {
    Object::of(message).and_then(|message| message.owned("type")).is_some_and(|found| found == kind)
}
