//! The user's focus.

use ctx_text::gist;

use super::ExtractInput;
use super::note::Note;

/// Raises the weight of notes that match the focus.
pub(super) fn apply(job: &ExtractInput<'_>, mut notes: Vec<Note>) -> Vec<Note> {
    let focus = gist(job.focus.unwrap_or_default());
    for note in notes.iter_mut().filter(|_| !focus.words.is_empty()) {
        let hits = focus.shared(&gist(&note.text));
        if hits > 0 {
            note.focused = true;
            note.weight += 0.25 + 0.35 * hits as f32 / focus.words.len() as f32;
        }
    }
    notes
}
