//! Anthropic's `context_management`: edits of a history that the provider makes before the model
//! reads it, for providers that do not know them.

use std::collections::HashSet;

use ctx_core::{Block, CallId, Counter, Message, RawJson, Tokens};
use serde_json::value::RawValue;

use super::rewrite::patched;
use super::{OutgoingUnit, Protocol, Request};
use crate::json::Object;

const FIELD: &str = "context_management";

/// Replaces a cleared result.
const CLEARED: &str = "[Old tool result content cleared]";

/// Anthropic's defaults: when tool results are cleared, and how many stay.
const TRIGGER_TOKENS: u64 = 100_000;
const KEPT_TOOL_USES: u64 = 3;
/// Anthropic's default: in how many of the newest turns thinking stays.
const KEPT_THINKING: u64 = 1;

/// Whether a request asks for edits of its history.
#[must_use]
pub fn has_context_edits(protocol: Protocol, body: &str) -> bool {
    protocol == Protocol::Messages
        && memchr::memmem::find(body.as_bytes(), FIELD.as_bytes()).is_some()
        && Object::parse_prefix(body).0.has(FIELD)
}

/// Returns the body of a request without `context_management`, with its edits made:
/// `clear_tool_uses_20250919` and `clear_thinking_20251015`. Other edits are left out.
///
/// # Errors
///
/// See [`Request::with_history`].
pub fn with_context_edits(request: &Request<'_>) -> ctx_core::Result<String> {
    let (object, _) = Object::parse_prefix(request.body());
    let edits = object.object(FIELD).and_then(|field| field.array("edits")).unwrap_or_default();
    let before: Vec<Message> = request.units.iter().map(|unit| unit.read()).collect();
    let mut messages = before.clone();
    for edit in edits.into_iter().filter_map(Object::of) {
        match edit.text("type").as_deref() {
            Some("clear_tool_uses_20250919") => clear_tool_uses(&mut messages, &edit, request),
            Some("clear_thinking_20251015") => clear_thinking(&mut messages, &edit),
            _ => {}
        }
    }
    let units =
        messages.iter().zip(&before).enumerate().map(|(at, (message, before))| {
            match message == before {
                true => OutgoingUnit::Unchanged(at),
                false => OutgoingUnit::Message { message, of: Some(at) },
            }
        });
    let body = request.with_history(&units.collect::<Vec<_>>(), None)?;
    Ok(patched(&Object::parse_prefix(&body).0, &[(FIELD, None)]))
}

/// Clears the results of all but the newest calls if the request is over the trigger.
fn clear_tool_uses(messages: &mut [Message], edit: &Object<'_>, request: &Request<'_>) {
    let value = |key: &str| edit.object(key).and_then(|object| object.count("value"));
    let excluded = edit.array("exclude_tools").unwrap_or_default();
    let excluded: HashSet<_> = excluded.into_iter().filter_map(crate::json::string).collect();
    let calls = messages.iter().flat_map(Message::tool_calls);
    let calls = calls.filter(|call| !excluded.contains(&*call.name));
    let all: Vec<CallId> = calls.map(|call| call.id.clone()).collect();
    let by_uses = edit.object("trigger").and_then(|trigger| trigger.owned("type"));
    let size = match by_uses.as_deref() {
        Some("tool_uses") => all.len() as u64,
        _ => Counter::default().text(request.body()).get(),
    };
    let kept = value("keep").unwrap_or(KEPT_TOOL_USES);
    let count = all.len().saturating_sub(usize::try_from(kept).unwrap_or(usize::MAX));
    if size <= value("trigger").unwrap_or(TRIGGER_TOKENS) || count == 0 {
        return;
    }
    let old: HashSet<&CallId> = all.iter().take(count).collect();
    let results = messages.iter().flat_map(Message::tool_results);
    let results = results.filter(|result| old.contains(&result.call_id));
    let cleared: Tokens = results.map(|result| Counter::default().text(&result.plain_text())).sum();
    if cleared.get() < value("clear_at_least").unwrap_or_default() {
        return;
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
}

/// Removes thinking from all but the newest turns that have some.
fn clear_thinking(messages: &mut [Message], edit: &Object<'_>) {
    let keeps_all = |raw: &RawValue| crate::json::string(raw).is_some_and(|text| text == "all");
    if edit.get("keep").is_some_and(keeps_all) {
        return;
    }
    let kept = edit.object("keep").and_then(|keep| keep.count("value")).unwrap_or(KEPT_THINKING);
    let is_thinking = |block: &Block| matches!(block, Block::Thinking { .. });
    let turns = messages.iter_mut().rev().filter(|message| message.blocks.iter().any(is_thinking));
    for message in turns.skip(usize::try_from(kept).unwrap_or(usize::MAX)) {
        let others = message.blocks.iter().filter(|block| !is_thinking(block));
        let others: Vec<_> = others.cloned().collect();
        // A message cannot be empty.
        if !others.is_empty() {
            message.blocks = others;
        }
    }
}
