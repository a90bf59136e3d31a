//! Which result answers which call, where the ids in a body do not say it.
//!
//! Some providers give calls no ids, empty ones, or one id to several calls of an answer, and take
//! that back as it was. Inside ctx each call of an answer has an id of its own. Which one follows
//! from what stands before it, so that a message reads the same in each request that goes on from it.

use std::collections::HashMap;

use ctx_core::CallId;
use serde_json::value::RawValue;

use super::peek::peek;
use super::{Protocol, apart};
use crate::gemini;
use crate::json::Object;

/// Under which ids the results of a unit are known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Ids {
    /// Under those that they have.
    #[default]
    Told,
    /// It is the result of that number, counted from one, that has its id since the last answer.
    Nth(usize),
    /// One after the other under these, as far as there is one.
    These(Vec<Option<CallId>>),
}

/// The ids of the results in a history.
#[derive(Debug)]
pub(super) struct Pairs {
    protocol: Protocol,
    /// Calls of the last answer (Gemini).
    open: Vec<Open>,
    /// Whether one of them was answered.
    answered: bool,
    /// Results since the last answer, by their ids (OpenAI chat).
    seen: HashMap<CallId, usize>,
    /// Whether the last answer makes its calls by name alone, as OpenAI once did.
    by_name: bool,
}

#[derive(Debug)]
struct Open {
    call: gemini::Named,
    is_answered: bool,
}

impl Pairs {
    pub(super) fn of(protocol: Protocol) -> Self {
        Self { protocol, open: Vec::new(), answered: false, seen: HashMap::new(), by_name: false }
    }

    /// The ids of the next message of the history.
    pub(super) fn next(&mut self, raw: &RawValue) -> Ids {
        match self.protocol {
            Protocol::Chat => self.next_of_chat(raw),
            Protocol::Gemini => self.next_of_gemini(raw),
            Protocol::Responses | Protocol::Messages => Ids::Told,
        }
    }

    fn next_of_chat(&mut self, raw: &RawValue) -> Ids {
        let [role] = peek(raw.get(), ["role"]);
        match role.as_deref() {
            Some("assistant") => {
                self.seen.clear();
                self.by_name = !has(raw, "\"tool_calls\"") || has(raw, "\"function_call\"");
                Ids::Told
            }
            Some("function") if self.by_name => Ids::Told,
            Some("tool" | "function") => {
                let [id] = peek(raw.get(), ["tool_call_id"]);
                let id = match id {
                    Some(id) => id.as_ref().into(),
                    None => Object::of(raw).map(|o| apart::result_id(&o)).unwrap_or_default(),
                };
                let count = self.seen.entry(id).or_insert(0);
                *count += 1;
                Ids::Nth(*count)
            }
            _ => Ids::Told,
        }
    }

    fn next_of_gemini(&mut self, raw: &RawValue) -> Ids {
        if has(raw, "\"functionCall\"") || has(raw, "\"function_call\"") {
            let calls = gemini::calls(raw);
            // Some agents tell each call of an answer in a content of its own.
            if self.answered && !calls.is_empty() {
                self.answered = false;
                self.open.clear();
            }
            self.open.extend(calls.into_iter().map(|call| Open { call, is_answered: false }));
        }
        if !has(raw, "\"functionResponse\"") && !has(raw, "\"function_response\"") {
            return Ids::Told;
        }
        let responses = gemini::responses(raw);
        let mut ids: Vec<_> = responses.iter().map(|response| self.by_id(response)).collect();
        for (id, response) in ids.iter_mut().zip(&responses) {
            if id.is_none() {
                *id = self.by_name(response);
            }
        }
        match ids.iter().any(Option::is_some) {
            true => Ids::These(ids),
            false => Ids::Told,
        }
    }

    fn by_id(&mut self, response: &gemini::Named) -> Option<CallId> {
        if response.id.is_empty() {
            return None;
        }
        self.answer(|call| call.id == response.id)
    }

    /// Clients make up an id where the provider gave none, and leave one out where it gave one.
    fn by_name(&mut self, response: &gemini::Named) -> Option<CallId> {
        self.answer(|call| call.name == response.name)
    }

    fn answer(&mut self, is_it: impl Fn(&gemini::Named) -> bool) -> Option<CallId> {
        let open = self.open.iter_mut().find(|open| !open.is_answered && is_it(&open.call))?;
        open.is_answered = true;
        self.answered = true;
        Some(open.call.id.clone())
    }
}

/// Whether a key may be in there; the key of a text in a text has other quotes.
fn has(raw: &RawValue, key: &str) -> bool {
    memchr::memmem::find(raw.get().as_bytes(), key.as_bytes()).is_some()
}
