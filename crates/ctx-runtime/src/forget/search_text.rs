//! Finds texts that were derived from erased messages.

use std::borrow::Cow;
use std::collections::HashSet;

use ctx_text::{TermKind, each_term, without_case};

/// Minimum word length: shorter words do not show where a line comes from.
const SHORTEST: usize = 3;

/// Maximum nesting of JSON within JSON strings that is searched.
const NESTED: usize = 4;

/// Maximum number of bytes of one escaped byte in nested strings.
const ESCAPED: usize = 6 + NESTED * 2;

/// Maximum number of blanks within a match, in total.
const BLANKS: usize = 4 << 10;

/// A search text; case and line breaks are ignored.
#[derive(Clone, Debug)]
pub(super) struct SearchText(String);

impl SearchText {
    pub(super) fn new(text: &str) -> Self {
        Self(without_case(text))
    }

    pub(super) fn is_in(&self, text: &str) -> bool {
        !self.0.is_empty() && without_case(text).contains(&self.0)
    }

    /// Whether a file contains the text, plain or JSON-escaped, also in nested strings.
    pub(super) fn is_in_file(&self, text: &str) -> bool {
        if self.is_in(text) {
            return true;
        }
        let mut plain = Cow::Borrowed(text);
        for _ in 0..NESTED {
            if !plain.contains('\\') {
                return false;
            }
            plain = Cow::Owned(unescaped(&plain));
            if self.is_in(&plain) {
                return true;
            }
        }
        false
    }

    /// Maximum length of a match in bytes, with every byte escaped.
    pub(super) fn longest(&self) -> usize {
        self.0.len().saturating_mul(ESCAPED) + BLANKS
    }
}

/// Returns a text with all JSON escapes decoded. Invalid escapes are kept.
pub(super) fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(kind) = rest.chars().next() else {
            out.push('\\');
            break;
        };
        let plain = match kind {
            '"' | '\\' | '/' => Some((kind, 1)),
            'n' => Some(('\n', 1)),
            't' => Some(('\t', 1)),
            'r' => Some(('\r', 1)),
            'u' => decode_unicode_escape(rest),
            _ => None,
        };
        match plain {
            Some((plain, length)) => {
                out.push(plain);
                rest = &rest[length..];
            }
            None => out.push('\\'),
        }
    }
    out.push_str(rest);
    out
}

/// Decodes `uXXXX` or `uXXXX\uXXXX`. Returns the character and the number of bytes read.
fn decode_unicode_escape(text: &str) -> Option<(char, usize)> {
    let unit = |at: usize| u16::from_str_radix(text.get(at..at + 4)?, 16).ok();
    let first = unit(1)?;
    if let Some(plain) = char::from_u32(u32::from(first)) {
        return Some((plain, 5));
    }
    let second = unit(7).filter(|_| text.get(5..7) == Some("\\u"))?;
    let plain = char::decode_utf16([first, second]).next()?.ok()?;
    Some((plain, 11))
}

/// The words that only erased messages contain. A line of a summary with such a word was derived
/// from them.
#[derive(Default)]
pub(super) struct OnlyInErased {
    words: HashSet<String>,
}

impl OnlyInErased {
    /// Adds the words of an erased message.
    pub(super) fn add_erased(&mut self, text: &str) {
        let words = &mut self.words;
        each_term(text, |term| {
            if is_distinctive(term.text, term.kind) && !words.contains(term.text) {
                words.insert(term.text.to_owned());
            }
        });
    }

    /// Adds the words of a remaining message.
    pub(super) fn add_remaining(&mut self, text: &str) {
        let words = &mut self.words;
        each_term(text, |term| {
            words.remove(term.text);
        });
    }

    /// Whether a text contains such a word.
    pub(super) fn are_in(&self, text: &str) -> bool {
        let mut found = false;
        each_term(text, |term| found |= self.words.contains(term.text));
        found
    }
}

fn is_distinctive(word: &str, kind: TermKind) -> bool {
    kind != TermKind::Stop && (word.chars().count() >= SHORTEST || !word.is_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_words_only_from_erased_messages_is_detected() {
        let mut only = OnlyInErased::default();
        only.add_erased("the billing port is 4711, and the 数据库 is new");
        only.add_remaining("which port do we use for billing?");
        for line in ["- Ports: 4711", "uses 数据库"] {
            assert!(only.are_in(line), "{line}");
        }
        for line in ["- the billing port", "", "and the"] {
            assert!(!only.are_in(line), "{line}");
        }
    }

    #[test]
    fn a_search_ignores_case_and_line_breaks() {
        let needle = SearchText::new("Red  Heron");
        assert!(needle.is_in("a RED\n heron flew") && !needle.is_in("red herring"));
        assert!(!SearchText::new(" \n").is_in("anything"));
        for (needle, text) in
            [("STRASSE", "die Straße"), ("straße", "DIE STRASSE"), ("οδος", "ΟΔΟΣ")]
        {
            assert!(SearchText::new(needle).is_in(text), "{needle} in {text}");
            let escaped = text.replace('ß', r"\u00df");
            assert!(SearchText::new(needle).is_in_file(&escaped), "{needle} in {escaped}");
        }
    }

    #[test]
    fn a_search_decodes_json_escapes() {
        let check = |needle: &str, text: &str| {
            assert!(SearchText::new(needle).is_in_file(text), "{needle} in {text}");
        };
        check("Red \"heron\"", r#"{"a":"a red \"HERON\""}"#);
        check("red heron", r#"{"a":"red\n\theron"}"#);
        check("图表", r#"{"a":"\u56fe\u8868"}"#);
        check("a 🦩", r#"{"a":"a \ud83e\udda9"}"#);
        let inner = serde_json::json!({"a": "a \"red\"\nheron"}).to_string();
        check("\"red\" heron", &serde_json::json!({ "arguments": inner }).to_string());
        check("c:\\new", r"c:\new");
        for torn in [r"a \", r"a \u", r"a \u56", r"a \ud83e", r"a \ud83e\u0041", r"\图"] {
            assert!(!SearchText::new("heron").is_in_file(torn), "{torn}");
        }
        check("heron", r"\ud83e heron");
    }
}
