//! `NO_REPLY`: an answer that is not shown to the user.
//!
//! An answer that begins with the word is silent, regardless of the rest. From an answer that ends
//! with it, the word is removed, with the white space and markup around it. Both must be known before
//! a piece of a stream is shown, so what may belong to the word is held back. Within markup the word
//! must be alone on its line: otherwise the text is about the word.

use std::sync::LazyLock;

use regex::Regex;

/// The word.
pub(crate) const NO_REPLY: &str = "NO_REPLY";

/// The word, or its beginning.
const PART: &str = "(?:N|NO|NO_|NO_R|NO_RE|NO_REP|NO_REPL|NO_REPLY)";

/// A beginning that may still become silent.
static UNDECIDED: LazyLock<Regex> =
    LazyLock::new(|| compiled(&format!(r"^(?:\W*{PART}?|\W+NO_REPLY[^\w\n]*)$")));
/// A beginning that is silent, whatever follows; and a complete answer that is.
static SILENT: LazyLock<Regex> =
    LazyLock::new(|| compiled(r"^(?:NO_REPLY\W|\W+NO_REPLY[^\w\n]*\n)"));
static ALL_SILENT: LazyLock<Regex> = LazyLock::new(|| compiled(r"^\W*NO_REPLY[^\w\n]*$"));
/// An end that may belong to the word: what may directly precede it, and, with it, what may follow.
static HELD: LazyLock<Regex> = LazyLock::new(|| {
    let opens = r#"[\s*`~"'(\[“‘]+"#;
    let closes = r#"[\s*`~"')\]”’.,;:!?…]*"#;
    compiled(&format!(r"(?:{opens}(?:{PART}|NO_REPLY{closes})?|\b(?:{PART}|NO_REPLY{closes}))$"))
});

fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("a test uses all patterns of this file")
}

/// Reads an answer in pieces, and outputs the text that is certain to be shown.
#[derive(Debug, Default)]
pub(crate) struct NoReply {
    text: String,
    /// The length of the text that is decided.
    decided: usize,
    /// Whether the beginning is decided.
    has_begun: bool,
    is_silent: bool,
    shown: bool,
}

impl NoReply {
    /// Reads a piece, and appends to `out` what to show.
    pub(crate) fn push(&mut self, piece: &str, out: &mut String) {
        self.text.push_str(piece);
        let start = self.text.trim_start();
        if !self.has_begun {
            self.decided = self.text.len() - start.len();
            self.is_silent |= SILENT.is_match(start);
            self.has_begun = !self.is_silent && !UNDECIDED.is_match(start);
        }
        if self.has_begun {
            self.show(out);
        }
        self.shown |= !out.is_empty();
    }

    /// Ends the answer. Returns whether any of it is shown.
    pub(crate) fn end(mut self, out: &mut String) -> bool {
        if self.is_silent || !self.has_begun && ALL_SILENT.is_match(&self.text) {
            return false;
        }
        self.show(out);
        let held = &self.text[self.decided..];
        if !held.contains(NO_REPLY) {
            out.push_str(held.trim_end());
        }
        self.shown || !out.is_empty()
    }

    /// Shows the text up to an end that may belong to the word.
    fn show(&mut self, out: &mut String) {
        let held = HELD.find_at(&self.text, self.decided);
        let end = held.map_or(self.text.len(), |held| held.start());
        out.push_str(&self.text[self.decided..end]);
        self.decided = end;
    }
}

/// Returns the shown part of a complete answer; `None` if it is silent.
pub(crate) fn shown(text: &str) -> Option<String> {
    let (mut reading, mut out) = (NoReply::default(), String::with_capacity(text.len()));
    reading.push(text, &mut out);
    let any = reading.end(&mut out);
    any.then_some(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn no_reply_silences_at_the_beginning_and_is_removed_at_the_end() {
        for (text, expected) in [
            ("NO_REPLY", None),
            ("  NO_REPLY.\n", None),
            ("**NO_REPLY**", None),
            ("", None),
            ("   ", None),
            ("hello", Some("hello")),
            ("  hello \n there  ", Some("hello \n there")),
            ("NO_REPLY\n\nI saved it.", None),
            ("I saved it. NO_REPLY", Some("I saved it.")),
            ("I saved it.\nNO_REPLY \n", Some("I saved it.")),
            ("NO_REPLYING is no word", Some("NO_REPLYING is no word")),
            ("Say NO_REPLY to stop it", Some("Say NO_REPLY to stop it")),
            ("SNO_REPLY", Some("SNO_REPLY")),
            ("No reply", Some("No reply")),
            ("N", Some("N")),
            ("it is N", Some("it is N")),
            ("NO_REPLY NO_REPLY", None),
            ("-", Some("-")),
            ("**NO_REPLY** is a word", Some("**NO_REPLY** is a word")),
            ("Grüße NO_REPLYü", Some("Grüße NO_REPLYü")),
            ("I saved it. **NO_REPLY**", Some("I saved it.")),
            ("I saved it.\n\n`NO_REPLY`.\n", Some("I saved it.")),
            ("I saved it (NO_REPLY).", Some("I saved it")),
            ("NO_REPLY. I saved it.", None),
            ("NO_REPLY: I saved it.", None),
            ("NO_REPLY secret background note", None),
            ("**NO_REPLY**\n\nI saved it.", None),
            ("**NO_REPLY** \n\nI saved it.", None),
            ("it is **bold**", Some("it is **bold**")),
            ("it is ** ", Some("it is **")),
            ("say **NO_REPLY** to stop", Some("say **NO_REPLY** to stop")),
            ("he said: \"NO_REPLY\"!", Some("he said:")),
        ] {
            assert_eq!(shown(text).as_deref(), expected, "{text:?}");
        }
    }

    #[test]
    fn nothing_is_shown_before_the_beginning_is_decided() {
        let (mut reading, mut out) = (NoReply::default(), String::new());
        for piece in ["N", "O_", "REP", "LY"] {
            reading.push(piece, &mut out);
            assert_eq!(out, "");
        }
        reading.push("ING", &mut out);
        assert_eq!(out, "NO_REPLYING");
    }

    #[test]
    fn every_split_of_the_word_shows_the_same() {
        for text in ["NO_REPLY", "a NO_REPLY b", "NO_REPLY a", "a NO_REPLY", "NO_REP"] {
            for at in 0..=text.len() {
                let (mut reading, mut out) = (NoReply::default(), String::new());
                reading.push(&text[..at], &mut out);
                reading.push(&text[at..], &mut out);
                let any = reading.end(&mut out);
                assert_eq!(any.then_some(out), shown(text), "{text:?} cut at {at}");
            }
        }
    }

    proptest! {
        #[test]
        fn every_split_of_a_stream_shows_the_same(
            pieces in prop::collection::vec("(NO_REPLY|NO_|REPLY|[a-zN_ .*\n]{0,3})", 0..12),
            cuts in prop::collection::vec(0usize..40, 0..12),
        ) {
            let text: String = pieces.concat();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.push(text.len());
            cuts.sort_unstable();
            let (mut reading, mut out, mut from) = (NoReply::default(), String::new(), 0);
            for cut in cuts {
                let before = out.clone();
                reading.push(&text[from..cut], &mut out);
                prop_assert!(out.starts_with(&before), "what is shown is not taken back");
                from = cut;
            }
            let any = reading.end(&mut out);
            prop_assert_eq!(any.then_some(out.clone()), shown(&text));
            prop_assert!(text.contains(&*out) || text.contains(NO_REPLY));
            let words = |text: &str| {
                let text = text.replace(NO_REPLY, " ");
                text.chars().filter(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
            };
            prop_assert!(out.is_empty() || words(&out) == words(&text), "nothing else is lost");
            prop_assert!(text.contains(NO_REPLY) || out == text.trim() || out.is_empty());
        }
    }
}
