//! The user's focus.

use std::collections::HashSet;

use super::ExtractInput;
use super::note::{Note, words};

/// Raises the weight of notes that match the focus.
pub(super) fn apply(job: &ExtractInput<'_>, mut notes: Vec<Note>) -> Vec<Note> {
    let focus: HashSet<String> = job.focus.map(words).unwrap_or_default();
    for note in &mut notes {
        let lower = note.text.to_lowercase();
        let hits = focus.iter().filter(|word| lower.contains(word.as_str())).count();
        if hits > 0 {
            note.focused = true;
            note.weight += 0.25 + 0.35 * hits as f32 / focus.len() as f32;
        }
    }
    notes
}
