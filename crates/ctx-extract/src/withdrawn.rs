//! Finds demands and values that were superseded later.

use std::collections::HashSet;

use super::note::{EARLIER, FIRST, Note};
use super::turns::Turn;
use crate::Field;
use ctx_facts::{Words, outdates, takes_back};
use ctx_text::{marks, sentences};

/// The maximum number of withdrawals and of lines that are compared, newest first.
const COMPARED: usize = 200;

/// Merges a new value into one line with the old one, as "Now 9090" is unclear without the line
/// about port 8080. Returns the lines that were merged into others.
fn renewed(notes: &mut [Note], read: &[(usize, Words)]) -> HashSet<usize> {
    let mut gone = HashSet::new();
    for (n, new) in read.iter().filter(|(_, words)| words.only_renews()) {
        if gone.contains(n) {
            continue;
        }
        let at = notes[*n].order;
        // The newest comes first.
        let mut before = read.iter().filter(|(m, _)| notes[*m].order < at && notes[*m].order >= 0);
        let old = before.find(|(m, old)| !gone.contains(m) && new.is_of_kind(old));
        let Some(&(old, _)) = old.filter(|(m, _)| at - notes[*m].order <= NEAR) else { continue };
        let text = format!("{} → now: {}", notes[old].text, notes[*n].text);
        let mut cites = notes[old].cites.clone();
        cites.extend(
            notes[*n].cites.iter().filter(|cite| !notes[old].cites.contains(cite)).cloned(),
        );
        // The same words may have been noted twice, for different reasons.
        let (old_text, new_text) = (notes[old].text.clone(), notes[*n].text.clone());
        let is_same = |m: &usize| {
            *m != *n
                && (notes[*m].order == at && notes[*m].text == new_text
                    || notes[*m].order == notes[old].order && notes[*m].text == old_text)
        };
        gone.extend(read.iter().map(|(m, _)| *m).filter(is_same));
        (notes[*n].text, notes[*n].cites) = (text, cites);
    }
    gone
}

/// The maximum distance, in messages, at which a value can be replaced without naming it.
const NEAR: i64 = 12;

/// Removes what the user withdrew later, and what has another value now.
pub(super) fn drop_withdrawn(turns: &[Turn], notes: &mut Vec<Note>) {
    let mut later: Vec<(i64, Words)> = Vec::new();
    for turn in turns.iter().rev().filter(|turn| !turn.is_assent) {
        let at = turn.asked_at.and_then(|at| i64::try_from(at).ok());
        let Some(at) = at.filter(|_| later.len() < COMPARED) else { continue };
        // A specification withdraws nothing.
        let all = turn.ask.lines().flat_map(sentences).take(40);
        let found = all.filter(|sentence| marks(sentence).revokes);
        later.extend(found.map(|sentence| (at, Words::of(sentence))));
    }
    let place = |note: &Note| if note.field == Field::Goal { -note.order } else { note.order };
    let mut binding: Vec<usize> = (0..notes.len())
        .filter(|&n| {
            matches!(notes[n].field, Field::Constraints | Field::Decisions | Field::CriticalContext)
        })
        .collect();
    binding.sort_by_key(|&n| std::cmp::Reverse((notes[n].order, n)));
    binding.truncate(COMPARED);
    let read: Vec<(usize, Words)> =
        binding.iter().map(|&n| (n, Words::of(&notes[n].text))).collect();
    let mut gone: HashSet<usize> = renewed(notes, &read);
    for (n, old) in &read {
        let (order, field) = (notes[*n].order, notes[*n].field);
        let taken_back = field == Field::Constraints
            && later.iter().any(|(at, new)| *at > order && takes_back(new, old));
        let newer = || read.iter().filter(|(m, _)| notes[*m].order > order);
        if taken_back || (old.has_value() && newer().any(|(_, new)| outdates(new, old))) {
            gone.insert(*n);
        }
    }
    // A request repeats its demand in the same words.
    let withdrawn: Vec<(Vec<ctx_core::EntryId>, String)> = gone
        .iter()
        .filter(|&&n| notes[n].field == Field::Constraints)
        .map(|&n| (notes[n].cites.clone(), notes[n].text.clone()))
        .collect();
    for note in notes.iter_mut().filter(|note| note.field == Field::Goal) {
        for (_, text) in
            withdrawn.iter().filter(|(cites, _)| note.cites.iter().any(|c| cites.contains(c)))
        {
            note.text = note.text.replace(text.as_str(), "").trim().to_owned();
        }
    }
    for note in notes.iter_mut().filter(|note| matches!(note.label, FIRST | EARLIER)) {
        let at = place(note);
        let holds = |sentence: &&str| {
            let old = Words::of(sentence);
            !later.iter().any(|(later, new)| *later > at && takes_back(new, &old))
        };
        let all = sentences(&note.text);
        let kept: Vec<&str> = all.iter().copied().filter(holds).take(40).collect();
        if kept.len() < all.len().min(40) {
            note.text = kept.join(" ");
        }
    }
    for (n, note) in notes.iter().enumerate() {
        let old_ask = note.field == Field::Goal && matches!(note.label, FIRST | EARLIER);
        if !old_ask || gone.contains(&n) || note.text.len() > 200 {
            continue;
        }
        let old = Words::of(&note.text);
        let at = place(note);
        let outdated = old.has_value()
            && notes
                .iter()
                .filter(|other| place(other) > at && other.field == Field::Goal)
                .take(COMPARED)
                .any(|other| outdates(&Words::of(&other.text), &old));
        if outdated {
            gone.insert(n);
        }
    }
    let mut n = 0;
    notes.retain(|note| {
        n += 1;
        !gone.contains(&(n - 1)) && !note.text.is_empty()
    });
}
