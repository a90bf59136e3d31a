//! A single word: its parts and its stem.

use foldhash::{HashMap, HashMapExt};
use rust_stemmers::{Algorithm, Stemmer};

/// The maximum number of cached stems; most words of a text recur.
const KEPT: usize = 8_192;

/// Stems alphabetic words. Words with digits are names and stay unchanged.
pub(crate) struct Stems {
    stemmer: Stemmer,
    known: HashMap<Box<str>, Box<str>>,
}

impl Default for Stems {
    fn default() -> Self {
        Self { stemmer: Stemmer::create(Algorithm::English), known: HashMap::new() }
    }
}

impl Stems {
    /// Returns the normalised form of a lower-case word.
    pub(crate) fn of<'a>(&'a mut self, word: &'a str) -> &'a str {
        if word.len() <= 2 || !word.bytes().all(|b| b.is_ascii_lowercase()) {
            return word;
        }
        if !self.known.contains_key(word) {
            if self.known.len() >= KEPT {
                self.known.clear();
            }
            self.known.insert(word.into(), self.stemmer.stem(word).into());
        }
        self.known.get(word).map_or(word, |stem| stem)
    }
}

/// Passes the end of each part of a name such as `parseHTTPBody2` to `each`: after `parse`, `HTTP`,
/// `Body2`. A part begins with a capital after a small letter, or with the last of several capitals
/// before a small one; digits stay with the preceding letters.
pub(crate) fn camel_ends(word: &str, mut each: impl FnMut(usize)) {
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
        let mut stems = Stems::default();
        for word in ["adopted", "adopting", "adopted"] {
            assert_eq!(stems.of(word), "adopt");
        }
        assert_eq!(stems.of("utf8s"), "utf8s");
        assert_eq!(stems.of("is"), "is");
    }

    #[test]
    fn no_more_stems_are_kept_than_that() {
        let mut stems = Stems::default();
        let letter = |n: usize| char::from(b'a' + (n % 26) as u8);
        for n in 0..KEPT * 2 {
            let word: String = [n, n / 26, n / 676, n / 17_576].map(letter).iter().collect();
            stems.of(&word);
            assert!(stems.known.len() <= KEPT);
        }
    }
}
