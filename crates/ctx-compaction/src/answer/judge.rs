//! Decides whether an answer is a usable summary.

use ctx_text::{WordList, gist};
use std::collections::HashSet;

use ctx_core::Summary;

use super::echo::is_echo;
use super::{cleaned, visible};

/// Why an answer cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// It contains only white space, markup or headings.
    Empty,
    /// It was truncated at its length limit, so the end of the summary, its next steps, is missing.
    CutOff,
    /// The model declined.
    Refusal,
    /// It repeats the same text.
    Repetition,
    /// It repeats the prompt.
    Echo,
    /// It is too short for its source, or cleaning left too little of it.
    Thin,
    /// It has nothing in common with its source.
    Unrelated,
}

impl Flaw {
    pub(crate) fn reason(self) -> &'static str {
        match self {
            Self::Empty => "the answer is empty",
            Self::CutOff => "the answer was cut off at its length limit",
            Self::Refusal => "the model declined to summarise",
            Self::Repetition => "the answer repeats itself",
            Self::Echo => "the answer repeats its prompt",
            Self::Thin => "the answer is too short",
            Self::Unrelated => "the answer is unrelated to the conversation",
        }
    }
}

/// Returns the cleaned text of an answer to `prompt`, if it is usable. Does not check its length.
pub(crate) fn checked(answer: &Summary, prompt: &str) -> Result<String, Flaw> {
    let text = cleaned(&answer.text);
    let flaws = [
        (telling(&text).next().is_none(), Flaw::Empty),
        (answer.cut_off, Flaw::CutOff),
        (is_refusal(&text), Flaw::Refusal),
        (is_repetition(&text), Flaw::Repetition),
        (is_echo(&text, prompt), Flaw::Echo),
        (is_thin(&answer.text, &text, prompt), Flaw::Thin),
        (is_unrelated(&text, prompt), Flaw::Unrelated),
    ];
    let flaw = flaws.into_iter().find(|(is_flawed, _)| *is_flawed);
    flaw.map_or(Ok(text), |(_, flaw)| Err(flaw))
}

/// Returns the lines that are not headings and not "(none)".
pub(crate) fn telling(text: &str) -> impl Iterator<Item = &str> {
    text.lines().map(str::trim).filter(|line| {
        let bare = line.trim_start_matches(|c: char| !c.is_alphanumeric());
        let bare = bare.trim_end_matches(|c: char| !c.is_alphanumeric());
        let is_mark = matches!(bare, "x" | "X") || bare.eq_ignore_ascii_case("none");
        !line.starts_with('#')
            && !bare.is_empty()
            && !is_mark
            && !bare.chars().all(char::is_numeric)
    })
}

/// Whether a short text without headings begins like a refusal.
fn is_refusal(text: &str) -> bool {
    static BEGINNINGS: WordList = WordList::new("refusal.beginnings");
    let short = text.char_indices().nth(600).is_none();
    let begins = |line: &str| {
        let line: String = line.chars().take(40).collect::<String>().to_lowercase();
        BEGINNINGS.begins(&line)
    };
    short && !text.lines().any(|line| line.starts_with('#')) && begins(text)
}

/// Whether a long text consists of very few distinct words, or of one very long one.
fn is_repetition(text: &str) -> bool {
    let words: Vec<&str> = text.split_whitespace().collect();
    let longest = words.iter().max_by_key(|word| word.len()).copied().unwrap_or_default();
    let characters: HashSet<char> = longest.chars().collect();
    let different: HashSet<&str> = words.iter().copied().collect();
    let is_blob = words.len() < 60 && longest.len() > 2_000 && characters.len() < 70;
    is_blob || (words.len() >= 60 && different.len() * 20 < words.len())
}

/// Whether the answer is too short for its source. The minimum is higher if cleaning removed most
/// of the answer, as the rest may be only a remark around its summary. A short conversation may
/// have a short summary.
fn is_thin(answer: &str, text: &str, prompt: &str) -> bool {
    let letters: usize = telling(text).map(letters).sum();
    let is_stripped = text.len().saturating_mul(4) < visible(answer).len();
    let (share, most) = if is_stripped { (20, 200) } else { (100, 30) };
    letters < (material(prompt).len() / share).min(most)
}

/// Counts the bytes of letters and digits: a Chinese character says more than a letter.
fn letters(line: &str) -> usize {
    line.chars().filter(|c| c.is_alphanumeric()).map(char::len_utf8).sum()
}

/// Returns the source part of a prompt; ctx's own instructions follow it.
fn material(prompt: &str) -> &str {
    prompt.rfind("\n</").and_then(|end| prompt.get(..end)).unwrap_or(prompt)
}

/// Whether almost no word of the answer occurs in the prompt. A summary shares words with its
/// source; even in another language it shares names.
fn is_unrelated(text: &str, prompt: &str) -> bool {
    let (own, source) = (gist(text), gist(material(prompt)));
    let shared = own.shared(&source);
    // If an answer is longer than its source, most of its words are its own.
    shared < own.words.len().div_ceil(20).min(3)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "<conversation>\n[e:1] [User]: fix the retry loop in src/http.rs, never \
        touch the cache\n\n[e:2] [Assistant]: 已经修复重试循环\n</conversation>\n\nSummarise it.";

    fn flaw(text: &str, cut_off: bool) -> Option<Flaw> {
        let answer = Summary { text: text.to_owned(), cut_off, usage: None };
        checked(&answer, PROMPT).err()
    }

    #[test]
    fn what_cannot_be_used_is_told_apart() {
        let same = "the work goes on and on as before ".repeat(60);
        let cases = [
            ("", Some(Flaw::Empty)),
            (" \n\t\u{200b}", Some(Flaw::Empty)),
            ("...!?", Some(Flaw::Empty)),
            ("<think>the retry loop</think>", Some(Flaw::Empty)),
            ("## Goal\n- (none)\n\n## Next Steps\n1. \n- [x]", Some(Flaw::Empty)),
            ("I'm sorry, but I can't help with that.", Some(Flaw::Refusal)),
            ("抱歉,我无法总结这段对话。", Some(Flaw::Refusal)),
            ("Please provide the retry loop you want me to summarise.", Some(Flaw::Refusal)),
            (same.as_str(), Some(Flaw::Repetition)),
            ("Lorem ipsum dolor sit amet, consectetur adipiscing", Some(Flaw::Unrelated)),
            ("Bananas are yellow, and bread comes from wheat.", Some(Flaw::Unrelated)),
            ("## Goal\n- Fix the retry loop in src/http.rs [e:1]", None),
            ("## Goal\n- 修复重试循环", None),
            ("Sorry state of the retry loop: it never ends", None),
            ("## Goal\n- I cannot touch the cache; retry loop fixed", None),
        ];
        for (text, expected) in cases {
            assert_eq!(flaw(text, false), expected, "{text}");
        }
        assert_eq!(flaw("## Goal\n- Fix the retry loop", true), Some(Flaw::CutOff));
        assert_eq!(flaw("", true), Some(Flaw::Empty));
        assert_eq!(flaw(&"a".repeat(50_000), false), Some(Flaw::Repetition));
    }

    #[test]
    fn an_answer_says_enough_for_what_it_was_made_of() {
        let long =
            PROMPT.replace("touch the cache", &"touch the retry loop or the cache ".repeat(200));
        let flaw = |text: &str, prompt: &str| {
            let answer = Summary { text: text.to_owned(), cut_off: false, usage: None };
            checked(&answer, prompt).err()
        };
        let short = "## Goal\n- Fix the retry loop";
        assert_eq!(flaw(short, PROMPT), None);
        assert_eq!(flaw(short, &long), Some(Flaw::Thin));
        let fair = "## Goal\n- Fix the retry loop in src/http.rs, never touch the cache [e:1]\n\
            ## Progress\n- The loop ends after three attempts now [e:2]";
        assert_eq!(flaw(fair, &long), None);
        let around = format!("<think>{}</think>\n{fair}", "the retry loop, hm. ".repeat(100));
        assert_eq!(flaw(&around, PROMPT), None, "a short conversation");
        assert_eq!(flaw(&around, &long), Some(Flaw::Thin), "what was left is the least part");
        let chinese = "## Goal\n- 修复重试循环 src/http.rs,不要改动缓存,循环现在三次之后结束";
        assert_eq!(flaw(chinese, &long), None);
    }

    #[test]
    fn a_summary_in_another_language_passes_by_its_names() {
        assert_eq!(flaw("## Goal\n- 用户要修改 src/http.rs 里的 retry", false), None);
    }
}
