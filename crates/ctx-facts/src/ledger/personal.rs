//! What people say about themselves: who they are, where they live, what they do and like.

use std::sync::LazyLock;

use ctx_text::{WordList, is_name};
use regex::{Captures, Regex};

use crate::command::compiled;

/// The maximum number of personal facts in a session: those of highest weight, then the newest.
pub(super) const MOST: usize = 48;

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

/// Rates how much a statement says about the speaker, from 0 to 1; `None` if it says nothing.
pub(super) fn personal(sentence: &str) -> Option<f32> {
    let speaks =
        sentence.contains(['I', '我']) || sentence.contains("my") || sentence.contains("My");
    if sentence.len() > 600 || !(speaks || sentence.contains("i'm")) {
        return None;
    }
    let says = CHINESE.is_in(sentence) || CHINESE_WORK.is_match(sentence) || in_english(sentence);
    if !says {
        return None;
    }
    let inner = sentence.split_whitespace().skip(1);
    let mut inner = inner.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let exact = inner.any(is_name) || sentence.chars().any(|c| c.is_ascii_digit());
    Some(if exact { 0.55 } else { 0.45 })
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
        for (sentence, exact) in [
            ("I'm Anna, I moved to Lyon in 2019.", true),
            ("My name is Bo", true),
            ("I’m a nurse.", false),
            ("I work at a bakery", false),
            ("my daughter's birthday was on the 3rd", true),
            ("I love hiking", false),
            ("我叫李雷。", false),
            ("我住在上海，2019 年搬来的", true),
            ("我在腾讯工作", false),
        ] {
            assert_eq!(personal(sentence).map(|weight| weight > 0.5), Some(exact), "{sentence}");
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
            assert_eq!(personal(sentence), None, "{sentence}");
        }
    }
}
