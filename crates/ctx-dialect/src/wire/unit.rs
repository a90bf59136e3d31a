//! The parts of a history that are kept or dropped as a whole.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use ctx_core::{Message, Role};
use memchr::memmem;
use serde_json::value::RawValue;

use super::compaction::{COMPACTIONS, compaction_in};
use super::context_compaction::is_block;
use super::result_ids::{ResultIds, ResultMatcher};
use super::{Protocol, call_ids};
use crate::json::{JsonElement, Object, offset};
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
    first: JsonElement<'a>,
    /// Whether the fields of its first element are read only when they are needed.
    is_unread: bool,
    /// The other elements: the items of an answer of the Responses API.
    more: Vec<JsonElement<'a>>,
    message: OnceLock<Arc<Message>>,
}

impl<'a> Unit<'a> {
    fn new(
        first: JsonElement<'a>,
        protocol: Protocol,
        ids: ResultIds,
        is_compaction: bool,
    ) -> Self {
        Self {
            raw: first.raw,
            protocol,
            ids,
            is_compaction,
            first,
            is_unread: false,
            more: Vec::new(),
            message: OnceLock::new(),
        }
    }

    /// Returns its first element.
    fn first(&self) -> Cow<'_, JsonElement<'a>> {
        match self.is_unread {
            true => {
                let raw = self.first.raw;
                Cow::Owned(JsonElement { raw, object: Object::of_text(raw) })
            }
            false => Cow::Borrowed(&self.first),
        }
    }

    /// Returns the number of its elements.
    pub(super) fn size(&self) -> usize {
        1 + self.more.len()
    }

    /// Returns its elements, which are items of the Responses API.
    pub(super) fn elements(&self) -> impl Iterator<Item = &JsonElement<'a>> {
        std::iter::once(&self.first).chain(&self.more)
    }

    /// Returns the fields of its first element, if that is an object.
    pub(super) fn object(&self) -> Option<Object<'a>> {
        self.first().into_owned().object
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
        let first = self.first();
        match (self.protocol, &self.ids) {
            (Protocol::Responses, _) => self.answer(),
            (Protocol::Messages | Protocol::Converse, _) => anthropic::read(&first),
            (Protocol::Gemini, ResultIds::Replaced(ids)) => gemini::read(&first, ids),
            (Protocol::Gemini, _) => gemini::read(&first, &[]),
            (Protocol::Chat, ResultIds::Nth(nth)) => call_ids::parse(&first, *nth),
            (Protocol::Chat, _) => call_ids::parse(&first, 0),
        }
    }

    /// Parses the items of one answer as one message.
    fn answer(&self) -> Message {
        let mut items = self.elements().map(openai_responses::read);
        let first = items.next().unwrap_or_else(|| Message::new(Role::User, Vec::new()));
        items.fold(first, |mut all, next| {
            all.blocks.extend(next.blocks);
            // Reasoning that only refers to stored content has no role.
            if next.role == Role::Assistant {
                all.role = Role::Assistant;
            }
            all
        })
    }
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

/// Cuts a history into units. The elements are slices of `body`; the fields of those that the matcher
/// knows are not needed.
pub(super) fn cut<'a>(
    protocol: Protocol,
    history: Vec<JsonElement<'a>>,
    body: &'a str,
    matcher: &mut ResultMatcher,
) -> CutHistory<'a> {
    if protocol == Protocol::Responses {
        return cut_items(history, body);
    }
    let raws = history.iter().map(|element| element.raw);
    let compaction = match protocol {
        Protocol::Messages => last_compaction(raws.clone(), body),
        _ => None,
    };
    let ignored = before(raws, compaction, body);
    let known = matcher.count();
    let unit = |(n, element): (usize, JsonElement<'a>)| {
        let ids = matcher.ids(n, &element);
        let unit = Unit::new(element, protocol, ids, compaction == Some(n));
        Unit { is_unread: n < known, ..unit }
    };
    let mut units: Vec<_> = history.into_iter().enumerate().map(unit).collect();
    units.drain(..compaction.unwrap_or_default());
    CutHistory { ignored, units, is_continued: false }
}

fn cut_items<'a>(history: Vec<JsonElement<'a>>, body: &'a str) -> CutHistory<'a> {
    let mut cut = CutHistory::default();
    let mut begun: Option<usize> = None;
    let mut has_answers = false;
    let first = history.first().map(|element| offset(body, element.raw));
    for element in history {
        let from = offset(body, element.raw);
        let to = from + element.raw.len();
        let (kind, role) = (element.text("type"), element.text("role"));
        let is_compaction = kind.as_deref().is_some_and(|kind| COMPACTIONS.contains(&kind));
        // The provider itself returns its compaction after the messages that it keeps, and these
        // are the user's.
        if is_compaction && has_answers {
            let ignored = first.and_then(|first| body.get(first..from)).unwrap_or_default();
            cut = CutHistory { ignored, ..CutHistory::default() };
        }
        has_answers |= !matches!(role.as_deref(), Some("user" | "developer" | "system"));
        let is_answer = is_of_answer(kind.as_deref(), role.as_deref(), &element);
        cut.is_continued |= kind.as_deref() == Some("item_reference");
        match (begun.filter(|_| is_answer), cut.units.last_mut()) {
            (Some(begin), Some(last)) => {
                last.raw = body.get(begin..to).unwrap_or(last.raw);
                last.more.push(element);
            }
            _ => {
                let (protocol, ids) = (Protocol::Responses, ResultIds::Original);
                cut.units.push(Unit::new(element, protocol, ids, is_compaction));
                begun = is_answer.then_some(from);
            }
        }
    }
    cut
}

/// Returns the index of the last message with a compaction of Anthropic.
pub(super) fn last_compaction<'a>(
    history: impl ExactSizeIterator<Item = &'a str> + DoubleEndedIterator,
    body: &str,
) -> Option<usize> {
    const MARK: &[u8] = b"\"compaction\"";
    memmem::find(body.as_bytes(), MARK)?;
    let mut history = history;
    history.rposition(|raw| {
        memmem::find(raw.as_bytes(), MARK).is_some()
            && Object::parse(raw)
                .ok()
                .and_then(|message| message.array("content"))
                .is_some_and(|blocks| blocks.iter().any(is_block))
    })
}

/// Returns the elements before the one at `at`, with their commas.
fn before<'a>(
    mut history: impl Iterator<Item = &'a str>,
    at: Option<usize>,
    body: &'a str,
) -> &'a str {
    let first = history.next();
    let end = at.and_then(|at| if at == 0 { first } else { history.nth(at - 1) });
    let range = first.zip(end).map(|(first, end)| offset(body, first)..offset(body, end));
    range.and_then(|range| body.get(range)).unwrap_or_default()
}

/// Whether an item is part of an answer.
fn is_of_answer(kind: Option<&str>, role: Option<&str>, item: &JsonElement<'_>) -> bool {
    match kind {
        None | Some("message") => role == Some("assistant"),
        Some("reasoning" | "item_reference" | "mcp_list_tools" | "mcp_approval_request") => true,
        // Output of tools run by the provider is in the same answer.
        Some(kind) if kind.ends_with("_output") => item.text("call_id").is_none(),
        Some(kind) => kind.ends_with("_call"),
    }
}

/// Returns the position of a value in the text it was parsed from.
pub(super) fn span(text: &str, raw: &RawValue) -> (usize, usize) {
    let from = offset(text, raw.get());
    (from, from.wrapping_add(raw.get().len()))
}
