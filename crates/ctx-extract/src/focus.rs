//! The user's focus.

use std::collections::BTreeSet;

use super::ExtractInput;
use super::note::{Note, each_word};

/// Raises the weight of notes that match the focus.
pub(super) fn apply(job: &ExtractInput<'_>, mut notes: Vec<Note>) -> Vec<Note> {
    let mut focus = BTreeSet::new();
    each_word(job.focus.unwrap_or_default(), |word| focus.extend([word.to_owned()]));
    for note in notes.iter_mut().filter(|_| !focus.is_empty()) {
        let lower = note.text.to_lowercase();
        let hits = focus.iter().filter(|word| lower.contains(word.as_str())).count();
        if hits > 0 {
            note.focused = true;
            note.weight += 0.25 + 0.35 * hits as f32 / focus.len() as f32;
        }
    }
    notes
}
