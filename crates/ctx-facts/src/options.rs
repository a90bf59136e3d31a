//! Choices out of options that the agent offered.

use ctx_core::Chars;
use ctx_core::text::{head_chars, tail};
use ctx_text::{WordList, is_cjk, sentences};

/// Words before a choice: "let's go with", "用".
static LEADS: WordList = WordList::new("choice.leads");
/// Words after a choice that belong to it: "one", "is fine".
static FOLLOWS: WordList = WordList::new("choice.follows");
/// Ordinals, each after its number: "2 second", "2 二".
static ORDINALS: WordList = WordList::new("choice.ordinals");

/// Words in an option about the current work only: "this session".
static PASSING: WordList = WordList::new("choice.passing");

/// The words before a choice, at most.
const MOST_LEADS: usize = 9;
/// The end of an offer, which asks for the choice.
const END: Chars = Chars(400);
/// The length of a question that is repeated with its answer, in bytes.
const LONG_QUESTION: usize = 120;

/// Options with the same kind of labels: letters or digits.
struct Options<'a> {
    has_letters: bool,
    texts: Vec<&'a str>,
}

/// An option as an answer names it.
struct Choice {
    /// Whether by a letter or by a digit; `None` for "the second one".
    by_letter: Option<bool>,
    at: usize,
}

/// Returns the option of `offer` that `answer` chooses, after the question if it is short: "Which
/// timing? At commit time" for "A.", "the first one", "用第一个".
///
/// ```
/// let offer = "A. Summarise on commit\nB. Summarise on demand\n\nWhich timing?";
/// let chosen = ctx_facts::chosen_option(offer, "let's go with B");
/// assert_eq!(chosen.as_deref(), Some("Which timing? Summarise on demand"));
/// ```
#[must_use]
pub fn chosen_option(offer: &str, answer: &str) -> Option<String> {
    let question = sentences(tail(offer, END)).into_iter().rfind(|s| s.ends_with(['?', '？']))?;
    let choice = choice(answer)?;
    let lists = offered(offer);
    let list = lists.iter().rev().find(|list| {
        list.texts.len() > 1 && choice.by_letter.is_none_or(|letter| letter == list.has_letters)
    });
    let option = list?.texts.get(choice.at)?;
    if PASSING.is_in(&option.to_lowercase()) {
        return None;
    }
    let option = option.replace("**", "").replace(" | ", ": ");
    let option = option.trim_matches(['|', ' ']);
    Some(match question.len() <= LONG_QUESTION {
        true => format!("{} {option}", question.trim_matches(['*', ' '])),
        false => option.to_owned(),
    })
}

/// Returns the lists of options in a message of the agent, in order.
fn offered(offer: &str) -> Vec<Options<'_>> {
    let mut lists: Vec<Options<'_>> = Vec::new();
    for (label, text) in offer.lines().filter_map(option) {
        let has_letters = label.is_ascii_uppercase();
        let Some(at) = number(label) else { continue };
        match lists.last_mut() {
            _ if at == 0 => lists.push(Options { has_letters, texts: vec![text] }),
            Some(list) if list.has_letters == has_letters && list.texts.len() == at => {
                list.texts.push(text);
            }
            _ => {}
        }
    }
    lists
}

/// Returns the label and the text of a line that states an option: "A. text", "| **2) text** |".
fn option(line: &str) -> Option<(char, &str)> {
    let bare = line.trim_start_matches([' ', '|', '*', '-', '#', '(', '[', '\t']);
    // "Option A: text", "方案A：text".
    let bare = match bare.split_once(' ') {
        Some((lead, rest)) if LEADS.contains(&lead.to_lowercase()) => rest.trim_start(),
        _ => bare.trim_start_matches(is_cjk),
    };
    let mut rest = bare.chars();
    let label = rest.next().filter(|c| c.is_ascii_uppercase() || c.is_ascii_digit())?;
    let text = rest.as_str().trim_start_matches('*');
    let cell = || text.strip_prefix(" |").filter(|_| line.starts_with('|'));
    let text = text.strip_prefix(['.', ')', ':', '：', '、', ']', '）']).or_else(cell)?;
    Some((label, text.trim()))
}

/// Returns the position of a letter or digit among labels.
fn number(label: char) -> Option<usize> {
    match label {
        'A'..='H' => Some(label as usize - 'A' as usize),
        _ => (label.to_digit(10)? as usize).checked_sub(1),
    }
}

/// Reads which option an answer names at its beginning.
fn choice(answer: &str) -> Option<Choice> {
    let words = words(answer);
    let lower: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
    let is_lead = |at: usize| LEADS.contains(&lower[at]) && words[at] != "A";
    let at = (0..words.len()).take(MOST_LEADS + 1).find(|&at| !is_lead(at))?;
    let mut ordinals = ORDINALS.iter().filter_map(|entry| entry.split_once(' '));
    let ordinal = ordinals.find(|(_, word)| *word == lower[at]);
    // "first, fix the build" begins a list of steps.
    let counts = ordinal.is_some() && at == 0;
    let goes_on = |next: &String| {
        (counts || next.starts_with(char::is_alphanumeric)) && !FOLLOWS.contains(next.as_str())
    };
    if lower.get(at + 1).is_some_and(goes_on) {
        return None;
    }
    let mut label = ordinal.map_or(words[at].as_str(), |(number, _)| number).chars();
    let (Some(label), None) = (label.next(), label.next()) else { return None };
    // A small letter is a choice only if little follows it.
    if label.is_ascii_lowercase() && words.len() > at + 2 {
        return None;
    }
    let by_letter = ordinal.is_none().then(|| label.is_ascii_alphabetic());
    Some(Choice { by_letter, at: number(label.to_ascii_uppercase())? })
}

/// Returns the first words of a text; each Chinese character and each mark is one.
fn words(text: &str) -> Vec<String> {
    let text = head_chars(text, 120).replace('’', "'");
    let is_part = |c: char| !is_cjk(c) && (c.is_alphanumeric() || c == '\'');
    let apart = |c| if is_part(c) { c.to_string() } else { format!(" {c} ") };
    let apart: String = text.chars().map(apart).collect();
    apart.split_whitespace().map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OFFER: &str = "| Option | What |\n|---|---|\n| **A. Most recent only (Recommended)** | Simple. |\n\
        | **B. All sessions** | Complete. |\n\nI recommend A because it is simple. Which scope do you prefer?";
    const NUMBERED: &str =
        "Two ways:\n\n1. **Quick fix** - keep the first\n2. **Redesign** - a map\n\nWhich one?";

    #[test]
    fn an_answer_names_an_option_by_letter_number_or_order() {
        let all = "Which scope do you prefer? All sessions: Complete.";
        let quick = "Which one? Quick fix - keep the first";
        let map = "Which one? Redesign - a map";
        for (offer, answer, chosen) in [
            (OFFER, "B", Some(all)),
            (OFFER, "b", Some(all)),
            (OFFER, "I think B, it leaves us space", Some(all)),
            (OFFER, "yes, let's go with option B please", Some(all)),
            (OFFER, "the second one", Some(all)),
            (OFFER, "用第二个", Some(all)),
            (OFFER, "选B吧", Some(all)),
            (OFFER, "die zweite Option bitte", Some(all)),
            (NUMBERED, "1", Some(quick)),
            (NUMBERED, "2. sounds good", Some(map)),
            (NUMBERED, "方案二", Some(map)),
            ("1. Here (this session)\n2. Elsewhere\n\nWhere?", "1", None),
            ("Option A: Redis\nOption B: Files\n\nWhich?", "option b", Some("Which? Files")),
            ("方案A：缓存\n方案B：文件\n\n选哪个？", "选B", Some("选哪个？ 文件")),
            (NUMBERED, "B", None),
            (NUMBERED, "2 files are missing", None),
            (NUMBERED, "first, fix the build", None),
            (NUMBERED, "let's examine 2.", None),
            (OFFER, "A great idea", None),
            (OFFER, "yes", None),
            ("1. Built\n2. Tested\n\nAll done.", "2", None),
        ] {
            assert_eq!(chosen_option(offer, answer).as_deref(), chosen, "{answer}");
        }
    }
}
