//! One word: its parts, and the form each is compared in.

use rust_stemmers::{Algorithm, Stemmer};

/// Stems words of the alphabet. Words with digits in them are names, and stay.
pub(super) struct Stems(Stemmer);

impl Stems {
    pub(super) fn new() -> Self {
        Self(Stemmer::create(Algorithm::English))
    }

    /// The form in which a lower-case word is compared.
    pub(super) fn of<'a>(&self, word: &'a str) -> std::borrow::Cow<'a, str> {
        if word.len() > 2 && word.bytes().all(|b| b.is_ascii_lowercase()) {
            self.0.stem(word)
        } else {
            word.into()
        }
    }
}

/// Where the parts of a name such as `parseHTTPBody2` end: at `parse`, `HTTP`, `Body2`. A part
/// begins with a capital after a small letter, and with the last of several capitals before a small
/// one; digits stay with what they follow.
pub(super) fn camel_ends(word: &str, mut each: impl FnMut(usize)) {
    let mut before: Option<char> = None;
    let mut letters = word.char_indices().peekable();
    while let Some((at, c)) = letters.next() {
        if c.is_uppercase()
            && let Some(last) = before
        {
            let next_small = letters.peek().is_some_and(|(_, next)| next.is_lowercase());
            if last.is_lowercase() || (last.is_uppercase() && next_small) {
                each(at);
            }
        }
        before = Some(c);
    }
    each(word.len());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(word: &str) -> Vec<&str> {
        let mut from = 0;
        let mut parts = Vec::new();
        camel_ends(word, |end| {
            parts.push(&word[from..end]);
            from = end;
        });
        parts
    }

    #[test]
    fn a_name_comes_apart_at_its_capitals() {
        assert_eq!(parts("parseHTTPBody2"), ["parse", "HTTP", "Body2"]);
        assert_eq!(parts("README"), ["README"]);
        assert_eq!(parts("Melanie"), ["Melanie"]);
        assert_eq!(parts("iOS"), ["i", "OS"]);
        assert_eq!(parts("sha256Sum"), ["sha256Sum"]);
    }

    #[test]
    fn only_words_of_letters_are_stemmed() {
        let stems = Stems::new();
        assert_eq!(stems.of("adopted"), stems.of("adopting"));
        assert_eq!(stems.of("utf8s"), "utf8s");
        assert_eq!(stems.of("is"), "is");
    }
}
