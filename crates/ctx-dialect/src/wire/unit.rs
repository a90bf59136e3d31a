//! What of a history goes or stays together.

use ctx_core::{Message, Role};
use serde_json::value::RawValue;

use super::Protocol;
use super::peek::peek;
use crate::json::elements;
use crate::{anthropic, gemini, openai_chat, openai_responses};

/// What goes or stays together: one message; of the Responses API all neighbouring items of one
/// answer (reasoning, text, calls), because the provider refuses reasoning without what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit<'a> {
    /// Its elements as they stand in the body, with what stands between them.
    pub raw: &'a str,
    pub(super) protocol: Protocol,
}

impl Unit<'_> {
    /// What it says.
    #[must_use]
    pub fn read(&self) -> Message {
        if self.protocol == Protocol::Responses {
            return answer(self.raw);
        }
        // What a body was cut into is JSON; anything else would be carried as an unknown message.
        let Ok(raw) = serde_json::from_str::<&RawValue>(self.raw) else {
            return Message::new(Role::Other("unknown".into()), Vec::new());
        };
        match self.protocol {
            Protocol::Messages => anthropic::parse_raw(raw),
            Protocol::Gemini => gemini::parse_raw(raw),
            Protocol::Chat | Protocol::Responses => openai_chat::parse_raw(raw),
        }
    }
}

/// The items of one answer as one message.
fn answer(raw: &str) -> Message {
    with_items(raw, |items| {
        let mut items = items.iter().map(|item| openai_responses::parse_raw(item));
        let first = items.next().unwrap_or_else(|| Message::new(Role::User, Vec::new()));
        items.fold(first, |mut all, next| {
            all.blocks.extend(next.blocks);
            // Reasoning that only refers to what is stored elsewhere does not say who speaks.
            if next.role == Role::Assistant {
                all.role = Role::Assistant;
            }
            all
        })
    })
}

/// The items that a unit of several holds.
pub(super) fn with_items<T>(raw: &str, read: impl FnOnce(&[&RawValue]) -> T) -> T {
    if let Ok(one) = serde_json::from_str::<&RawValue>(raw) {
        return read(&[one]);
    }
    let list = format!("[{raw}]");
    let items = serde_json::from_str::<&RawValue>(&list).ok().and_then(elements);
    read(&items.unwrap_or_default())
}

/// Cuts a history into units, and says whether all of it is here: an item may stand for one that
/// the provider stored. `body` is what its elements are slices of.
pub(super) fn cut<'a>(
    protocol: Protocol,
    history: &[&'a RawValue],
    body: &'a str,
) -> (Vec<Unit<'a>>, bool) {
    let one = |raw: &'a str| Unit { raw, protocol };
    if protocol != Protocol::Responses {
        return (history.iter().map(|raw| one(raw.get())).collect(), true);
    }
    let mut is_whole = true;
    let mut units: Vec<Unit<'a>> = Vec::with_capacity(history.len());
    let mut begun: Option<usize> = None;
    for raw in history {
        let (from, to) = span(body, raw);
        let [kind, role] = peek(raw.get(), ["type", "role"]);
        let is_answer = is_of_answer(kind.as_deref(), role.as_deref());
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

/// Whether an item is one of those that make up an answer.
fn is_of_answer(kind: Option<&str>, role: Option<&str>) -> bool {
    match kind {
        None | Some("message") => role == Some("assistant"),
        Some("reasoning" | "item_reference" | "mcp_list_tools") => true,
        Some(kind) => kind.ends_with("_call"),
    }
}

/// Where a value stands in the text it was read from.
pub(super) fn span(text: &str, raw: &RawValue) -> (usize, usize) {
    let from = (raw.get().as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    (from, from.wrapping_add(raw.get().len()))
}
