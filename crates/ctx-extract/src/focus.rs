//! The user's focus.

use std::collections::HashSet;

use super::ExtractInput;
use super::note::{Note, words};

/// Raises the weight of notes that match the focus, and of those that contain facts.
pub(super) fn apply(job: &ExtractInput<'_>, mut notes: Vec<Note>) -> Vec<Note> {
    let facts = facts_by_entry(job);
    let focus: HashSet<String> = job.focus.map(words).unwrap_or_default();
    for note in &mut notes {
        let held = note.cites.iter().filter_map(|id| facts.get(&**id)).flatten();
        let held = held.take(40).filter(|fact| note.text.contains(**fact)).count();
        note.weight += 0.03 * held.min(5) as f32;
        if focus.is_empty() {
            continue;
        }
        let lower = note.text.to_lowercase();
        let hits = focus.iter().filter(|word| lower.contains(word.as_str())).count();
        if hits > 0 {
            note.focused = true;
            note.weight += 0.25 + 0.35 * hits as f32 / focus.len() as f32;
        }
    }
    notes
}

/// Returns identifiers and numbers by the entry that contains them.
fn facts_by_entry<'a>(job: &ExtractInput<'a>) -> std::collections::HashMap<&'a str, Vec<&'a str>> {
    let mut out: std::collections::HashMap<&str, Vec<&str>> = std::collections::HashMap::new();
    for fact in job.facts.required.iter().filter(|fact| !fact.kind.is_passage()) {
        out.entry(&fact.entry).or_default().push(&fact.text);
    }
    out
}
