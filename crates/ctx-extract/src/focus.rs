//! The user's focus.

use std::collections::HashSet;

use super::ExtractInput;
use super::note::Note;
use ctx_text::{WordList, is_wide};

/// Words of grammar, which no note has to match.
static GRAMMAR: WordList = WordList::new("grammar");

/// Raises the weight of notes that match the focus.
pub(super) fn apply(job: &ExtractInput<'_>, mut notes: Vec<Note>) -> Vec<Note> {
    let focus = job.focus.map(words).unwrap_or_default();
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

/// Returns the Latin words of at least three letters, and the pairs of CJK characters.
fn words(focus: &str) -> HashSet<String> {
    let mut out = HashSet::new();
    for word in focus.to_lowercase().split(|c: char| !(c.is_alphanumeric() || c == '_')) {
        let wide: Vec<char> = word.chars().filter(|&c| is_wide(c)).collect();
        out.extend(wide.windows(2).map(String::from_iter));
        if wide.is_empty() && word.len() >= 3 && !GRAMMAR.contains(word) {
            out.insert(word.to_owned());
        }
    }
    out
}
