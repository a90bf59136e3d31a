//! What of a history goes or stays together.

use ctx_core::{Message, Role};
use serde_json::value::RawValue;

use super::Protocol;
use super::peek::peek;
use crate::json::{Object, elements};
use crate::{anthropic, gemini, openai_chat, openai_responses};

/// What OpenAI calls the items in which it has compacted a history.
const COMPACTIONS: [&str; 3] = ["compaction", "compaction_summary", "context_compaction"];

/// What goes or stays together: one message; of the Responses API all neighbouring items of one
/// answer (reasoning, text, calls), because the provider refuses reasoning without what follows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit<'a> {
    /// Its elements as they stand in the body, with what stands between them.
    pub raw: &'a str,
    pub(super) protocol: Protocol,
    /// Whether calls have no ids, and responses go by the names of their functions (Gemini).
    pub(super) by_name: bool,
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
            Protocol::Gemini if self.by_name => gemini::parse_by_name(raw),
            Protocol::Gemini => gemini::parse_raw(raw),
            Protocol::Chat | Protocol::Responses => openai_chat::parse_raw(raw),
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
    let by_name = protocol == Protocol::Gemini && goes_by_name(history);
    let one = |raw: &'a str| Unit { raw, protocol, by_name };
    if protocol != Protocol::Responses {
        return (history.iter().map(|raw| one(raw.get())).collect(), true);
    }
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

/// Whether the first call of a history has no id.
fn goes_by_name(history: &[&RawValue]) -> bool {
    let calls = |raw: &&&RawValue| {
        let text = raw.get().as_bytes();
        let has = |key: &str| memchr::memmem::find(text, key.as_bytes()).is_some();
        has("\"functionCall\"") || has("\"function_call\"")
    };
    history.iter().filter(calls).find_map(|raw| first_call_has_id(raw)).is_some_and(|has| !has)
}

fn first_call_has_id(content: &RawValue) -> Option<bool> {
    let parts = Object::of(content)?.array("parts")?;
    parts.into_iter().find_map(|part| {
        let part = Object::of(part)?;
        let call = part.object("functionCall").or_else(|| part.object("function_call"))?;
        Some(call.get("id").is_some())
    })
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
