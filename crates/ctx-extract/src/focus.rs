//! The user's focus.

use super::ExtractInput;
use super::note::{Note, shared, words};

/// Raises the weight of notes that match the focus.
pub(super) fn apply(job: &ExtractInput<'_>, mut notes: Vec<Note>) -> Vec<Note> {
    let focus = words(job.focus.unwrap_or_default());
    for note in notes.iter_mut().filter(|_| !focus.is_empty()) {
        let hits = shared(&focus, &words(&note.text));
        if hits > 0 {
            note.focused = true;
            note.weight += 0.25 + 0.35 * hits as f32 / focus.len() as f32;
        }
    }
    notes
}
