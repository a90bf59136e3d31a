//! Parses the claim of a fact: its subject, its value, and whether it affirms or denies.

use ctx_text::WordList;
use std::sync::LazyLock;

use regex::Regex;

use super::words::word_set;
use ctx_text::Terms;

/// What a text claims, as far as rules can tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Claim {
    /// Its words, sorted, without words of state and denial.
    pub(super) words: Vec<String>,
    /// Numbers, versions, paths and the like, sorted.
    pub(super) values: Vec<String>,
    /// Whether it denies.
    pub(super) is_denied: bool,
    /// Whether work is open or done.
    pub(super) state: Option<State>,
    /// "SUBJECT is VALUE".
    pub(super) slot: Option<Slot>,
    /// "Use VALUE instead of OTHER for SUBJECT".
    pub(super) choice: Option<Choice>,
}

/// The state of a piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Open,
    Done,
}

/// A subject with a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Slot {
    pub(super) subject: Vec<String>,
    pub(super) value: Vec<String>,
}

/// A choice of one thing over others, for some purpose.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Choice {
    pub(super) chosen: Vec<String>,
    pub(super) rejected: Vec<String>,
    pub(super) purpose: Vec<String>,
}

/// Words of state and denial: they are parsed, and are not part of the subject.
static OPEN: WordList = WordList::new("claim.open");
static DONE: WordList = WordList::new("claim.done");
static DENIALS: WordList = WordList::new("claim.denials");
static FILL: WordList = WordList::new("claim.fill");
static OPEN_CJK: WordList = WordList::new("claim.open_anywhere");
static DONE_CJK: WordList = WordList::new("claim.done_anywhere");
static DENIALS_CJK: WordList = WordList::new("claim.denials_anywhere");

static SLOT: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)^(?:the\s+|our\s+)? (?P<subject>[^,;:=]{2,80}?) \s*
          (?: \s(?:is|are|was|=|:=|has\ been|have\ been)\s (?:now\s|currently\s)?
              (?:set\s+to\s|called\s|named\s|running\s+on\s|located\s+(?:at|in)\s|at\s|in\s|on\s)?
            | \s(?:runs?|listens?|lives?|points?|deploys?|defaults?|resolves?)\s(?:on|at|in|to)\s(?:port\s)?
            | \s(?:set|changed|moved|renamed|raised|lowered|increased|reduced)\sto\s
            | =
            | :\s
            | 设置为 | 设为 | 改为 | 改成 | 运行在 | 位于 | 为 | 是 )
          \s* (?P<value>\S.*)$",
    )
    .ok()
});

static CHOICE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?ix)
        (?: \b(?:use|used|uses|using|chose|choose|picked|pick|adopt|adopted|prefer|switch(?:ed)?\s+to
               |mov(?:e|ed|ing)\s+to|migrat(?:e|ed|ing)\s+to|go(?:ing)?\s+with|went\s+with|settled\s+on|opted\s+for)\s+
          | 使用 | 采用 | 改用 | 选用 | 选择 | 换成 | 决定用 | 统一用 )
        (?P<chosen>[^,;，；]+?)
        (?: \s*(?:\binstead\s+of\b|\brather\s+than\b|\bover\b|,?\s\bnot\b|而不是|代替|替代|不用)\s*(?P<rejected>[^,;，；]+?) )?
        (?: \s+(?:for|as|to|in|on|when)\s+(?P<purpose>[^,;，；]+?) | 作为(?P<role>[^,;，；]+?) )?
        (?: \s+(?:because|since|so|due)\b.* | [,;，；。.].* )? $",
    )
    .ok()
});

static FROM_TO: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?i)\b(?:switch|switched|mov\w+|migrat\w+|chang\w+)\s+(?:\w+\s+){0,3}?from\s+(?P<rejected>[^,;]+?)\s+to\s+(?P<chosen>[^,;]+?)(?:\s+(?:for|in)\s+(?P<purpose>[^,;]+?))?(?:\s+because\b.*|[,;].*)?$",
    )
    .ok()
});

/// Nouns that are identified by their number: another number is another thing.
static NUMBERED: WordList = WordList::new("claim.numbered");

impl Claim {
    pub(super) fn of(text: &str) -> Self {
        let lower = text.to_lowercase().replace(['\'', '’'], "");
        let bare: Vec<&str> = lower.split(|c: char| !c.is_alphanumeric()).collect();
        let has = |list: &[&str]| bare.iter().any(|word| list.contains(word));
        let has_any = |list: &[&str]| list.iter().any(|word| lower.contains(word));
        let is_denied = has(&DENIALS) || has_any(&DENIALS_CJK);
        let opens = has(&OPEN) || has_any(&OPEN_CJK) || lower.contains("not yet");
        let is_done = has(&DONE) || has_any(&DONE_CJK);
        // "Not implemented" is open.
        let state = if opens || (is_denied && is_done) {
            Some(State::Open)
        } else {
            is_done.then_some(State::Done)
        };
        let kept = lower
            .split_whitespace()
            .filter(|word| {
                let word = word.trim_matches(|c: char| !c.is_alphanumeric());
                ![&OPEN, &DONE, &DENIALS, &FILL].iter().any(|list| list.contains(&word))
            })
            .collect::<Vec<_>>()
            .join(" ");
        let values = values(&kept);
        Self {
            words: word_set(&strip_cjk_state(&kept)),
            values,
            is_denied: is_denied && state.is_none(),
            state,
            slot: slot(text),
            choice: choice(text),
        }
    }
}

fn strip_cjk_state(text: &str) -> String {
    let mut text = text.to_owned();
    for word in OPEN_CJK.iter().chain(DONE_CJK.iter()) {
        if text.contains(word) {
            text = text.replace(word, " ");
        }
    }
    text
}

/// Returns the words that are values: they contain a digit, or are a path or a quotation.
fn values(text: &str) -> Vec<String> {
    let mut out: Vec<String> = text
        .split_whitespace()
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '/'))
        .filter(|word| word.contains(|c: char| c.is_ascii_digit()) || word.contains('/'))
        .map(str::to_owned)
        .collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// Subjects that can refer to anything.
static VAGUE: WordList = WordList::new("claim.vague");

fn slot(text: &str) -> Option<Slot> {
    let found = SLOT.as_ref()?.captures(text)?;
    let subject = found.name("subject")?.as_str();
    let value = found.name("value")?.as_str();
    let bare: Vec<String> = subject.split_whitespace().map(str::to_lowercase).collect();
    let is_vague =
        bare.len() <= 2 && bare.last().is_some_and(|word| VAGUE.contains(&word.as_str()));
    // "phase 2", and "phase", but not "node version".
    let is_numbered = bare.iter().enumerate().any(|(at, word)| {
        let is_number = |next: &String| next.starts_with(|c: char| c.is_ascii_digit());
        NUMBERED.contains(&word.as_str()) && bare.get(at + 1).is_none_or(is_number)
    });
    if is_vague || is_numbered {
        return None;
    }
    // Reasons and additions are not part of the value.
    let value = value.split([',', ';', '，', '；', '(']).next().unwrap_or(value);
    let value = value.split(" because ").next().unwrap_or(value);
    let slot = Slot { subject: word_set(subject), value: word_set(value) };
    (!slot.subject.is_empty() && !slot.value.is_empty() && slot.value.len() <= 6).then_some(slot)
}

fn choice(text: &str) -> Option<Choice> {
    let found = FROM_TO
        .as_ref()
        .and_then(|regex| regex.captures(text))
        .or_else(|| CHOICE.as_ref()?.captures(text))?;
    // In lower case: "PostgreSQL" and "postgresql" are one choice, not words and a word.
    let part = |name: &str| {
        found.name(name).map(|m| word_set(&m.as_str().to_lowercase())).unwrap_or_default()
    };
    let mut purpose = part("purpose");
    if purpose.is_empty() {
        purpose = part("role");
    }
    let choice = Choice { chosen: part("chosen"), rejected: part("rejected"), purpose };
    (!choice.chosen.is_empty() && choice.chosen.len() <= 6).then_some(choice)
}

/// Alternatives of which one is used at a time. Choosing one supersedes the choice of another,
/// unless they have different purposes.
static RIVALS: LazyLock<Vec<Vec<String>>> =
    LazyLock::new(|| WordList::new("rivals").iter().map(|group| word_set(group)).collect());

/// Whether two choices are alternatives.
pub(super) fn are_rivals(a: &[String], b: &[String]) -> bool {
    let place = |list: &[String]| {
        RIVALS.iter().enumerate().find_map(|(at, group)| {
            Some((at, list.iter().find(|word| group.contains(word))?.clone()))
        })
    };
    match (place(a), place(b)) {
        (Some((one, x)), Some((other, y))) => one == other && x != y,
        _ => false,
    }
}

/// Returns the Jaccard similarity of two sorted lists, 0 to 1.
pub(super) fn overlap(a: &[String], b: &[String]) -> f32 {
    let shared = shared(a, b);
    let all = a.len() + b.len() - shared;
    if all == 0 { 0.0 } else { shared as f32 / all as f32 }
}

/// Returns the number of words that two sorted lists share.
pub(super) fn shared(a: &[String], b: &[String]) -> usize {
    a.iter().filter(|word| b.binary_search(word).is_ok()).count()
}

/// Whether all of `a` is in `b`. Both are sorted.
pub(super) fn is_within(a: &[String], b: &[String]) -> bool {
    shared(a, b) == a.len()
}

/// Normalises a text for equality: all its terms, in order.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::new();
    Terms::default().each(text, |term| {
        out.push_str(term.text);
        out.push(' ');
    });
    out
}
