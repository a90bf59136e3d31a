//! What of a segment is embedded.

use crate::Segment;
use crate::search::head;

/// The text to embed for the last of `turns`: its day, then up to `before` turns of its session that
/// precede it, then itself, each after its speaker. What is said in a conversation is often clear only
/// with what was said before it.
#[must_use]
pub fn embedded_text(turns: &[Segment], before: u8) -> String {
    let Some(last) = turns.last() else { return String::new() };
    let first = turns.len() - 1 - usize::from(before).min(turns.len() - 1);
    let mut text = String::new();
    for turn in turns[first..].iter().filter(|turn| turn.session_id == last.session_id) {
        let (day, speaker) = head(turn);
        if text.is_empty()
            && let Some(day) = day
        {
            text.push_str(&day);
        }
        for part in [if text.is_empty() { "" } else { " " }, speaker, ": ", &turn.content] {
            text.push_str(part);
        }
    }
    text
}
