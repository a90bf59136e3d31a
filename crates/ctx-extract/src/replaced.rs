//! Finds lines whose value a later line replaces.

use std::collections::HashSet;

use ctx_facts::Statement;

use super::note::{Note, drop_all};
use crate::Field;

/// The maximum number of lines that are compared, those of highest weight: the others are not chosen.
const COMPARED: usize = 80;

/// Removes lines of the agent that give a thing a value which a later line replaces: "the pool holds
/// 20", "the pool now holds 50". The notes are ordered by weight.
pub(super) fn drop_replaced(notes: &mut Vec<Note>) {
    let states = |note: &Note| {
        !note.is_user && matches!(note.field, Field::Decisions | Field::CriticalContext)
    };
    let compared = (0..notes.len()).filter(|&n| states(&notes[n])).take(COMPARED);
    let mut newest: Vec<usize> = compared.collect();
    newest.sort_by_key(|&n| std::cmp::Reverse((notes[n].order, notes[n].place)));
    let read = newest.into_iter().map(|n| (n, Statement::of(&notes[n].text)));
    let read: Vec<(usize, Statement)> = read.filter(|(_, words)| words.has_value()).collect();
    let gone = read.iter().enumerate().filter(|(at, (n, old))| {
        let is_later = |later: usize| notes[later].order > notes[*n].order;
        read[..*at].iter().any(|(later, new)| is_later(*later) && new.replaces(old))
    });
    let gone: HashSet<usize> = gone.map(|(_, (n, _))| *n).collect();
    drop_all(notes, &gone);
}
