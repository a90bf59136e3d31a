//! The parts of a history that are kept or dropped as a whole.

use std::sync::{Arc, OnceLock};

use ctx_core::{Message, Role};
use memchr::memmem;
use serde_json::value::RawValue;

use super::compaction::{COMPACTIONS, compaction_in};
use super::context_compaction::is_block;
use super::peek::peek;
use super::result_ids::{ResultIds, ResultMatcher};
use super::{Protocol, call_ids};
use crate::json::{Object, elements};
use crate::{anthropic, gemini, openai_responses};

/// A part of the history that is kept or dropped as a whole: one message, or all adjacent Responses
/// items of one answer (reasoning, text, calls), because reasoning is refused without the item that
/// follows it.
#[derive(Clone, Debug)]
pub struct Unit<'a> {
    /// Its elements as in the body, including the text between them.
    pub raw: &'a str,
    pub(super) protocol: Protocol,
    pub(super) ids: ResultIds,
    /// Whether it has the provider's compaction of everything before it.
    pub(super) is_compaction: bool,
    message: OnceLock<Arc<Message>>,
}

impl<'a> Unit<'a> {
    fn new(raw: &'a str, protocol: Protocol, ids: ResultIds, is_compaction: bool) -> Self {
        Self { raw, protocol, ids, is_compaction, message: OnceLock::new() }
    }

    /// Returns the content of the provider's compaction in it.
    pub fn compaction(&self) -> Option<String> {
        compaction_in(self.protocol, self.raw).filter(|_| self.is_compaction)
    }

    /// Returns the message, parsed once. A compaction of the provider is pinned.
    pub fn read(&self) -> Arc<Message> {
        let message = self.message.get_or_init(|| {
            let mut message = self.parse();
            message.meta.pinned = self.is_compaction;
            Arc::new(message)
        });
        message.clone()
    }

    fn parse(&self) -> Message {
        if self.protocol == Protocol::Responses {
            return answer(self.raw);
        }
        // Units of a parsed body are valid JSON; anything else would become an unknown message.
        let Ok(raw) = serde_json::from_str::<&RawValue>(self.raw) else {
            return Message::new(Role::Other("unknown".into()), Vec::new());
        };
        match self.protocol {
            Protocol::Messages | Protocol::Converse => anthropic::parse_raw(raw),
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
        let mut items = items.iter().map(|item| openai_responses::parse_raw(item));
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

/// Calls `read` with the items of a unit.
pub(super) fn with_items<T>(raw: &str, read: impl FnOnce(&[&RawValue]) -> T) -> T {
    if let Ok(one) = serde_json::from_str::<&RawValue>(raw) {
        return read(&[one]);
    }
    let list = format!("[{raw}]");
    let items = serde_json::from_str::<&RawValue>(&list).ok().and_then(elements);
    read(&items.unwrap_or_default())
}

/// The units of a history.
#[derive(Default)]
pub(super) struct CutHistory<'a> {
    pub(super) units: Vec<Unit<'a>>,
    /// Whether an item refers to an item that the provider stores.
    pub(super) is_continued: bool,
    /// The elements before the first unit, as in the body. The provider ignores them, because it
    /// compacted them.
    pub(super) ignored: &'a str,
}

/// Cuts a history into units. The elements are slices of `body`.
pub(super) fn cut<'a>(
    protocol: Protocol,
    history: &[&'a RawValue],
    body: &'a str,
) -> CutHistory<'a> {
    if protocol == Protocol::Responses {
        return cut_items(history, body);
    }
    let compaction = (protocol == Protocol::Messages).then(|| last_compaction(history, body));
    let compaction = compaction.flatten();
    let mut matcher = ResultMatcher::of(protocol);
    let unit = |(n, raw): (usize, &&'a RawValue)| {
        let is_compaction = compaction == Some(n);
        Unit::new(raw.get(), protocol, matcher.next(raw), is_compaction)
    };
    let mut units: Vec<_> = history.iter().enumerate().map(unit).collect();
    units.drain(..compaction.unwrap_or_default());
    CutHistory { ignored: before(history, compaction, body), units, is_continued: false }
}

fn cut_items<'a>(history: &[&'a RawValue], body: &'a str) -> CutHistory<'a> {
    let mut cut = CutHistory::default();
    let mut begun: Option<usize> = None;
    let mut has_answers = false;
    for (n, raw) in history.iter().enumerate() {
        let (from, to) = span(body, raw);
        let [kind, role] = peek(raw.get(), ["type", "role"]);
        let is_compaction = kind.as_deref().is_some_and(|kind| COMPACTIONS.contains(&kind));
        // The provider itself returns its compaction after the messages that it keeps, and these
        // are the user's.
        if is_compaction && has_answers {
            cut = CutHistory { ignored: before(history, Some(n), body), ..CutHistory::default() };
        }
        has_answers |= !matches!(role.as_deref(), Some("user" | "developer" | "system"));
        let is_answer = is_of_answer(kind.as_deref(), role.as_deref(), raw.get());
        cut.is_continued |= kind.as_deref() == Some("item_reference");
        match (begun.filter(|_| is_answer), cut.units.last_mut()) {
            (Some(begin), Some(last)) => last.raw = body.get(begin..to).unwrap_or(last.raw),
            _ => {
                let (protocol, ids) = (Protocol::Responses, ResultIds::Original);
                cut.units.push(Unit::new(raw.get(), protocol, ids, is_compaction));
                begun = is_answer.then_some(from);
            }
        }
    }
    cut
}

/// Returns the index of the last message with a compaction of Anthropic.
pub(super) fn last_compaction(history: &[&RawValue], body: &str) -> Option<usize> {
    const MARK: &[u8] = b"\"compaction\"";
    memmem::find(body.as_bytes(), MARK)?;
    history.iter().rposition(|raw| {
        memmem::find(raw.get().as_bytes(), MARK).is_some()
            && Object::of(raw)
                .and_then(|message| message.array("content"))
                .is_some_and(|blocks| blocks.iter().any(is_block))
    })
}

/// Returns the elements before the one at `at`, with their commas.
fn before<'a>(history: &[&RawValue], at: Option<usize>, body: &'a str) -> &'a str {
    let place = |raw: &&RawValue| span(body, raw).0;
    let (first, end) = (history.first(), at.and_then(|at| history.get(at)));
    let range = first.map(place).zip(end.map(place));
    range.and_then(|(from, to)| body.get(from..to)).unwrap_or_default()
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
