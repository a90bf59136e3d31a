//! What of a history goes or stays together.

use ctx_core::{Message, Role};
use serde_json::value::RawValue;

use super::pair::{Ids, Pairs};
use super::peek::peek;
use super::{Protocol, apart};
use crate::json::elements;
use crate::{anthropic, gemini, openai_responses};

/// What OpenAI calls the items in which it has compacted a history.
const COMPACTIONS: [&str; 3] = ["compaction", "compaction_summary", "context_compaction"];

/// What goes or stays together: one message; of the Responses API all neighbouring items of one
/// answer (reasoning, text, calls), because the provider refuses reasoning without what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit<'a> {
    /// Its elements as they stand in the body, with what stands between them.
    pub raw: &'a str,
    pub(super) protocol: Protocol,
    pub(super) ids: Ids,
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
            Protocol::Gemini => match &self.ids {
                Ids::These(ids) => gemini::parse_under(raw, ids),
                Ids::Told | Ids::Nth(_) => gemini::parse_raw(raw),
            },
            Protocol::Chat | Protocol::Responses => match self.ids {
                Ids::Nth(nth) => apart::parse(raw, nth),
                Ids::Told | Ids::These(_) => apart::parse(raw, 0),
            },
        }
    }
}

/// The items of one answer as one message.
fn answer(raw: &str) -> Message {
    with_items(raw, |items| {
        let mut items = items.iter().map(|item| item_of(item));
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

/// An item. What the provider made of all that was before it stands for that: it must not be the
/// first to go.
fn item_of(raw: &RawValue) -> Message {
    let mut message = openai_responses::parse_raw(raw);
    if let Role::Other(kind) = &message.role
        && COMPACTIONS.contains(&&**kind)
    {
        message.role = Role::CompactionSummary;
    }
    message
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
    if protocol != Protocol::Responses {
        let mut pairs = Pairs::of(protocol);
        let one = |raw: &&'a RawValue| Unit { raw: raw.get(), protocol, ids: pairs.next(raw) };
        return (history.iter().map(one).collect(), true);
    }
    let one = |raw: &'a str| Unit { raw, protocol, ids: Ids::Told };
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

/// Whether an item is one of those that make up an answer.
fn is_of_answer(kind: Option<&str>, role: Option<&str>, item: &str) -> bool {
    match kind {
        None | Some("message") => role == Some("assistant"),
        Some("reasoning" | "item_reference" | "mcp_list_tools" | "mcp_approval_request") => true,
        // What the provider runs itself is answered in the same answer.
        Some(kind) if kind.ends_with("_output") => peek(item, ["call_id"]) == [None],
        Some(kind) => kind.ends_with("_call"),
    }
}

/// Where a value stands in the text it was read from.
pub(super) fn span(text: &str, raw: &RawValue) -> (usize, usize) {
    let from = (raw.get().as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
    (from, from.wrapping_add(raw.get().len()))
}
