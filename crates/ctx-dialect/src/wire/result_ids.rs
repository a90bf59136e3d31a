//! Matches results to calls if the ids in a body are ambiguous.
//!
//! Some providers send calls without ids, with empty ids, or with one id for several calls of an
//! answer, and accept the same back. Inside ctx each call of an answer has a unique id, derived
//! from the preceding messages, so that a message reads the same in every later request.

use std::collections::HashMap;

use ctx_core::CallId;

use super::{Protocol, call_ids};
use crate::gemini;
use crate::json::JsonElement;

/// The ids of the results in a unit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum ResultIds {
    /// The original ids.
    #[default]
    Original,
    /// The n-th result with its id since the last answer, counted from one.
    Nth(usize),
    /// The ids of the results in order; `None` keeps the original.
    Replaced(Vec<Option<CallId>>),
}

/// Assigns ids to the results of a history, and remembers them: when the list has grown, only its new
/// elements are read.
#[derive(Debug)]
pub struct ResultMatcher {
    pub(super) protocol: Protocol,
    /// The ids in the elements that were read.
    assigned: Vec<ResultIds>,
    /// The calls of the last answer (Gemini).
    open: Vec<OpenCall>,
    /// Whether one of them has a result.
    answered: bool,
    /// The number of results since the last answer, by id (OpenAI Chat).
    seen: HashMap<CallId, usize>,
    /// Whether the calls of the last answer have only names, as in OpenAI's old function calls.
    by_name: bool,
}

#[derive(Debug)]
struct OpenCall {
    call: gemini::CallRef,
    is_answered: bool,
}

impl ResultMatcher {
    /// Creates a matcher that has read nothing.
    pub fn of(protocol: Protocol) -> Self {
        Self {
            protocol,
            assigned: Vec::new(),
            open: Vec::new(),
            answered: false,
            seen: HashMap::new(),
            by_name: false,
        }
    }

    /// Forgets what it has read, if an element after the first `keep` was among it.
    pub fn keep(&mut self, keep: usize) {
        if keep < self.assigned.len() {
            *self = Self::of(self.protocol);
        }
    }

    /// Returns the number of elements that it has read.
    pub(super) fn count(&self) -> usize {
        self.assigned.len()
    }

    /// Returns the ids in the element at `at`. The elements before it must have been read.
    pub(super) fn ids(&mut self, at: usize, element: &JsonElement<'_>) -> ResultIds {
        if let Some(ids) = self.assigned.get(at) {
            return ids.clone();
        }
        let ids = self.next(element);
        self.assigned.push(ids.clone());
        ids
    }

    fn next(&mut self, element: &JsonElement<'_>) -> ResultIds {
        match self.protocol {
            Protocol::Chat => self.next_of_chat(element),
            Protocol::Gemini => self.next_of_gemini(element),
            Protocol::Responses | Protocol::Messages | Protocol::Converse => ResultIds::Original,
        }
    }

    fn next_of_chat(&mut self, element: &JsonElement<'_>) -> ResultIds {
        let Some(object) = &element.object else { return ResultIds::Original };
        match object.text("role").as_deref() {
            Some("assistant") => {
                self.seen.clear();
                self.by_name = !object.has("tool_calls") || object.has("function_call");
                ResultIds::Original
            }
            Some("function") if self.by_name => ResultIds::Original,
            Some("tool" | "function") => {
                let id = match object.text("tool_call_id") {
                    Some(id) => id.as_ref().into(),
                    None => call_ids::result_id(object),
                };
                let count = self.seen.entry(id).or_insert(0);
                *count += 1;
                ResultIds::Nth(*count)
            }
            _ => ResultIds::Original,
        }
    }

    fn next_of_gemini(&mut self, element: &JsonElement<'_>) -> ResultIds {
        let raw = element.raw;
        if has(raw, "\"functionCall\"") || has(raw, "\"function_call\"") {
            let calls = gemini::calls(element);
            // Some agents send each call of an answer in a separate content.
            if self.answered && !calls.is_empty() {
                self.answered = false;
                self.open.clear();
            }
            self.open.extend(calls.into_iter().map(|call| OpenCall { call, is_answered: false }));
        }
        if !has(raw, "\"functionResponse\"") && !has(raw, "\"function_response\"") {
            return ResultIds::Original;
        }
        let responses = gemini::responses(element);
        let mut ids: Vec<_> = responses.iter().map(|response| self.by_id(response)).collect();
        for (id, response) in ids.iter_mut().zip(&responses) {
            if id.is_none() {
                *id = self.by_name(response);
            }
        }
        match ids.iter().any(Option::is_some) {
            true => ResultIds::Replaced(ids),
            false => ResultIds::Original,
        }
    }

    fn by_id(&mut self, response: &gemini::CallRef) -> Option<CallId> {
        if response.id.is_empty() {
            return None;
        }
        self.answer(|call| call.id == response.id)
    }

    /// Finds the call of a response by its name: clients invent an id if the provider gave none,
    /// and omit an id that it gave.
    fn by_name(&mut self, response: &gemini::CallRef) -> Option<CallId> {
        self.answer(|call| call.name == response.name)
    }

    fn answer(&mut self, matches: impl Fn(&gemini::CallRef) -> bool) -> Option<CallId> {
        let open = self.open.iter_mut().find(|open| !open.is_answered && matches(&open.call))?;
        open.is_answered = true;
        self.answered = true;
        Some(open.call.id.clone())
    }
}

/// Whether a key may occur in the value; inside a nested JSON string its quotes are escaped.
fn has(raw: &str, key: &str) -> bool {
    memchr::memmem::find(raw.as_bytes(), key.as_bytes()).is_some()
}
