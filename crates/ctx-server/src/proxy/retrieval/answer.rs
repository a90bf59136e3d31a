//! Answers the calls of the model.

use ctx_core::text::clip;
use ctx_core::{Counter, Tokens, ToolCall};
use ctx_hosted::{Expanded, ReadableMessages};
use serde_json::Value;

use super::super::provider_compaction::CompactedOriginals;
use super::{EXPAND, Retrieval};

const NO_ROOM: &str = "[ctx: the window has no room for it in this answer]";

impl Retrieval {
    /// Returns the result of a call, which takes its size from the room left.
    pub(super) async fn answer(&mut self, call: &ToolCall) -> String {
        let state = self.conversation.state.lock().await;
        let Some(session) = &state.session else { return NO_ROOM.to_owned() };
        // A model may write a number as a text, or a text as a number.
        let arguments: Value = serde_json::from_str(call.arguments.as_str()).unwrap_or_default();
        let argument = |name: &str| match &arguments[name] {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            _ => String::new(),
        };
        let compacted = self.originals.iter().flat_map(CompactedOriginals::messages);
        let all = ReadableMessages::of(session, compacted);
        let text = match call.name == EXPAND {
            true => expanded(&all, &argument("id")),
            false => match all.recall(&argument("query")) {
                found if found.is_empty() => "[ctx: no earlier message has these words]".to_owned(),
                found => found.join("\n\n"),
            },
        };
        let counter = session.ledger.counter();
        let fitted = fitted(&text, argument("from").parse().unwrap_or(0), self.room, counter);
        self.room -= counter.text(&fitted);
        fitted
    }
}

/// Returns the messages that a call names.
fn expanded(all: &ReadableMessages, ids: &str) -> String {
    let texts: Vec<_> = all
        .expand(ids)
        .into_iter()
        .map(|Expanded { id, text }| {
            text.unwrap_or_else(|| {
                format!("[ctx: this conversation has no message {:?}]", clip(&id, 40))
            })
        })
        .collect();
    match texts.is_empty() {
        true => format!("[ctx: {EXPAND} needs the `id` of a message]"),
        false => texts.join("\n\n"),
    }
}

/// Returns a text from a character on, cut to the room left.
fn fitted(text: &str, from: usize, room: Tokens, counter: &Counter) -> String {
    let rest: String = text.chars().skip(from).collect();
    let tokens = counter.text(&rest);
    if tokens <= room {
        return rest;
    }
    let share = f64::from(room.0) / f64::from(tokens.0.max(1)) * 0.9;
    let count = rest.chars().count();
    let kept = (count as f64 * share) as usize;
    if kept == 0 {
        return NO_ROOM.to_owned();
    }
    let part: String = rest.chars().take(kept).collect();
    let next = from + kept;
    format!("{part}\n[ctx: {} more characters, from {next} on]", count - kept)
}
