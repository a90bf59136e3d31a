//! Text that comes in pieces, broken between words at the terminal's width.

use std::mem::take;

/// A line of code is not broken: it could not be copied.
const FENCE: &str = "```";

/// From here on characters take two columns, and a line may end after each.
const WIDE: char = '\u{2e80}';

/// Where the text is, and what of it is not printed yet: a word whose end has not come.
pub(super) struct Wrap {
    /// The width; none where there is no terminal.
    columns: Option<usize>,
    at: usize,
    /// Blanks before the word.
    blanks: String,
    word: String,
    in_code: bool,
}

impl Wrap {
    pub(super) fn new(columns: Option<usize>) -> Self {
        Self { columns, at: 0, blanks: String::new(), word: String::new(), in_code: false }
    }

    /// A whole text.
    pub(super) fn whole(columns: Option<usize>, text: &str) -> String {
        let mut wrap = Self::new(columns);
        wrap.push(text) + &wrap.end()
    }

    /// What can be printed now that another piece is there.
    pub(super) fn push(&mut self, piece: &str) -> String {
        let mut out = String::with_capacity(piece.len());
        if self.columns.is_none() {
            out.push_str(piece);
            return out;
        }
        for c in piece.chars() {
            match c {
                '\n' => {
                    let begins = self.at == 0;
                    if begins && self.word.starts_with(FENCE) {
                        self.in_code = !self.in_code;
                    }
                    out.push_str(&self.end());
                    out.push('\n');
                    self.at = 0;
                }
                ' ' => {
                    self.put(&mut out);
                    self.blanks.push(c);
                }
                c if c >= WIDE => {
                    self.put(&mut out);
                    self.word.push(c);
                    self.put(&mut out);
                }
                c => self.word.push(c),
            }
        }
        out
    }

    /// The rest. What follows goes on in the same line.
    pub(super) fn end(&mut self) -> String {
        let mut out = String::new();
        self.put(&mut out);
        out + &take(&mut self.blanks)
    }

    /// Prints the word, in this line or at the beginning of the next.
    fn put(&mut self, out: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let (blanks, word) = (take(&mut self.blanks), take(&mut self.word));
        let wide = blanks.len() + word.chars().map(|c| 1 + usize::from(c >= WIDE)).sum::<usize>();
        let is_over = self.columns.is_some_and(|columns| self.at + wide > columns);
        if is_over && self.at > 0 && !self.in_code {
            out.push('\n');
            self.at = wide - blanks.len();
        } else {
            out.push_str(&blanks);
            self.at += wide;
        }
        out.push_str(&word);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_however_the_text_comes() {
        let text = "the quick brown\nfox  jumps, and\n\n```\nlet x = 1 + 2 + 3 + 4;\n```\nover-the-lazy-dog it";
        let wrapped = "the quick\nbrown\nfox  jumps,\nand\n\n```\nlet x = 1 + 2 + 3 + 4;\n```\n\
                       over-the-lazy-dog\nit";
        for size in 1..text.len() {
            let mut wrap = Wrap::new(Some(12));
            let chars: Vec<char> = text.chars().collect();
            let pieces = chars.chunks(size).map(String::from_iter);
            let mut out: String = pieces.map(|piece| wrap.push(&piece)).collect();
            out.push_str(&wrap.end());
            assert_eq!(out, wrapped, "{size}");
        }
        assert_eq!(Wrap::whole(None, text), text);
        assert_eq!(Wrap::whole(Some(4), "路径路径 a b"), "路径\n路径\na b");
    }
}
