//! Required passages: constraints, decisions, open questions, pinned text.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ctx_core::text::Slice;
use ctx_core::{EntryId, Role};
use ctx_text::{Gist, Reading, Sentence, Signal, clip};

use super::SupersededFact;
use super::ask::Ask;
use super::classify::{chooses, classified, has_reason};
use super::personal::{self, personal};
use super::speakers::Speakers;
use crate::{CitedMessage, FactKind, RequiredFact, Statement, without_citations};

/// A passage is truncated at a clause beyond this many characters.
const LONGEST: usize = 400;
/// The maximum weight of a passage from the assistant.
pub(super) const ASSISTANT: f32 = 0.5;
/// Bounds the passages of a pasted specification, whose sentences are not all constraints.
const MOST_PER_MESSAGE: usize = 40;
/// A message of more sentences is a document: only its first statements are facts.
const DOCUMENT: usize = 60;
const STATED_IN_DOCUMENT: usize = 6;
/// The maximum number of statements and of requests in a session, the newest first.
const MOST_STATED: usize = 400;
/// A word in more binding passages does not relate two of them.
const FREQUENT: usize = 40;
/// The number of newest passages that a new one may replace.
const COMPARED: usize = 400;
/// The maximum distance, in messages, at which a value can be replaced without naming it.
const NEAR: usize = 12;
/// The factor on the weight of a passage that a later one contradicts.
const CONTRADICTED: f32 = 0.2;

/// A passage of prose.
#[derive(Clone, Debug)]
pub(super) struct Passage {
    pub(super) kind: FactKind,
    pub(super) text: String,
    pub(super) at: usize,
    entry: EntryId,
    weight: f32,
    revokes: bool,
    /// Whether the user said it. The assistant cannot withdraw a demand of the user.
    by_user: bool,
    statement: Arc<Statement>,
    /// Its position in the session.
    order: u32,
    /// The index of the passage that replaced or withdrew it.
    gone: Option<usize>,
    /// Whether a later passage contradicts it.
    contradicted: bool,
}

/// The passages found so far, in the order of the messages.
#[derive(Clone, Debug, Default)]
pub(super) struct Passages {
    all: Vec<Passage>,
    /// For each word, the binding passages that contain it.
    sayers: HashMap<u64, Vec<usize>>,
    /// The questions in the assistant's last message, which the user's next message closes.
    asked_back: Vec<Passage>,
    /// The message being read.
    at: usize,
    entry: EntryId,
}

/// The facts of the passages.
#[derive(Debug, Default)]
pub(super) struct PassageFacts {
    pub(super) required: Vec<RequiredFact>,
    pub(super) superseded: Vec<SupersededFact>,
    /// The passages that no longer hold, each with the index of the message that ended them.
    pub(super) gone: Vec<(Passage, usize)>,
}

impl Passages {
    /// Reads a message.
    pub(super) fn read(&mut self, at: usize, one: &CitedMessage, speakers: &Speakers<'_>) {
        (self.at, self.entry) = (at, one.id.clone());
        if one.pinned {
            for sentence in speakers.user.sentences().iter().take(400) {
                self.push(FactKind::Pinned, sentence.text, 1.0, false);
            }
            return;
        }
        if !speakers.user.text.is_empty() {
            self.asked_back.clear();
            self.user(&speakers.user);
        }
        if !speakers.assistant.text.is_empty() && one.message.role == Role::Assistant {
            self.assistant(&speakers.assistant);
        }
    }

    fn passage(&self, kind: FactKind, text: &str, weight: f32, revokes: bool) -> Passage {
        let text = clip(text, LONGEST).to_owned();
        Passage {
            kind,
            statement: Arc::new(Statement::of(&text)),
            text,
            at: self.at,
            entry: self.entry.clone(),
            weight,
            revokes,
            by_user: weight > ASSISTANT,
            order: 0,
            gone: None,
            contradicted: false,
        }
    }

    fn push(&mut self, kind: FactKind, text: &str, weight: f32, revokes: bool) {
        let mut passage = self.passage(kind, text, weight, revokes);
        passage.order = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.relate(&mut passage);
        if is_binding(passage.kind) {
            for &word in &passage.statement.gist.words {
                self.sayers.entry(word).or_default().push(self.all.len());
            }
        }
        self.all.push(passage);
    }

    /// Marks the earlier passages that a new one withdraws, replaces or contradicts.
    fn relate(&mut self, new: &mut Passage) {
        let later = self.all.len();
        let mut gone = Vec::new();
        if is_binding(new.kind) {
            let own = &new.statement.gist;
            let mut shared: HashMap<usize, usize> = HashMap::new();
            let sayers = own.words.iter().filter_map(|word| self.sayers.get(word));
            // A frequent word does not relate two passages.
            for &place in sayers.filter(|places| places.len() <= FREQUENT).flatten() {
                *shared.entry(place).or_default() += 1;
            }
            let mut raises = false;
            for (place, count) in shared {
                let Some(old) = self.all.get_mut(place).filter(|old| old.at < new.at) else {
                    continue;
                };
                if !new.by_user && old.kind != FactKind::Decision {
                    continue;
                }
                let relation = Reversal::of(new, old, count);
                raises |= relation != Reversal::None && old.kind != FactKind::Decision;
                match relation {
                    Reversal::None => {}
                    Reversal::Withdrawn => gone.push(place),
                    Reversal::Contradicted => old.contradicted = true,
                }
            }
            // The replacement of a demand is a demand: "forget npm, switch to pnpm".
            if raises && new.kind == FactKind::Decision {
                new.kind = FactKind::Constraint;
            }
        }
        let replaced = self.all.iter().enumerate().rev().take(COMPARED).filter(|(_, old)| {
            old.at < new.at
                && (new.by_user || !old.by_user)
                && may_be_replaced(old.kind)
                && may_be_replaced(new.kind)
                && new.statement.replaces(&old.statement)
        });
        gone.extend(replaced.map(|(place, _)| place));
        gone.extend(self.renewed(new));
        for place in gone {
            self.all[place].gone.get_or_insert(later);
        }
    }

    /// Completes a statement that only gives a new value ("now 9090") by the one it refers to, and
    /// returns the place of that one.
    fn renewed(&self, new: &mut Passage) -> Option<usize> {
        if !new.statement.only_renews() {
            return None;
        }
        let states = |old: &Passage| old.at < new.at && !old.text.ends_with(['?', '？']);
        let near = self.all.iter().enumerate().rev().filter(|(_, old)| states(old));
        let mut near = near.take_while(|(_, old)| new.at - old.at <= NEAR);
        let (place, text) = near.find_map(|(place, old)| {
            let (value, was) = new.statement.renews(&old.statement)?;
            let at = old.text.rfind(was)?;
            let (head, tail) = (old.text.slice(..at), old.text.slice(at + was.len()..));
            Some((place, format!("{head}{value}{tail} (was {was})")))
        })?;
        new.kind = self.all[place].kind;
        new.text = text;
        Some(place)
    }

    fn user(&mut self, reading: &Reading<'_>) {
        let sentences = reading.sentences();
        let is_document = sentences.len() > DOCUMENT;
        let (mut found, mut stated) = (0, 0);
        for sentence in sentences {
            if found >= MOST_PER_MESSAGE {
                break;
            }
            let Some((kind, weight, revokes)) = classified(sentence) else { continue };
            if matches!(kind, FactKind::Statement | FactKind::Request) {
                stated += 1;
                if is_document && stated > STATED_IN_DOCUMENT {
                    continue;
                }
            }
            found += 1;
            self.push(kind, sentence.text, weight, revokes);
        }
    }

    fn assistant(&mut self, reading: &Reading<'_>) {
        self.asked_back.clear();
        let mut found = 0;
        for &Sentence { text: sentence, marks } in reading.sentences() {
            let length = sentence.chars().count();
            if !(8..=600).contains(&length) || found >= MOST_PER_MESSAGE / 2 {
                continue;
            }
            let weight = if has_reason(sentence) { ASSISTANT } else { 0.4 };
            if sentence.ends_with(['?', '？']) {
                let asked = self.passage(FactKind::Question, sentence, weight, false);
                self.asked_back.push(asked);
            } else if marks.decision
                && chooses(sentence)
                && (has_reason(sentence) || !Signal::of(sentence).announces)
            {
                found += 1;
                self.push(FactKind::Decision, sentence, weight, false);
            } else if let Some(weight) = personal(sentence) {
                found += 1;
                self.push(FactKind::Personal, sentence, weight.min(ASSISTANT), false);
            }
        }
    }

    /// Returns the facts of the first `messages` messages, without duplicates. `works` says whether the
    /// assistant calls tools, and is not a person in a chat.
    pub(super) fn facts(&self, messages: usize, works: bool, asks: &[Ask]) -> PassageFacts {
        let all = self.all.iter().chain(&self.asked_back);
        let all = all.filter(|p| p.at < messages);
        let all = all.filter(|p| p.kind != FactKind::Personal || p.by_user || !works);
        let asked = self.open_requests(asks);
        let mut out = PassageFacts::default();
        let mut places: HashMap<(FactKind, String), usize> = HashMap::new();
        let ended: HashSet<(usize, &str)> = self
            .all
            .iter()
            .filter(|passage| passage.gone.is_some())
            .map(|passage| (passage.at, &*passage.text))
            .collect();
        let asked = asked.iter().filter(|asked| !ended.contains(&(asked.at, &*asked.text)));
        for passage in all.chain(asked) {
            let Some(fact) = passage.fact(messages) else { continue };
            if let Some(by) = passage.gone.and_then(|by| self.all.get(by)) {
                out.gone.push((passage.clone(), by.at));
                out.superseded.push(SupersededFact {
                    fact,
                    by: without_citations(&by.text),
                    entry: by.entry.clone(),
                });
                continue;
            }
            let key = (passage.kind, fact.text.to_lowercase());
            match places.get(&key).and_then(|&place| out.required.get_mut(place)) {
                Some(known) => {
                    known.entry = fact.entry;
                    known.weight = known.weight.max(fact.weight);
                }
                None => {
                    places.insert(key, out.required.len());
                    out.required.push(fact);
                }
            }
        }
        for (kind, most) in [
            (FactKind::Personal, personal::MOST),
            (FactKind::Statement, MOST_STATED),
            (FactKind::Request, MOST_STATED),
        ] {
            fewer(&mut out.required, kind, most);
        }
        out
    }

    /// Returns the open requests as passages. A demand counts as the request only without another
    /// one.
    fn open_requests(&self, asks: &[Ask]) -> Vec<Passage> {
        let mut out = Vec::new();
        for ask in asks {
            let is_demand = |text: &str| {
                self.all.iter().any(|p| {
                    p.at == ask.at
                        && matches!(p.kind, FactKind::Constraint | FactKind::Pinned)
                        && p.text == text
                })
            };
            let (plain, demands): (Vec<_>, Vec<_>) =
                ask.sentences.iter().partition(|sentence| !is_demand(sentence));
            let asked =
                if plain.is_empty() { demands.into_iter().take(1).collect() } else { plain };
            out.extend(asked.into_iter().map(|text| Passage {
                at: ask.at,
                entry: ask.entry.clone(),
                ..self.passage(FactKind::Ask, text, 0.8, false)
            }));
        }
        out
    }
}

impl Passage {
    fn fact(&self, messages: usize) -> Option<RequiredFact> {
        let late = 0.2 * (self.at + 1) as f32 / messages.max(1) as f32;
        let weight = if self.contradicted { self.weight * CONTRADICTED } else { self.weight };
        let text = without_citations(&self.text);
        text.contains(char::is_alphanumeric).then(|| RequiredFact {
            kind: self.kind,
            text,
            entry: self.entry.clone(),
            weight: (weight + late).min(1.0),
            by_user: self.by_user,
            order: self.order,
        })
    }
}

/// How a later passage changes an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reversal {
    None,
    /// It withdraws the earlier one.
    Withdrawn,
    /// It denies what the earlier one affirms, or withdraws a part of it.
    Contradicted,
}

impl Reversal {
    /// Compares two passages that share `count` words.
    fn of(new: &Passage, old: &Passage, count: usize) -> Self {
        let (own, gist) = (&new.statement.gist, &old.statement.gist);
        let close = count * 2 >= gist.words.len().min(own.words.len());
        let flips = own.words.iter().any(|&w| gist.says(w) && own.negates(w) != gist.negates(w));
        let takes_back = new.revokes || flips && new.statement.is_news();
        if takes_back && new.by_user && covers(own, gist) {
            Self::Withdrawn
        } else if close && (new.revokes || flips) {
            Self::Contradicted
        } else {
            Self::None
        }
    }
}

/// Whether at least half of the old words occur in the later statement.
fn covers(later: &Gist, old: &Gist) -> bool {
    let shared = later.shared(old);
    let enough = shared * 2 >= old.words.len();
    shared > 0 && (enough || (shared > 1 && shared * 2 + 1 >= old.words.len()))
}

/// Kinds whose passages hold until they are withdrawn.
fn is_binding(kind: FactKind) -> bool {
    matches!(kind, FactKind::Pinned | FactKind::Constraint | FactKind::Decision)
}

/// Kinds whose passages give a thing a value.
fn may_be_replaced(kind: FactKind) -> bool {
    is_binding(kind) || matches!(kind, FactKind::Statement | FactKind::Personal | FactKind::Request)
}

/// Limits the facts of a kind to those of highest weight.
fn fewer(facts: &mut Vec<RequiredFact>, kind: FactKind, most: usize) {
    let own = facts.iter().filter(|fact| fact.kind == kind);
    let mut weights: Vec<f32> = own.map(|fact| fact.weight).collect();
    if weights.len() <= most {
        return;
    }
    weights.sort_unstable_by(|a, b| b.total_cmp(a));
    let least = weights.get(most).copied().unwrap_or_default();
    facts.retain(|fact| fact.kind != kind || fact.weight > least);
}
