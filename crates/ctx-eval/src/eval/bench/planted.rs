//! Statements with outside labels, planted into real sessions as messages of the user.
//!
//! A file of statements is JSONL: see [`Statement`]. Statements of one set are planted together.
//! Old values come before all updates.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Arc, LazyLock};

use ctx_core::{Counter, Entry, Error, ErrorKind, Message, Result, Role};
use regex::Regex;
use serde::{Deserialize, Serialize};

use super::Share;
use super::handles::{HandleIds, holds_word};
use super::score::PlantedFigures;
use super::session::{Item, Speaker, tokens};

/// Statements are planted in the first part of the history. This is its share of the tokens.
const PLANTED_UP_TO: f64 = 0.8;

/// The agent's answer to a statement.
const ANSWER: &str = "Noted.";

/// The type of a statement that only resembles others. It need not be kept.
const DISTRACTOR: &str = "distractor";

/// A note on an old value that a summary may have: `(was $201)`.
static WAS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"[(（]was [^()（）]*[)）]").expect("a test compiles it"));

/// A line of a file of statements.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Statement {
    /// The set it is planted with.
    pub set: String,
    /// Its id within the set.
    pub id: String,
    /// `safety_rule`, `hard_constraint`, `fact`, `goal_state`, `user_preference`, `distractor`, or
    /// another name.
    #[serde(rename = "type")]
    pub kind: String,
    /// The text of the user's message.
    pub text: String,
    /// It is kept if all these texts are in the request, ignoring case.
    pub required: Vec<String>,
    /// Old values that it supersedes.
    #[serde(default)]
    pub superseded: Vec<String>,
    /// The earlier statement of the user, if this is an update.
    pub initial: Option<String>,
    /// The id of a statement that resembles it and must be kept as well.
    pub pair: Option<String>,
}

impl Statement {
    /// Whether a text in lower case contains all required texts.
    fn is_in(&self, text: &str) -> bool {
        self.required.iter().all(|token| text.contains(&token.to_lowercase()))
    }
}

/// Returns the built-in statements.
///
/// # Errors
///
/// None: a test reads them.
pub fn built_in_statements() -> Result<Vec<Statement>> {
    statements(include_str!("../../../data/planted.jsonl"))
}

/// Reads a file of statements.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`], with the number of the line.
pub fn statements(jsonl: &str) -> Result<Vec<Statement>> {
    let lines = jsonl.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(at, line)| {
        let wrong = || {
            Error::new(ErrorKind::InvalidInput, "not a statement to plant")
                .with("line", at + 1)
                .hint("each line is an object with set, id, type, text and required")
        };
        let statement: Statement =
            serde_json::from_str(line).map_err(|error| wrong().source(error))?;
        let is_empty = |token: &String| token.trim().is_empty();
        match statement.required.is_empty() || statement.required.iter().any(is_empty) {
            true => Err(wrong()),
            false => Ok(statement),
        }
    });
    let read = read.collect::<Result<Vec<_>>>()?;
    match read.is_empty() {
        true => Err(Error::new(ErrorKind::InvalidInput, "no statements to plant")),
        false => Ok(read),
    }
}

/// A history with statements planted into it.
pub(super) struct Planted<'a> {
    pub(super) history: Vec<Arc<Item>>,
    statements: Vec<&'a Statement>,
    /// Old values that also occur in the session itself, so they are not counted.
    by_chance: HashSet<&'a str>,
}

impl<'a> Planted<'a> {
    /// Plants the `nth` set, cyclically; `None` without statements.
    pub(super) fn of(
        history: &[Arc<Item>],
        all: &'a [Statement],
        nth: usize,
        counter: &Counter,
        ids: &mut HandleIds,
    ) -> Result<Option<Self>> {
        let mut sets: Vec<&str> = Vec::new();
        for it in all {
            if !sets.contains(&it.set.as_str()) {
                sets.push(&it.set);
            }
        }
        if sets.is_empty() {
            return Ok(None);
        }
        let set = sets[nth % sets.len()];
        let statements: Vec<&Statement> = all.iter().filter(|it| it.set == set).collect();
        let first = statements.iter().map(|it| it.initial.as_deref().unwrap_or(&it.text));
        let updates = statements.iter().filter(|it| it.initial.is_some()).map(|it| &*it.text);
        let turns: Vec<&str> = first.chain(updates).collect();
        let places = places(history, turns.len());
        let mut planted = Vec::with_capacity(history.len() + turns.len() * 2);
        let mut next = turns.iter().zip(places).enumerate().peekable();
        for (at, item) in history.iter().enumerate() {
            while let Some((n, (text, _))) = next.next_if(|(_, (_, place))| *place == at) {
                for (role, text) in [(Role::User, *text), (Role::Assistant, ANSWER)] {
                    let mut message = Message::text(role.clone(), text);
                    message.meta.timestamp = item.entry.timestamp();
                    let id = format!("{}{n:07x}", if role == Role::User { 'f' } else { 'e' });
                    let entry = Arc::new(Entry::in_memory(id, message));
                    planted.push(Item::of(&entry, role == Role::Assistant, counter, ids)?);
                }
            }
            planted.push(item.clone());
        }
        let said: String = history.iter().map(|item| item.text.to_lowercase()).collect();
        let old = statements.iter().flat_map(|it| &it.superseded);
        let by_chance = old.filter(|token| says(&said, token)).map(String::as_str).collect();
        Ok(Some(Self { history: planted, statements, by_chance }))
    }

    /// Returns the statements that a request does not contain.
    pub(super) fn lost(&self, request: &str) -> Vec<String> {
        let text = request.to_lowercase();
        let lost = self.statements.iter().filter(|it| it.kind != DISTRACTOR && !it.is_in(&text));
        lost.map(|it| it.text.clone()).collect()
    }

    /// Looks the statements up in a request.
    pub(super) fn judge(&self, request: &str) -> PlantedFigures {
        let text = request.to_lowercase();
        let current = WAS.replace_all(&text, "");
        let is_stale = |it: &Statement| {
            let old = it.superseded.iter().filter(|token| !self.by_chance.contains(token.as_str()));
            old.into_iter().any(|token| says(&current, token))
        };
        let mut found = PlantedFigures::default();
        let mut types: BTreeMap<String, Share> = BTreeMap::new();
        for &it in &self.statements {
            let kept = it.is_in(&text);
            if it.kind == DISTRACTOR {
                found.distractors.add(kept);
                continue;
            }
            types.entry(it.kind.clone()).or_default().add(kept);
            found.statements.add(kept);
            if it.initial.is_some() {
                found.updates.add(kept);
                found.stale_beside_new += u64::from(kept && is_stale(it));
                found.only_stale += u64::from(!kept && is_stale(it));
            }
            let other =
                it.pair.as_ref().and_then(|id| self.statements.iter().find(|o| o.id == *id));
            if let Some(other) = other.filter(|other| it.id < other.id) {
                found.pairs.add(kept && other.is_in(&text));
            }
        }
        found.types = types;
        found
    }
}

/// Whether a text in lower case says a token that is not a part of a longer word.
fn says(text: &str, token: &str) -> bool {
    holds_word(text, &token.to_lowercase(), true, |c| c.is_ascii_alphanumeric())
}

/// Returns where `count` turns are planted, as sorted indices into the history. They are spread
/// evenly by tokens. Each is before a user message or a request, so that no tool call is open.
fn places(history: &[Arc<Item>], count: usize) -> Vec<usize> {
    let all = tokens(history).scale(PLANTED_UP_TO).get();
    let mut places = Vec::with_capacity(count);
    let mut sum = 0;
    for (at, item) in history.iter().enumerate() {
        let is_open = at > 0 && (item.request || item.speaker == Speaker::User);
        while is_open
            && places.len() < count
            && sum >= all * (places.len() as u64 + 1) / (count as u64 + 1)
        {
            places.push(at);
        }
        sum += item.tokens.get();
    }
    places.resize(count, history.len().saturating_sub(1));
    places
}
