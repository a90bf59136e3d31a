//! `NO_REPLY`: an answer that is not shown to the user.
//!
//! An answer that begins with the word is silent, regardless of the rest. From an answer that ends
//! with it, the word is removed. Both must be known before a piece of a stream is shown. So the
//! parser reads character by character and holds back only what may belong to the word: the word
//! itself, the white space and markup around it, the punctuation after it, and punctuation before
//! the first word. Within markup the word must be alone on its line: otherwise the text is about
//! the word.

/// The word.
pub(crate) const NO_REPLY: &str = "NO_REPLY";

/// Reads an answer in pieces, and outputs the text that is certain to be shown.
#[derive(Debug, Default)]
pub(crate) struct NoReply {
    state: ReadingState,
    /// Punctuation before the first word.
    lead: String,
    /// White space and text that may precede the word. Shown only if something follows.
    space: String,
    /// A prefix of the word, or all of it.
    word: String,
    /// Characters after the complete word.
    after: String,
    shown: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum ReadingState {
    /// Only punctuation and white space so far.
    #[default]
    Before,
    /// In what may be the first word.
    First,
    /// The first word was `NO_REPLY`.
    Silent,
    /// The beginning is decided.
    Body,
    /// The beginning is decided, and this is another word.
    Word,
}

impl NoReply {
    /// Reads a piece, and appends to `out` what to show.
    pub(crate) fn push(&mut self, piece: &str, out: &mut String) {
        for c in piece.chars() {
            self.take(c, out);
        }
        self.shown |= !out.is_empty();
    }

    /// Ends the answer. Returns whether any of it is shown.
    pub(crate) fn end(mut self, out: &mut String) -> bool {
        match self.state {
            ReadingState::Silent => return false,
            ReadingState::First if self.word == NO_REPLY => return false,
            ReadingState::Before | ReadingState::First => {
                self.settle(out);
            }
            ReadingState::Body | ReadingState::Word => {}
        }
        if self.word.is_empty() {
            out.push_str(self.space.trim_end());
        } else if self.word != NO_REPLY {
            self.release(out);
        }
        self.shown || !out.is_empty()
    }

    fn take(&mut self, c: char, out: &mut String) {
        let in_word = c.is_alphanumeric() || c == '_';
        match self.state {
            ReadingState::Before if in_word => {
                self.state = ReadingState::First;
                self.take(c, out);
            }
            ReadingState::Before => {
                if !(c.is_whitespace() && self.lead.is_empty()) {
                    self.lead.push(c);
                }
            }
            ReadingState::First if in_word => {
                self.word.push(c);
                if !NO_REPLY.starts_with(&self.word) {
                    self.settle(out);
                }
            }
            ReadingState::First if self.word == NO_REPLY => {
                self.state = ReadingState::Silent;
                self.take(c, out);
            }
            ReadingState::First => {
                self.settle(out);
                self.take(c, out);
            }
            ReadingState::Silent if self.lead.is_empty() => {}
            ReadingState::Silent if c == '\n' => self.lead.clear(),
            ReadingState::Silent if !in_word => self.after.push(c),
            ReadingState::Silent => {
                self.settle(out);
                self.take(c, out);
            }
            ReadingState::Body => self.body(c, in_word, out),
            ReadingState::Word if in_word => out.push(c),
            ReadingState::Word => {
                self.state = ReadingState::Body;
                self.body(c, in_word, out);
            }
        }
    }

    fn body(&mut self, c: char, in_word: bool, out: &mut String) {
        let is_behind = c.is_whitespace() || closes(c);
        if !self.after.is_empty() && !is_behind {
            self.release(out);
        }
        if in_word {
            self.word.push(c);
            if !NO_REPLY.starts_with(&self.word) {
                self.release(out);
                self.state = ReadingState::Word;
            }
        } else if self.word == NO_REPLY && is_behind {
            self.after.push(c);
        } else {
            if !self.word.is_empty() {
                self.release(out);
            }
            match c.is_whitespace() || opens(c) {
                true => self.space.push(c),
                false => {
                    self.release(out);
                    out.push(c);
                }
            }
        }
    }

    /// Shows the held-back text: it is not the word.
    fn release(&mut self, out: &mut String) {
        for held in [&mut self.space, &mut self.word, &mut self.after] {
            out.push_str(held);
            held.clear();
        }
    }

    /// Marks the beginning as decided: held-back text is handled like all other text.
    fn settle(&mut self, out: &mut String) {
        self.state = ReadingState::Body;
        let held = [&mut self.lead, &mut self.word, &mut self.after].map(std::mem::take);
        for c in held.iter().flat_map(|held| held.chars()) {
            self.take(c, out);
        }
    }
}

/// Whether a character may directly precede the word: markup, a quote, an opening bracket.
fn opens(c: char) -> bool {
    matches!(c, '*' | '`' | '~' | '"' | '\'' | '(' | '[' | '“' | '‘')
}

/// Whether a character may directly follow the word. It is removed with it.
fn closes(c: char) -> bool {
    matches!(c, '*' | '`' | '~' | '"' | '\'' | ')' | ']' | '”' | '’')
        || matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '…')
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
