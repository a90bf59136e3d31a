//! What the source must contain for a token of the summary to be grounded.

use ctx_core::text::Slice;
use ctx_text::WordList;
use std::ops::Range;

use ctx_core::text::head_bytes;

use ctx_text::{Span, SpanKind, day_len, is_cjk, number, split_line};

/// Words that precede an exit code.
static EXIT_LEADS: WordList = WordList::new("exit_leads");

/// Beginnings of a reference to an issue, and the words that precede its number.
static REFERENCES: WordList = WordList::new("references.leads");
static BEFORE_NUMBER: WordList = WordList::new("references.words");

/// Words to search for, and the condition on their surroundings.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) words: String,
    around: Around,
}

/// The condition on the surroundings of the words.
#[derive(Clone, Debug, PartialEq)]
enum Around {
    /// No letter, digit or underscore is adjacent; words with a dot have no further extension.
    Alone { exact_case: bool },
    /// Digits of a number with this value, and with this unit unless the value is specific enough.
    Number { value: String, unit: &'static str },
    /// Digits after words such as `exit code`.
    Exit,
    /// Digits after `#`, `issue`, `/pull/`.
    Issue,
    /// The prefix of a longer hash.
    Hash,
}

/// A token, and the forms in which the source may contain it.
#[derive(Clone, Debug)]
pub(super) struct Claim<'a> {
    text: &'a str,
    /// Alternatives; each is a group of places that must all occur.
    ways: Vec<Vec<Place>>,
}

impl<'a> Claim<'a> {
    pub(super) fn of_text(text: &'a str) -> Self {
        Self { text, ways: vec![vec![alone(text)]] }
    }

    pub(super) fn of(token: &Span<'a>) -> Self {
        let text = token.text;
        let ways = match token.kind {
            SpanKind::Path => path(text),
            SpanKind::Url => url(text),
            SpanKind::Number => measure(text),
            SpanKind::ErrorCode => error(text),
            SpanKind::Id => id(text),
            _ => name(text, token.quoted),
        };
        Self { text, ways }
    }

    pub(super) fn places(&self) -> impl Iterator<Item = &Place> {
        self.ways.iter().flatten()
    }

    /// Whether the claim is grounded; `stands` says for each of its places whether it occurs.
    pub(super) fn holds(&self, stands: &[bool]) -> bool {
        let mut at = 0;
        let grounded = self.ways.iter().any(|way| {
            let own = stands.slice(at..at + way.len());
            at += way.len();
            !own.is_empty() && own.iter().all(|&stands| stands)
        });
        grounded || self.text.is_empty()
    }
}

/// Whether a token of a summary must occur in the source. Small counts ("3 files", "12 tests"),
/// which may be the writer's own, and plain numbers without a unit need not, unless they are
/// identifiers.
pub(crate) fn is_audited(token: &Span<'_>) -> bool {
    if token.text.contains('*') || token.text == "/dev/null" {
        return false;
    }
    match token.kind {
        SpanKind::Number if token.is_count => {
            number(token.text).is_none_or(|n| !n.unit.is_empty() && n.value.len() >= 3)
        }
        _ => true,
    }
}

fn alone(text: &str) -> Place {
    Place { words: text.to_owned(), around: Around::Alone { exact_case: true } }
}

fn loose(text: &str) -> Place {
    Place { words: text.to_owned(), around: Around::Alone { exact_case: false } }
}

/// A path occurs as it is, or as a folder and a path below it.
fn path(text: &str) -> Vec<Vec<Place>> {
    let bare = split_line(text).0;
    let bare = bare.strip_prefix("./").unwrap_or(bare).trim_end_matches('/');
    let mut ways = vec![vec![alone(bare)]];
    let cuts = bare.match_indices('/').map(|(at, _)| at).filter(|&at| at > 0);
    for at in cuts.take(12) {
        let (folder, rest) = (bare.get(..at), bare.get(at + 1..));
        if let (Some(folder), Some(rest)) = (folder, rest)
            && rest.contains(['/', '.'])
        {
            ways.push(vec![alone(folder), alone(rest)]);
        }
    }
    ways
}

fn url(text: &str) -> Vec<Vec<Place>> {
    let bare = text.trim_end_matches('/');
    let mut ways = vec![vec![alone(bare)]];
    if let Some((_, rest)) = bare.split_once("://") {
        ways.push(vec![alone(rest)]);
    }
    ways
}

fn measure(text: &str) -> Vec<Vec<Place>> {
    if day_len(text) == Some(text.len()) {
        return day(text);
    }
    let mut ways = vec![vec![alone(text)]];
    let Some(number) = number(text) else { return ways };
    let start = text.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
    let written = text.slice(start..);
    let written = written
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','))
        .map_or(written, |end| written.slice(..end));
    let written = written.trim_end_matches(['.', ',']);
    let mut spellings = vec![written.to_owned(), written.replace(',', ""), grouped(&number.value)];
    spellings.push(number.value.clone());
    if let Some(thousands) = number.value.strip_suffix("000") {
        spellings.push(thousands.to_owned());
    }
    spellings.retain(|s| s.starts_with(|c: char| c.is_ascii_digit()));
    spellings.sort();
    spellings.dedup();
    for words in spellings {
        let around = Around::Number { value: number.value.clone(), unit: number.unit };
        ways.push(vec![Place { words, around }]);
    }
    ways
}

/// A date occurs as written, or its year does.
fn day(text: &str) -> Vec<Vec<Place>> {
    let mut ways = vec![vec![loose(text)], vec![loose(&text.replace(',', ""))]];
    if let Some((rest, year)) = text.rsplit_once(' ')
        && year.len() == 4
    {
        ways.push(vec![loose(rest.trim_end_matches(',')), alone(year)]);
    }
    ways
}

/// Formats `1500` as `1,500`.
fn grouped(value: &str) -> String {
    let (whole, fraction) = value.split_once('.').map_or((value, None), |(w, f)| (w, Some(f)));
    let mut out = String::new();
    for (at, c) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            out.push(',');
        }
        out.push(c);
    }
    if let Some(fraction) = fraction {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

fn last_digits(text: &str) -> &str {
    text.slice(text.trim_end_matches(|c: char| c.is_ascii_digit()).len()..)
}

fn error(text: &str) -> Vec<Vec<Place>> {
    let digits = last_digits(text);
    let lower = text.to_ascii_lowercase();
    let spoken =
        lower.contains([' ', ':', '=', '_', '(']) || lower.contains('码') || digits == text;
    if digits.is_empty() || !spoken {
        return vec![vec![alone(text)]];
    }
    let around = if lower.starts_with("exit") || lower.contains("退出") {
        Around::Exit
    } else {
        Around::Alone { exact_case: true }
    };
    vec![vec![loose(text)], vec![Place { words: digits.to_owned(), around }]]
}

fn id(text: &str) -> Vec<Vec<Place>> {
    let mut ways = vec![vec![loose(text)]];
    let digits = last_digits(text);
    let lower = text.to_ascii_lowercase();
    if !digits.is_empty()
        && (text.starts_with('#') || lower.contains([' ', '#', ':', '=']) || text.contains("端口"))
    {
        let issue = REFERENCES.iter().any(|lead| lower.starts_with(lead));
        let around = if issue { Around::Issue } else { Around::Alone { exact_case: true } };
        ways.push(vec![Place { words: digits.to_owned(), around }]);
    }
    if let Some((_, version)) = lower.rsplit_once([' ', '@']) {
        ways.push(vec![alone(version.trim_start_matches(['v', '^', '~']))]);
    }
    let version = lower.strip_prefix('v').unwrap_or(&lower);
    if version.starts_with(|c: char| c.is_ascii_digit()) && version.contains('.') {
        ways.push(vec![alone(version)]);
        ways.push(vec![alone(&format!("v{version}"))]);
    }
    if text.len() >= 7 && text.bytes().all(|b| b.is_ascii_hexdigit()) {
        ways.push(vec![Place { words: text.to_owned(), around: Around::Hash }]);
    }
    ways
}

/// Characters that separate the words of a command or of a qualified name.
const PUNCTUATION: &str = ".:\"'=(),{}<>[]|&;";

/// A name occurs as it is; one with dots or colons, or a command, also word by word. In prose, case
/// is ignored.
fn name(text: &str, quoted: bool) -> Vec<Vec<Place>> {
    let place = if quoted { alone } else { loose };
    let bare = text.trim_end_matches("()");
    let mut ways = vec![vec![place(bare)]];
    // Text in angle brackets is a placeholder: `run <name>`.
    let words = bare.split_whitespace().filter(|w| !(w.starts_with('<') && w.ends_with('>')));
    let parts: Vec<Place> = words
        .flat_map(|word| word.split(|c: char| PUNCTUATION.contains(c)))
        .filter(|part| part.chars().any(char::is_alphanumeric))
        .map(place)
        .collect();
    if parts.len() > 1 || (bare.contains('<') && !parts.is_empty()) {
        ways.push(parts);
    }
    ways
}

impl Place {
    /// Whether the words, found at `range` in any case, meet their condition there.
    pub(super) fn stands_at(&self, text: &str, range: &Range<usize>) -> bool {
        let before = text.slice(..range.start);
        let after = text.slice(range.end..);
        let joins = |c: char| (c.is_alphanumeric() && !is_cjk(c)) || c == '_';
        let opens = self.words.chars().next().is_some_and(joins);
        let closes = self.words.chars().next_back().is_some_and(joins);
        let free_before = !opens || !before.chars().next_back().is_some_and(joins);
        let free_after = !closes || !after.chars().next().is_some_and(joins);
        match &self.around {
            Around::Alone { exact_case } => {
                let same = !exact_case || text.get(range.clone()) == Some(&self.words);
                // `src/a.rs` does not occur in `src/a.rs.bak`, nor `1.2` in `1.2.3`.
                let longer = after.strip_prefix('.').is_some_and(|rest| {
                    self.words.contains('.')
                        && rest.chars().next().is_some_and(joins)
                        && !after.starts_with("..")
                });
                let digits = self.words.starts_with(|c: char| c.is_ascii_digit());
                let fraction = digits
                    && before
                        .strip_suffix('.')
                        .is_some_and(|b| b.ends_with(|c: char| c.is_ascii_digit()));
                same && free_before && free_after && !longer && !fraction
            }
            Around::Number { value, unit } => {
                let digit = |c: char| c.is_ascii_digit();
                let inside = before.ends_with(digit)
                    || before.strip_suffix(['.', ',']).is_some_and(|b| b.ends_with(digit));
                !inside && stands_as_number(before, text.slice(range.start..), value, unit)
            }
            Around::Exit => {
                let lead = before.trim_end_matches([' ', ':', '=', '"', '(', '_']);
                free_after && EXIT_LEADS.iter().any(|word| lead.ends_with(word))
            }
            Around::Issue => {
                let lead = before.trim_end_matches([' ', ':', '_', '-']);
                let word =
                    lead.rsplit(|c: char| !c.is_ascii_alphabetic()).next().unwrap_or_default();
                free_after
                    && (before.ends_with(['#', '/', '!'])
                        || BEFORE_NUMBER.contains(&word.to_ascii_lowercase().as_str()))
            }
            Around::Hash => free_before,
        }
    }
}

/// Whether a number with this value and unit begins here. If the value is specific enough, the unit
/// may be elsewhere: `timeout_ms = 3000`.
fn stands_as_number(before: &str, here: &str, value: &str, unit: &str) -> bool {
    let digits = here
        .bytes()
        .take(40)
        .take_while(|b| b.is_ascii_digit() || matches!(b, b'.' | b','))
        .count();
    let written = here.slice(..digits).trim_end_matches(['.', ',']);
    let plain = written.replace(',', "");
    let plain = if plain.contains('.') {
        plain.trim_end_matches('0').trim_end_matches('.')
    } else {
        &plain
    };
    // Magnitude and unit are parsed with the number if they follow it.
    let full = number(head_bytes(here, 64));
    let same_value = plain == value || full.as_ref().is_some_and(|n| n.value == value);
    let money = matches!(unit, "usd" | "eur" | "gbp" | "cny")
        && before.ends_with(['$', '€', '£', '¥', '￥']);
    let same_unit = full.as_ref().is_some_and(|n| n.unit == unit) || money || unit.is_empty();
    let telling = value.bytes().filter(u8::is_ascii_digit).count() >= 3 || value.contains('.');
    same_value && (same_unit || telling)
}
