//! What people say about themselves: who they are, where they live, what they do and like.

use std::sync::LazyLock;

use ctx_text::{WordList, is_name};
use regex::{Captures, Regex};

use crate::command::compiled;

/// Words after "I like" that make it about the subject matter, not about the speaker.
static MATTERS: WordList = WordList::new("personal.matters");
/// Words after "I'm" and "I'm a" that say nothing lasting: "ok", "bit".
static MOODS: WordList = WordList::new("personal.moods");
static CHINESE: WordList = WordList::new("personal.tells_anywhere");

/// Words that are about the speaker, at any position.
static TELLS: LazyLock<Regex> = LazyLock::new(|| {
    let tells = WordList::new("personal.tells").join("|");
    compiled(&format!(r"(?i)\b(?:{tells})\b"))
});
/// Relatives and pets: "my wife", "my dogs".
static NEAR: LazyLock<Regex> = LazyLock::new(|| {
    let relatives = WordList::new("personal.relatives").join("|");
    compiled(&format!(r"(?i)\bmy (?:{relatives})s?\b"))
});
static LIKES: LazyLock<Regex> = LazyLock::new(|| compiled(r"\bI (?:[Ll]ike|[Ll]ove) (\w+)"));
static IS_ONE: LazyLock<Regex> = LazyLock::new(|| compiled(r"\b(?:[Ii]'m|I am) (an? )?(\w+)"));

/// "我在腾讯工作".
static CHINESE_WORK: LazyLock<Regex> =
    LazyLock::new(|| compiled("我在.{0,14}(?:工作|上班|上学|读书|长大)"));

/// Whether a statement says something about the speaker.
pub(super) fn is_personal(sentence: &str) -> bool {
    sentence.len() <= 600
        && (CHINESE.is_in(sentence) || CHINESE_WORK.is_match(sentence) || in_english(sentence))
}

fn in_english(sentence: &str) -> bool {
    let plain = sentence.replace('’', "'");
    let is_on = |list: &WordList, word: &str| list.contains(word.to_lowercase().as_str());
    // "I'm Anna", "I'm a nurse", but not "I'm Ok" and "I'm a bit lost".
    let is_one = |found: Captures<'_>| {
        (found.get(1).is_some() || is_name(&found[2])) && !is_on(&MOODS, &found[2])
    };
    TELLS.is_match(&plain)
        || NEAR.is_match(&plain)
        || LIKES.captures_iter(&plain).any(|found| !is_on(&MATTERS, &found[1]))
        || IS_ONE.captures_iter(&plain).any(is_one)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_of_oneself_are_told_from_those_of_the_matter() {
        for sentence in [
            "I'm Anna, I moved to Lyon in 2019.",
            "My name is Bo",
            "I’m a nurse.",
            "I work at a bakery",
            "my daughter's birthday was on the 3rd",
            "I love hiking",
            "我叫李雷。",
            "我住在上海，2019 年搬来的",
            "我在腾讯工作",
        ] {
            assert!(is_personal(sentence), "{sentence}");
        }
        for sentence in [
            "I'm a bit lost here.",
            "I'm sorry, I was wrong.",
            "I'm Ok with that.",
            "I like it, and I love how you did this",
            "I moved the parser to src/a.rs",
            "my function calls the child",
            "I'm going to the tests now",
            "我觉得这个接口不对",
            "",
        ] {
            assert!(!is_personal(sentence), "{sentence}");
        }
    }
}
