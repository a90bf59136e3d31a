//! Splits long messages into pieces.

/// The maximum length of a piece in characters. On long messages of assistants, pieces of 800 find
/// 8 points more of the evidence than whole messages do (docs/memory.md).
const PIECE_CHARS: usize = 800;

/// Splits `text` into pieces of at most `PIECE_CHARS` characters: at the end of a line if the
/// second half of a piece has one, else between words, else anywhere. An empty text is one empty
/// piece.
pub fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest.take()?;
        let at = cut(text);
        let (piece, after) = text.split_at(at);
        rest = Some(after).filter(|after| !after.is_empty());
        Some(piece)
    })
}

/// Returns the end of the first piece of `text`.
fn cut(text: &str) -> usize {
    let Some((end, _)) = text.char_indices().nth(PIECE_CHARS) else { return text.len() };
    let half = text.char_indices().nth(PIECE_CHARS / 2).map_or(0, |(at, _)| at);
    let (first, second) = (&text[..half], &text[half..end]);
    let after = |found: Option<(usize, char)>| found.map(|(at, c)| at + c.len_utf8());
    let line = after(second.char_indices().rev().find(|(_, c)| *c == '\n'));
    let word = || after(second.char_indices().rev().find(|(_, c)| c.is_whitespace()));
    line.or_else(word).map_or(end, |at| first.len() + at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_short_and_make_up_the_text() {
        let lines = "one two three\n".repeat(300);
        let words = "word ".repeat(900);
        let solid = "图".repeat(2_000);
        for text in ["", "short", &lines, &words, &solid] {
            let all: Vec<&str> = pieces(text).collect();
            assert_eq!(all.concat(), text);
            assert!(all.iter().all(|piece| piece.chars().count() <= PIECE_CHARS));
        }
        assert_eq!(pieces("").count(), 1);
        assert_eq!(pieces(&solid).count(), 3);
    }

    #[test]
    fn a_piece_ends_with_a_line_or_with_a_word() {
        let lines = "one two three\n".repeat(300);
        assert!(pieces(&lines).all(|piece| piece.ends_with('\n')));
        let words = "word ".repeat(900);
        assert!(pieces(&words).all(|piece| piece.ends_with(' ')));
    }
}
