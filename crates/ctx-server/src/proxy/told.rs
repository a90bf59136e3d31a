//! A request's units, and how much of a conversation they go on from.

use std::sync::{Arc, OnceLock};

use ctx_core::{CallId, ContentHash, EntryId, Message, Result, Role};
use ctx_dialect::wire;

use super::parts::in_parts;
use crate::hosted::{Mark, Unit, mark};

/// A unit of a request, with what was found out about it.
pub(super) struct Told<'a> {
    unit: &'a wire::Unit<'a>,
    mark: Mark,
    read: OnceLock<(Arc<Message>, ContentHash)>,
}

impl<'a> Told<'a> {
    /// All units of a request.
    pub(super) fn all(request: &'a wire::Request<'a>) -> Vec<Self> {
        let told =
            |unit: &'a wire::Unit<'a>| Self { unit, mark: mark(unit.raw), read: OnceLock::new() };
        in_parts(
            &request.units.iter().collect::<Vec<_>>(),
            |unit| unit.raw.len(),
            |unit| told(unit),
        )
    }

    /// Reads those that nobody knows by their bytes.
    pub(super) fn read_new(told: &[Self], ids: &[Option<EntryId>]) {
        let new: Vec<&Self> =
            told.iter().zip(ids).filter(|(_, id)| id.is_none()).map(|(told, _)| told).collect();
        in_parts(&new, |told| told.unit.raw.len(), |told| told.hash());
    }

    /// What it says.
    pub(super) fn message(&self) -> &Message {
        &self.known().0
    }

    /// The hash of what it says.
    pub(super) fn hash(&self) -> ContentHash {
        self.known().1
    }

    fn known(&self) -> &(Arc<Message>, ContentHash) {
        self.read.get_or_init(|| {
            let message = self.unit.read();
            let hash = ContentHash::of(&message);
            (Arc::new(message), hash)
        })
    }

    pub(super) fn is_instruction(&self) -> bool {
        self.message().role == Role::System
    }
}

impl Unit for Told<'_> {
    fn raw(&self) -> &str {
        self.unit.raw
    }

    fn mark(&self) -> Mark {
        self.mark
    }

    fn read(&self) -> Result<Message> {
        Ok(self.message().clone())
    }

    fn content(&self) -> Result<(Arc<Message>, ContentHash)> {
        Ok(self.known().clone())
    }
}

/// Whether what is newest answers calls, and none of them is in the request: the provider has them, or
/// nobody.
pub(super) fn answers_unknown_calls(told: &[Told<'_>]) -> bool {
    let answer = told.iter().rposition(|told| told.message().role == Role::Assistant);
    let (earlier, newest) = told.split_at(answer.map_or(0, |at| at + 1));
    let is_made = |id: &CallId| {
        let mut calls = earlier.iter().rev().flat_map(|told| told.message().tool_calls());
        calls.any(|call| call.id == *id)
    };
    let results = newest.iter().flat_map(|told| told.message().tool_results());
    let mut ids = results.map(|result| &result.call_id).peekable();
    ids.peek().is_some() && !ids.any(is_made)
}

/// What is known of one message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) id: EntryId,
    /// Of its text; none after a restart.
    pub(super) mark: Option<Mark>,
    pub(super) hash: ContentHash,
    pub(super) is_instruction: bool,
}

impl Known {
    fn is(&self, told: &Told<'_>) -> bool {
        self.mark == Some(told.mark) || self.hash == told.hash()
    }
}

/// How a request goes on from what is known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Common {
    /// Messages that both have at their beginning, instructions apart: these may change from
    /// request to request.
    pub(super) messages: usize,
    /// Messages behind these that are known and not told any more.
    pub(super) removed: usize,
    /// For each unit the id of the message it is, as far as they are the same.
    pub(super) ids: Vec<Option<EntryId>>,
}

/// Compares the beginning of a request with a conversation.
pub(super) fn common(known: &[Known], told: &[Told<'_>]) -> Common {
    let of_known = known.iter().take_while(|known| known.is_instruction).count();
    let mut ids: Vec<Option<EntryId>> = vec![None; told.len()];
    let mut at = 0;
    while let Some(unit) = told.get(at) {
        match known.get(at).filter(|known| known.is_instruction && known.is(unit)) {
            Some(same) => ids[at] = Some(same.id.clone()),
            None if unit.is_instruction() => {}
            None => break,
        }
        at += 1;
    }
    let rest = &known[of_known..];
    let both = rest.iter().zip(&told[at..]);
    let messages = both.take_while(|(known, told)| known.is(told)).count();
    for (known, id) in rest[..messages].iter().zip(&mut ids[at..]) {
        *id = Some(known.id.clone());
    }
    Common { messages, removed: rest.len() - messages, ids }
}

/// The first message of the user.
pub(super) fn first_of_user<'a, 'b>(told: &'b [Told<'a>]) -> Option<&'b Told<'a>> {
    told.iter().find(|told| told.message().role == Role::User).or_else(|| told.first())
}
