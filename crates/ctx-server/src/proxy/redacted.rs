//! The recorded beginning of a message, without secrets.

use ctx_core::{Message, Role};
use ctx_redact::Redactor;

use ctx_trace::PREVIEW_CHARS;

/// Maximum characters of a message to examine.
const PREVIEW_SOURCE_CHARS: usize = 512;

/// Returns the beginning of a message: its text, its calls or its results. It is redacted before it
/// is cut, because half of a key is not recognised.
pub(super) fn preview(message: &Message) -> String {
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
    let head: String = text.trim_start().chars().take(PREVIEW_SOURCE_CHARS).collect();
    let redacted = Redactor::builtin().redact(&head).text;
    redacted.chars().take(PREVIEW_CHARS).collect::<String>().trim_end().to_owned()
}
