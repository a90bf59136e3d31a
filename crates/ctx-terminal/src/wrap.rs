//! Wraps text between words at the terminal's width. A word is never broken, so that commands can
//! be copied, and a number stays with its per cent sign.

use std::mem::take;

use anstream::adapter::strip_str;

/// Begins and ends a block of code, whose lines are not wrapped so that they can be copied.
const FENCE: &str = "```";

/// From here on, characters are two columns wide, and a line may end after each.
const WIDE: char = '\u{2e80}';

/// The state of wrapping a text that arrives in pieces, with the last word, which may be
/// incomplete.
#[derive(Default)]
pub struct Wrap {
    /// The width; `None` without a terminal.
    columns: Option<usize>,
    at: usize,
    /// Number of columns used at the beginning of each continuation line.
    indent: usize,
    /// Whether the line contains a word.
    has_word: bool,
    /// The blanks before the word, the word, and the blanks after it.
    blanks: String,
    word: String,
    after: String,
    in_code: bool,
}

/// Wraps a text to at most `columns`; without columns nothing is wrapped. `taken` is the number of
/// columns already used in the first line and in each following line.
pub fn wrapped(text: &str, taken: [usize; 2], columns: Option<usize>) -> Vec<String> {
    let [at, indent] = taken;
    let mut wrap = Wrap { columns, at, indent, ..Wrap::default() };
    let text = wrap.push(text) + &wrap.end();
    text.split('\n').map(str::to_owned).collect()
}

impl Wrap {
    /// Creates the state for a terminal of this width; without a width nothing is wrapped.
    pub fn new(columns: Option<usize>) -> Self {
        Self { columns, ..Self::default() }
    }

    /// Returns what can be printed after another piece.
    pub fn push(&mut self, piece: &str) -> String {
        if self.columns.is_none() {
            return piece.to_owned();
        }
        let mut out = String::with_capacity(piece.len());
        for c in piece.chars() {
            match c {
                '\n' => {
                    self.in_code ^= !self.has_word && self.word.starts_with(FENCE);
                    out.push_str(&self.end());
                    out.push('\n');
                    (self.at, self.has_word) = (self.indent, false);
                }
                ' ' => self.after.push(c),
                '%' if self.after == " " => {
                    self.after.clear();
                    self.word.push_str(" %");
                }
                c => {
                    if !self.after.is_empty() || c >= WIDE {
                        self.put(&mut out);
                        self.blanks = take(&mut self.after);
                    }
                    self.word.push(c);
                }
            }
        }
        out
    }

    /// Returns the remaining text. Later text continues in the same line.
    pub fn end(&mut self) -> String {
        let mut out = String::new();
        self.put(&mut out);
        out + &take(&mut self.after)
    }

    /// Appends the word to `out`, in this line or at the beginning of the next.
    fn put(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let (blanks, word) = (take(&mut self.blanks), take(&mut self.word));
        let shown = strip_str(&word).to_string();
        let wide: usize = shown.chars().map(|c| 1 + usize::from(c >= WIDE)).sum();
        let is_over = self.columns.is_some_and(|columns| self.at + blanks.len() + wide > columns);
        if is_over && self.has_word && !self.in_code {
            out.push('\n');
            self.at = self.indent;
        } else {
            out.push_str(&blanks);
            self.at += blanks.len();
        }
        out.push_str(&word);
        self.at += wide;
        self.has_word = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_in_pieces_of_any_size() {
        let text = "the quick brown\nfox  jumps, and\n\n```\nlet x = 1 + 2 + 3 + 4;\n```\nover-the-lazy-dog it";
        let expected = "the quick\nbrown\nfox  jumps,\nand\n\n```\nlet x = 1 + 2 + 3 + 4;\n```\n\
                       over-the-lazy-dog\nit";
        for size in 1..text.len() {
            let mut wrap = Wrap::new(Some(12));
            let chars: Vec<char> = text.chars().collect();
            let pieces = chars.chunks(size).map(String::from_iter);
            let mut out: String = pieces.map(|piece| wrap.push(&piece)).collect();
            out.push_str(&wrap.end());
            assert_eq!(out, expected, "{size}");
        }
        assert_eq!(wrapped(text, [0; 2], None).join("\n"), text);
        assert_eq!(wrapped("路径路径 a b", [0; 2], Some(4)), ["路径", "路径", "a b"]);
    }

    #[test]
    fn notes_are_broken_between_words_at_the_terminals_width() {
        for (text, columns, lines) in [
            ("one two three", None, "one two three"),
            ("one two three", Some(80), "one two three"),
            ("one two three", Some(13), "one two\n  three"),
            ("one two three", Some(1), "one\n  two\n  three"),
            ("路径 two", Some(11), "路径\n  two"),
            ("", Some(1), ""),
            ("all 95 % of", Some(13), "all\n  95 % of"),
            ("\u{1b}[1mone\u{1b}[0m two", Some(13), "\u{1b}[1mone\u{1b}[0m two"),
        ] {
            assert_eq!(wrapped(text, [6, 2], columns).join("\n  "), lines, "{columns:?}");
        }
    }
}
