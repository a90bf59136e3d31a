//! The parts of a history that are kept or dropped as a whole.

use ctx_core::{Message, Role};
use serde_json::value::RawValue;

use super::compaction::COMPACTIONS;
use super::peek::peek;
use super::result_ids::{ResultIds, ResultMatcher};
use super::{Protocol, call_ids};
use crate::json::elements;
use crate::{anthropic, gemini, openai_responses};

/// A part of the history that is kept or dropped as a whole: one message, or all adjacent Responses
/// items of one answer (reasoning, text, calls), because reasoning is refused without the item that
/// follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit<'a> {
    /// Its elements as in the body, including the text between them.
    pub raw: &'a str,
    pub(super) protocol: Protocol,
    pub(super) ids: ResultIds,
}

impl Unit<'_> {
    /// Parses the message.
    pub fn read(&self) -> Message {
        if self.protocol == Protocol::Responses {
            return answer(self.raw);
        }
        // Units of a parsed body are valid JSON; anything else would become an unknown message.
        let Ok(raw) = serde_json::from_str::<&RawValue>(self.raw) else {
            return Message::new(Role::Other("unknown".into()), Vec::new());
        };
        match self.protocol {
            Protocol::Messages => anthropic::parse_raw(raw),
            Protocol::Gemini => match &self.ids {
                ResultIds::Replaced(ids) => gemini::parse_under(raw, ids),
                ResultIds::Original | ResultIds::Nth(_) => gemini::parse_raw(raw),
            },
            Protocol::Chat | Protocol::Responses => match self.ids {
                ResultIds::Nth(nth) => call_ids::parse(raw, nth),
                ResultIds::Original | ResultIds::Replaced(_) => call_ids::parse(raw, 0),
            },
        }
    }
}

/// Parses the items of one answer as one message.
fn answer(raw: &str) -> Message {
    with_items(raw, |items| {
        let mut items = items.iter().map(|item| item_of(item));
        let first = items.next().unwrap_or_else(|| Message::new(Role::User, Vec::new()));
        items.fold(first, |mut all, next| {
            all.blocks.extend(next.blocks);
            // Reasoning that only refers to stored content has no role.
            if next.role == Role::Assistant {
                all.role = Role::Assistant;
            }
            all
        })
    })
}

/// Parses an item. The provider's compaction items represent everything before them, so they must
/// not be dropped first.
fn item_of(raw: &RawValue) -> Message {
    let mut message = openai_responses::parse_raw(raw);
    if let Role::Other(kind) = &message.role
        && COMPACTIONS.contains(&&**kind)
    {
        message.role = Role::CompactionSummary;
    }
    message
}

/// Calls `read` with the items of a unit.
pub(super) fn with_items<T>(raw: &str, read: impl FnOnce(&[&RawValue]) -> T) -> T {
    if let Ok(one) = serde_json::from_str::<&RawValue>(raw) {
        return read(&[one]);
    }
    let list = format!("[{raw}]");
    let items = serde_json::from_str::<&RawValue>(&list).ok().and_then(elements);
    read(&items.unwrap_or_default())
}

/// Cuts a history into units, and returns whether it is complete: an item may refer to an item that
/// the provider stores. The elements are slices of `body`.
pub(super) fn cut<'a>(
    protocol: Protocol,
    history: &[&'a RawValue],
    body: &'a str,
) -> (Vec<Unit<'a>>, bool) {
    if protocol != Protocol::Responses {
        let mut matcher = ResultMatcher::of(protocol);
        let one = |raw: &&'a RawValue| Unit { raw: raw.get(), protocol, ids: matcher.next(raw) };
        return (history.iter().map(one).collect(), true);
    }
    let one = |raw: &'a str| Unit { raw, protocol, ids: ResultIds::Original };
    let mut is_whole = true;
    let mut units: Vec<Unit<'a>> = Vec::with_capacity(history.len());
    let mut begun: Option<usize> = None;
    for raw in history {
        let (from, to) = span(body, raw);
        let [kind, role] = peek(raw.get(), ["type", "role"]);
        let is_answer = is_of_answer(kind.as_deref(), role.as_deref(), raw.get());
        is_whole = is_whole && kind.as_deref() != Some("item_reference");
        match (begun.filter(|_| is_answer), units.last_mut()) {
            (Some(begin), Some(last)) => last.raw = body.get(begin..to).unwrap_or(last.raw),
            _ => {
                units.push(one(raw.get()));
                begun = is_answer.then_some(from);
            }
        }
    }
    (units, is_whole)
}

/// Whether an item is part of an answer.
fn is_of_answer(kind: Option<&str>, role: Option<&str>, item: &str) -> bool {
    match kind {
        None | Some("message") => role == Some("assistant"),
        Some("reasoning" | "item_reference" | "mcp_list_tools" | "mcp_approval_request") => true,
        // Output of tools run by the provider is in the same answer.
        Some(kind) if kind.ends_with("_output") => peek(item, ["call_id"]) == [None],
        Some(kind) => kind.ends_with("_call"),
    }
}

/// Returns the position of a value in the text it was parsed from.
pub(super) fn span(text: &str, raw: &RawValue) -> (usize, usize) {
    let from = (raw.get().as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    (from, from.wrapping_add(raw.get().len()))
}
