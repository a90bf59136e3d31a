//! The text of a segment that is embedded.

use ctx_core::Chars;

use crate::Segment;
use crate::search::head;

/// The longest text given to a model: it would not read more, or refuse it.
pub const LONGEST: Chars = Chars(16 * 1_024);

/// Preceding turns are embedded with a segment while they have at most this many bytes together. A
/// model reads about the first 256 tokens, which must still include a short turn; a long turn is
/// clear without context.
const CONTEXT_BYTES: usize = 500;

/// Returns the text to embed for the last of `turns`: its day, up to `before` preceding turns of
/// its session if they are short, then the turn itself, each after its speaker. A turn is often
/// clear only with the turns before it.
#[must_use]
pub fn embedded_text(turns: &[Segment], before: u8) -> String {
    let Some(last) = turns.last() else { return String::new() };
    let mut room = CONTEXT_BYTES;
    let is_context = |turn: &&Segment| {
        let fits = turn.session_id == last.session_id && turn.content.len() <= room;
        room = room.saturating_sub(turn.content.len());
        fits
    };
    let earlier = turns.iter().rev().skip(1).take(usize::from(before)).take_while(is_context);
    let first = turns.len() - 1 - earlier.count();
    let mut text = String::new();
    for turn in &turns[first..] {
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

#[cfg(test)]
mod tests {
    use ctx_core::{Role, Timestamp};

    use super::*;
    use crate::{Metadata, SegmentId};

    fn turns(said: &[(&str, &str)]) -> Vec<Segment> {
        let turn = |(session, content): &(&str, &str)| Segment {
            id: SegmentId::of(session, &Role::User, content),
            agent_id: "main".into(),
            session_id: (*session).into(),
            timestamp: Timestamp(1_683_504_000_000),
            archived_at: None,
            role: Role::User,
            name: Some("Ann".into()),
            content: (*content).into(),
            tokens: 1,
            metadata: Metadata::default(),
            entry_id: None,
        };
        said.iter().map(turn).collect()
    }

    #[test]
    fn a_turn_is_embedded_with_its_day_and_the_turns_before_it() {
        let turns = turns(&[("s", "one"), ("s", "two"), ("s", "three")]);
        assert_eq!(embedded_text(&turns, 1), "8 May 2023 Ann: two Ann: three");
        assert_eq!(embedded_text(&turns[..1], 9), "8 May 2023 Ann: one");
        assert_eq!(embedded_text(&turns, 0), "8 May 2023 Ann: three");
        assert_eq!(embedded_text(&[], 2), "");
    }

    #[test]
    fn another_session_and_a_long_message_are_not_context() {
        let other = turns(&[("s", "one"), ("t", "two")]);
        assert_eq!(embedded_text(&other, 2), "8 May 2023 Ann: two");
        let long = "x".repeat(CONTEXT_BYTES + 1);
        let behind = turns(&[("s", "one"), ("s", &long), ("s", "three")]);
        assert_eq!(embedded_text(&behind, 2), "8 May 2023 Ann: three");
    }
}
