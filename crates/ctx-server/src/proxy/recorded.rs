//! What of a request is recorded, without its secrets.

use ctx_core::{Compacted, EntryId, Message, Role};
use ctx_memory::Redactor;

use crate::trace::{BEGINS_CHARS, CompactionRecord};

/// So many characters of a message are looked at.
pub(super) const LOOKED_AT: usize = 512;

/// What begins a message: its text, or what it calls. Redacted before it is cut: of half a key
/// nobody can tell that it is one.
pub(super) fn beginning(message: &Message) -> String {
    let calls = || {
        let calls = message.tool_calls().map(|call| format!("{}(...)", call.name));
        calls.collect::<Vec<_>>().join(", ")
    };
    let result = || {
        let result = message.tool_results().next()?;
        Some(Message::new(Role::ToolResult, result.content.to_vec()).plain_text())
    };
    let mut text = message.plain_text();
    if text.trim().is_empty() {
        text = calls();
    }
    if text.is_empty() {
        text = result().unwrap_or_default();
    }
    let head: String = text.trim_start().chars().take(LOOKED_AT).collect();
    let redacted = Redactor::builtin().redact(&head).text;
    redacted.chars().take(BEGINS_CHARS).collect::<String>().trim_end().to_owned()
}

/// A compaction as it is recorded: a summary may repeat a secret.
pub(super) fn recorded(
    number: u64,
    entry: Option<EntryId>,
    compacted: &Compacted,
) -> CompactionRecord {
    let mut record = CompactionRecord::of(number, entry, compacted);
    record.summary = Redactor::builtin().redact(&record.summary).text.into_owned();
    let details = record.details.take().map(|details| details.to_string());
    let details = details.map(|text| Redactor::builtin().redact(&text).text.into_owned());
    record.details = details.and_then(|text| serde_json::from_str(&text).ok());
    record
}
