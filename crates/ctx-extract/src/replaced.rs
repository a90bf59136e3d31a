//! Finds lines whose value a later line replaces.

use ctx_facts::Statement;

use super::note::Note;
use crate::Field;

/// The maximum number of lines that are compared, newest first.
const COMPARED: usize = 120;

/// Removes lines of the agent that give a thing a value which a later line replaces: "the pool holds
/// 20", "the pool now holds 50".
pub(super) fn drop_replaced(notes: &mut Vec<Note>) {
    let states = |note: &Note| {
        !note.is_user && matches!(note.field, Field::Decisions | Field::CriticalContext)
    };
    let mut newest: Vec<usize> = (0..notes.len()).filter(|&n| states(&notes[n])).collect();
    newest.sort_by_key(|&n| std::cmp::Reverse((notes[n].order, n)));
    newest.truncate(COMPARED);
    let read = newest.into_iter().map(|n| (n, Statement::of(&notes[n].text)));
    let read: Vec<(usize, Statement)> = read.filter(|(_, words)| words.has_value()).collect();
    let mut gone = vec![false; notes.len()];
    for (at, (n, old)) in read.iter().enumerate() {
        gone[*n] = read[..at]
            .iter()
            .any(|(later, new)| notes[*later].order > notes[*n].order && new.replaces(old));
    }
    let mut gone = gone.into_iter();
    notes.retain(|_| !gone.next().unwrap_or_default());
}
