//! Notes of the user's own words: each sentence once, under the field that it belongs to.

use std::collections::{BTreeMap, HashMap, HashSet};

use ctx_core::EntryId;
use ctx_facts::{FactKind, RequiredFact};
use ctx_text::{Signal, WordList, is_task};

use super::ExtractInput;
use super::agreement::agreement;
use super::note::{EARLIER, FIRST, LATEST, Note, normal};
use super::turns::Turn;
use crate::Field;

/// The weight of the latest request, which comes first.
const NEWEST: f32 = 9.0;

/// Returns the base weight of a note of the user's words, which is above that of all other notes.
/// If the user's share is too small, the notes of the lowest weight are dropped first: mostly those
/// of fields of lower weight, and within a field the older ones.
fn weight_of(field: Field) -> f32 {
    match field {
        Field::Constraints => 3.0,
        Field::Decisions => 2.8,
        Field::Goal => 2.0,
        _ => 2.2,
    }
}

/// Whether a sentence asks for something, unlike "you can read it if you need to".
pub(super) fn asks(sentence: &str) -> bool {
    static OFFERS: WordList = WordList::new("request.offers");
    let signal = Signal::of(sentence);
    let offers = || OFFERS.is_in(sentence);
    signal.question || (signal.marks.request || is_task(sentence)) && !offers()
}

/// Returns the field of a statement of the user. Its message may ask for something in another sentence.
fn field_of(fact: &RequiredFact, in_request: bool) -> Option<Field> {
    let signal = Signal::of(&fact.text);
    let marks = signal.marks;
    Some(match fact.kind {
        // "Migrate it to Go, keep the interface" is a request with a rule in it.
        FactKind::Constraint if is_task(&fact.text) && asks(&fact.text) => Field::Goal,
        FactKind::Constraint if signal.question && !signal.strict => Field::Goal,
        // "I did not use it" only describes, "it should be there, I think" only supposes.
        FactKind::Constraint
            if !marks.standing && (!signal.demand || marks.tentative && !signal.strict) =>
        {
            if asks(&fact.text) { Field::Goal } else { Field::CriticalContext }
        }
        FactKind::Statement | FactKind::Request if signal.put_off => Field::NextSteps,
        FactKind::Request if !in_request => Field::CriticalContext,
        // "The tests fail" asks for nothing itself.
        FactKind::Ask if !in_request && !signal.question => Field::CriticalContext,
        FactKind::Question if signal.question => Field::Goal,
        FactKind::Pinned | FactKind::Constraint => Field::Constraints,
        FactKind::Decision => Field::Decisions,
        FactKind::Ask | FactKind::Request => Field::Goal,
        FactKind::Statement | FactKind::Personal | FactKind::Question => Field::CriticalContext,
        _ => return None,
    })
}

/// Collects what the user wrote, in all rounds: the requests, rules, decisions and statements that still
/// hold, and the answers to the agent's questions.
pub(super) fn notes(job: &ExtractInput<'_>, turns: &[Turn]) -> Vec<Note> {
    let mut places: HashMap<&EntryId, i64> = HashMap::new();
    // Messages of earlier rounds come before all others, in their order.
    let own = job.facts.required.iter().filter(|fact| fact.by_user && fact.kind.is_passage());
    for fact in own.clone().filter(|fact| fact.kind != FactKind::Ask) {
        let order = i64::MIN / 4 + i64::from(fact.order);
        places.entry(&fact.entry).and_modify(|at| *at = order.min(*at)).or_insert(order);
    }
    places.extend(job.messages.iter().zip(0..).map(|(said, at)| (&said.id, at)));
    // The sentences of one message under one field.
    let mut by_message: BTreeMap<(i64, u8), (Field, Vec<&RequiredFact>)> = BTreeMap::new();
    let stated = own.clone().filter(|fact| fact.kind == FactKind::Statement);
    let stated: HashSet<(&EntryId, &str)> = stated.map(|fact| (&fact.entry, &*fact.text)).collect();
    let asks = |fact: &&RequiredFact| {
        let is_ask = fact.kind == FactKind::Ask && !stated.contains(&(&fact.entry, &*fact.text));
        is_ask || asks(&fact.text)
    };
    let asking: HashSet<&EntryId> = own.clone().filter(asks).map(|fact| &fact.entry).collect();
    for fact in own {
        let Some(field) = field_of(fact, asking.contains(&fact.entry)) else { continue };
        let at = places.get(&fact.entry).copied().unwrap_or(-1);
        by_message.entry((at, field as u8)).or_insert((field, Vec::new())).1.push(fact);
    }
    let count = by_message.len().max(1) as f32;
    let mut out: Vec<Note> = Vec::new();
    for (n, ((at, _), (field, mut facts))) in by_message.into_iter().enumerate() {
        let Some(entry) = facts.last().map(|fact| fact.entry.clone()) else { continue };
        facts.sort_by_key(|fact| (fact.order, fact.kind != FactKind::Ask));
        facts.dedup_by(|later, earlier| later.text == earlier.text);
        let text = joined(&facts);
        let mut note = Note::new(field, text, &entry, weight_of(field), 0);
        note.order = at;
        note.weight += 0.5 * (n as f32 / count);
        note.is_user = true;
        out.push(note);
    }
    for (n, turn) in turns.iter().enumerate() {
        let previous = n.checked_sub(1).and_then(|n| turns.get(n));
        if let Some(mut note) = agreement(job, turn, previous) {
            note.weight += weight_of(note.field);
            note.is_user = true;
            drop_answer(&mut out, &note);
            out.push(note);
        }
    }
    label_goals(&mut out);
    out
}

/// Drops the user's own line for an answer that is part of a decision: it is not repeated as a request.
pub(super) fn drop_answer(notes: &mut Vec<Note>, decision: &Note) {
    let answered = normal(&decision.text);
    notes.retain(|other| {
        !other.is_user
            || other.cites.last() != decision.cites.last()
            || !answered.contains(&normal(&other.text))
    });
}

/// Labels the latest request, the first one, and those in between; the newest comes first.
fn label_goals(notes: &mut [Note]) {
    let first = notes.iter().map(|note| note.order).min();
    let mut goals: Vec<&mut Note> =
        notes.iter_mut().filter(|note| note.field == Field::Goal).collect();
    goals.sort_by_key(|note| note.order);
    let count = goals.len();
    for (n, note) in goals.into_iter().enumerate() {
        (note.label, note.weight) = match n {
            n if n + 1 == count => (if count > 1 { LATEST } else { "" }, NEWEST),
            0 if Some(note.order) == first => (FIRST, note.weight + 0.8),
            _ => (EARLIER, note.weight),
        };
        note.order = -note.order;
    }
}

/// Joins the sentences of one message. A semicolon is put after a sentence that has no punctuation
/// at its end, such as a list item.
fn joined(facts: &[&RequiredFact]) -> String {
    let mut text = String::new();
    for fact in facts {
        if !text.is_empty() {
            let open =
                text.ends_with(|c: char| c.is_alphanumeric() || matches!(c, ')' | '`' | '"'));
            text.push_str(if open { "; " } else { " " });
        }
        text.push_str(&fact.text);
    }
    text
}
