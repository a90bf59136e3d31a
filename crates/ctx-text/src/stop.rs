//! Stop words.

use crate::WordList;

/// Pronouns, articles, auxiliary verbs, prepositions and question words, in lower case and not
/// stemmed.
static WORDS: WordList = WordList::new("stop");

/// Whether a lower-case word is a stop word. Documents keep stop words; questions drop them if
/// other words are left.
pub(crate) fn is_stop_word(word: &str) -> bool {
    WORDS.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn question_words_say_nothing_and_names_do() {
        assert!(["when", "did", "the", "you"].iter().all(|word| is_stop_word(word)));
        assert!(!["caroline", "paint", "2023", ""].iter().any(|word| is_stop_word(word)));
    }
}
