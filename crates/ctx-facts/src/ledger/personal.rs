//! What people say about themselves: who they are, where they live, what they do and like.

use ctx_text::WordList;
use ctx_text::is_name;

/// The maximum number of personal facts in a session: those of highest weight, then the newest.
pub(super) const MOST: usize = 48;

/// Words that are about the speaker, at any position.
static TELLS: WordList = WordList::new("personal.tells");

/// Relatives and pets: "my wife", "my dogs".
static NEAR: WordList = WordList::new("personal.relatives");

/// Words after "I like" that make it about the subject matter, not about the speaker.
static MATTERS: WordList = WordList::new("personal.matters");

static CHINESE: WordList = WordList::new("personal.tells_anywhere");

/// Rates how much a statement says about the speaker, from 0 to 1; `None` if it says nothing.
pub(super) fn personal(sentence: &str) -> Option<f32> {
    let speaks =
        sentence.contains(['I', '我']) || sentence.contains("my") || sentence.contains("My");
    if sentence.len() > 600 || !(speaks || sentence.contains("i'm")) {
        return None;
    }
    let says = CHINESE.iter().any(|words| sentence.contains(words))
        || chinese_work(sentence)
        || in_english(sentence);
    if !says {
        return None;
    }
    let inner = sentence.split_whitespace().skip(1);
    let mut inner = inner.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let exact = inner.any(is_name) || sentence.chars().any(|c| c.is_ascii_digit());
    Some(if exact { 0.55 } else { 0.45 })
}

/// "我在腾讯工作".
fn chinese_work(sentence: &str) -> bool {
    let rest = sentence.split_once("我在").map(|(_, rest)| rest);
    rest.is_some_and(|rest| {
        let near: String = rest.chars().take(16).collect();
        ["工作", "上班", "上学", "读书", "长大"].iter().any(|words| near.contains(words))
    })
}

fn in_english(sentence: &str) -> bool {
    let plain = sentence.replace('’', "'");
    let words: Vec<&str> = plain
        .split(|c: char| !(c.is_alphanumeric() || c == '\''))
        .filter(|word| !word.is_empty())
        .collect();
    // Words are separated and surrounded by one space, so that only whole words match.
    let lower = format!(" {} ", words.join(" ").to_lowercase());
    let is_whole = |at: usize, tells: &str| {
        let after = lower.as_bytes().get(at + tells.len());
        lower.get(..at).is_some_and(|before| before.ends_with(' ')) && after == Some(&b' ')
    };
    if TELLS.iter().any(|tells| lower.match_indices(tells).any(|(at, _)| is_whole(at, tells))) {
        return true;
    }
    words.iter().enumerate().any(|(at, word)| {
        let next = |n: usize| words.get(at + n).copied().unwrap_or_default();
        let small = |n: usize| next(n).to_lowercase();
        let am = if word.eq_ignore_ascii_case("i'm") {
            1
        } else if *word == "I" && next(1) == "am" {
            2
        } else {
            0
        };
        // "I'm Anna", "I'm a nurse", but not "I'm Ok" and "I'm a bit lost".
        let is_one = am > 0
            && (is_name(next(am)) && !matches!(next(am), "Ok" | "Okay" | "Sorry" | "Sure")
                || matches!(next(am), "a" | "an")
                    && !matches!(
                        &*small(am + 1),
                        "bit" | "little" | "lot" | "big" | "huge" | "few"
                    ));
        let likes = *word == "I"
            && matches!(&*small(1), "like" | "love")
            && !next(2).is_empty()
            && !MATTERS.contains(&&*small(2));
        let of_mine = word.eq_ignore_ascii_case("my")
            && NEAR.iter().any(|near| {
                let of = small(1);
                let of = of.strip_suffix("'s").unwrap_or(&of);
                of == *near || of.strip_suffix('s') == Some(near)
            });
        is_one || likes || of_mine
    })
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
