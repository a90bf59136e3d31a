//! Anthropic's `context_management`: edits of a history that the provider makes before the model
//! reads it, for providers that do not know them.

use std::collections::HashSet;

use ctx_core::{Block, CallId, Counter, Message, RawJson, Tokens};
use serde_json::value::RawValue;

use super::context_compaction::{size, with_summary};
use super::rewrite::patched;
use super::{OutgoingUnit, Protocol, Request};
use crate::json::{Object, ObjectWriter};

const FIELD: &str = "context_management";

/// Replaces a cleared result.
const CLEARED: &str = "[Old tool result content cleared]";

/// Anthropic's defaults: when tool results are cleared, and how many stay.
const TRIGGER_TOKENS: u64 = 100_000;
const KEPT_TOOL_USES: u64 = 3;
/// Anthropic's default: in how many of the newest turns thinking stays.
const KEPT_THINKING: u64 = 1;

/// A request whose edits were made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditedRequest {
    /// The body without `context_management`.
    pub body: String,
    /// The elements of `applied_edits` for the answer; `None` if the request asks for no edits.
    pub applied: Option<Vec<String>>,
}

/// Whether a request asks for edits of its history, or has a compaction.
#[must_use]
pub fn has_context_edits(protocol: Protocol, body: &str) -> bool {
    let has = |word: &str| memchr::memmem::find(body.as_bytes(), word.as_bytes()).is_some();
    protocol == Protocol::Messages
        && (has(FIELD) && Object::parse_prefix(body).0.has(FIELD) || has("\"compaction\""))
}

/// Returns the edits that a request asks for.
pub(super) fn edits<'a>(request: &Object<'a>) -> impl Iterator<Item = Object<'a>> {
    let edits = request.object(FIELD).and_then(|field| field.array("edits"));
    edits.unwrap_or_default().into_iter().filter_map(Object::of)
}

/// Makes the edits of `context_management`: `clear_tool_uses_20250919` and
/// `clear_thinking_20251015`. A message of the user takes the place of a compaction and of
/// everything before it. Other edits are left out; [`context_compaction`](super::context_compaction)
/// returns that of `compact_20260112`.
///
/// # Errors
///
/// See [`Request::with_history`].
pub fn with_context_edits(request: &Request<'_>) -> ctx_core::Result<EditedRequest> {
    let mut applied = Vec::new();
    let before: Vec<_> = request.units.iter().map(|unit| unit.read()).collect();
    let mut messages: Vec<Message> = before.iter().map(|message| (**message).clone()).collect();
    for edit in edits(&request.fields) {
        applied.extend(match edit.text("type").as_deref() {
            Some("clear_tool_uses_20250919") => clear_tool_uses(&mut messages, &edit, request),
            Some("clear_thinking_20251015") => clear_thinking(&mut messages, &edit),
            _ => None,
        });
    }
    let units = messages.iter().zip(&before).enumerate().map(|(at, (message, before))| {
        match *message == **before {
            true => OutgoingUnit::Unchanged(at),
            false => OutgoingUnit::Message { message, of: Some(at) },
        }
    });
    let body = request.with_history(&units.collect::<Vec<_>>(), None)?;
    let body = patched(&Object::parse_prefix(&body).0, &[(FIELD, None)]);
    let body = with_summary(&body).unwrap_or(body);
    Ok(EditedRequest { body, applied: request.fields.has(FIELD).then_some(applied) })
}

/// Returns the description of an edit for the answer.
fn applied(edit: &Object<'_>, count: (&str, usize), cleared: Tokens) -> String {
    ObjectWriter::new()
        .text("type", &edit.text("type").unwrap_or_default())
        .plain(count.0, count.1)
        .plain("cleared_input_tokens", cleared)
        .end()
}

/// Clears the results of all but the newest calls if the request is over the trigger.
fn clear_tool_uses(
    messages: &mut [Message],
    edit: &Object<'_>,
    request: &Request<'_>,
) -> Option<String> {
    let value = |key: &str| edit.object(key).and_then(|object| object.count("value"));
    let excluded = edit.array("exclude_tools").unwrap_or_default();
    let excluded: HashSet<_> = excluded.into_iter().filter_map(crate::json::string).collect();
    let calls = messages.iter().flat_map(Message::tool_calls);
    let calls = calls.filter(|call| !excluded.contains(&*call.name));
    let all: Vec<CallId> = calls.map(|call| call.id.clone()).collect();
    let by_uses = edit.object("trigger").and_then(|trigger| trigger.owned("type"));
    let size = match by_uses.as_deref() {
        Some("tool_uses") => all.len() as u64,
        _ => size(request).get(),
    };
    let kept = value("keep").unwrap_or(KEPT_TOOL_USES);
    let count = all.len().saturating_sub(usize::try_from(kept).unwrap_or(usize::MAX));
    if size <= value("trigger").unwrap_or(TRIGGER_TOKENS) || count == 0 {
        return None;
    }
    let old: HashSet<&CallId> = all.iter().take(count).collect();
    let results = messages.iter().flat_map(Message::tool_results);
    let results = results.filter(|result| old.contains(&result.call_id));
    let cleared: Tokens = results.map(|result| Counter::default().text(&result.plain_text())).sum();
    if cleared.get() < value("clear_at_least").unwrap_or_default() {
        return None;
    }
    let with_inputs = edit.is_true("clear_tool_inputs");
    for message in messages {
        let cleared = message.with_results(|_, result| {
            old.contains(&result.call_id).then(|| vec![Block::text(CLEARED)])
        });
        *message = cleared.unwrap_or_else(|| message.clone());
        for block in message.blocks.iter_mut().filter(|_| with_inputs) {
            if let Block::ToolCall(call) = block
                && old.contains(&call.id)
            {
                call.arguments = RawJson::from_text("{}".to_owned());
            }
        }
    }
    Some(applied(edit, ("cleared_tool_uses", count), cleared))
}

/// Removes thinking from all but the newest turns that have some.
fn clear_thinking(messages: &mut [Message], edit: &Object<'_>) -> Option<String> {
    let keeps_all = |raw: &RawValue| crate::json::string(raw).is_some_and(|text| text == "all");
    if edit.get("keep").is_some_and(keeps_all) {
        return None;
    }
    let kept = edit.object("keep").and_then(|keep| keep.count("value")).unwrap_or(KEPT_THINKING);
    let is_thinking = |block: &Block| matches!(block, Block::Thinking { .. });
    let turns = messages.iter_mut().rev().filter(|message| message.blocks.iter().any(is_thinking));
    let (mut count, mut cleared) = (0, Tokens::ZERO);
    for message in turns.skip(usize::try_from(kept).unwrap_or(usize::MAX)) {
        let (thinking, others): (Vec<_>, Vec<_>) =
            message.blocks.iter().cloned().partition(is_thinking);
        // A message cannot be empty.
        if !others.is_empty() {
            message.blocks = others;
            count += 1;
            let texts = thinking.iter().filter_map(|block| match block {
                Block::Thinking { thinking, .. } => Some(Counter::default().text(thinking)),
                _ => None,
            });
            cleared += texts.sum();
        }
    }
    (count > 0).then(|| applied(edit, ("cleared_thinking_turns", count), cleared))
}
