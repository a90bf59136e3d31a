//! What the source must contain for a token of the summary to be grounded.

use std::ops::Range;

use ctx_core::text::{Slice, head_bytes};
use ctx_text::{Span, SpanKind, WordList, joins, number, split_line, trailing_digits};

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
    /// Whether they occur so.
    pub(super) stands: bool,
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

/// The forms in which the source may contain a token: alternatives, each a group of places that must
/// all occur.
#[derive(Clone, Debug)]
pub(super) struct Claim(Vec<Vec<Place>>);

impl Claim {
    pub(super) fn of(token: &Span<'_>) -> Self {
        let text = token.text;
        Self(match token.kind {
            SpanKind::Path => path(text),
            SpanKind::Url => url(text),
            SpanKind::Number => measure(text),
            SpanKind::ErrorCode => error(text),
            SpanKind::Id => id(text),
            SpanKind::CodeName => name(text, token.quoted),
        })
    }

    pub(super) fn places(&mut self) -> impl Iterator<Item = &mut Place> {
        self.0.iter_mut().flatten()
    }

    /// Whether all places of one alternative occur.
    pub(super) fn holds(&self) -> bool {
        self.0.iter().any(|way| !way.is_empty() && way.iter().all(|place| place.stands))
    }
}

/// Whether a token of a summary must occur in the source. Small counts ("3 files", "12 tests"),
/// which may be the writer's own, and plain numbers without a unit need not, unless they are
/// identifiers.
pub(crate) fn is_audited(token: &Span<'_>) -> bool {
    let is_small = |text| number(text).is_some_and(|n| n.unit.is_empty() || n.value.len() < 3);
    let is_count = token.kind == SpanKind::Number && token.is_count && is_small(token.text);
    !is_count && !token.text.contains('*') && token.text != "/dev/null"
}

fn place(words: &str, around: Around) -> Place {
    Place { words: words.to_owned(), around, stands: false }
}

fn alone(text: &str) -> Place {
    place(text, Around::Alone { exact_case: true })
}

fn loose(text: &str) -> Place {
    place(text, Around::Alone { exact_case: false })
}

/// A path occurs as it is, or as a folder and a path below it.
fn path(text: &str) -> Vec<Vec<Place>> {
    let bare = split_line(text).0;
    let bare = bare.strip_prefix("./").unwrap_or(bare).trim_end_matches('/');
    let cuts = bare.match_indices('/').map(|(at, _)| at).filter(|&at| at > 0).take(12);
    let parts = cuts.map(|at| (bare.slice(..at), bare.slice(at + 1..)));
    let parts = parts.filter(|(_, rest)| rest.contains(['/', '.']));
    let parts = parts.map(|(folder, rest)| vec![alone(folder), alone(rest)]);
    std::iter::once(vec![alone(bare)]).chain(parts).collect()
}

/// A URL occurs as it is, or without its scheme.
fn url(text: &str) -> Vec<Vec<Place>> {
    let bare = text.trim_end_matches('/');
    let rest = bare.split_once("://").map(|(_, rest)| rest);
    std::iter::once(bare).chain(rest).map(|url| vec![alone(url)]).collect()
}

fn measure(text: &str) -> Vec<Vec<Place>> {
    let mut ways = vec![vec![alone(text)]];
    let Some(number) = number(text) else { return ways };
    let start = text.find(|c: char| c.is_ascii_digit()).unwrap_or(0);
    let written = text.slice(start..);
    let written = written
        .find(|c: char| !c.is_ascii_digit() && !matches!(c, '.' | ','))
        .map_or(written, |end| written.slice(..end));
    let written = written.trim_end_matches(['.', ',']);
    let mut spellings = vec![written.to_owned(), written.replace(',', ""), number.value.clone()];
    if let Some(thousands) = number.value.strip_suffix("000") {
        spellings.push(thousands.to_owned());
    }
    spellings.retain(|s| s.starts_with(|c: char| c.is_ascii_digit()));
    spellings.sort();
    spellings.dedup();
    for words in spellings {
        let around = Around::Number { value: number.value.clone(), unit: number.unit };
        ways.push(vec![place(&words, around)]);
    }
    ways
}

fn error(text: &str) -> Vec<Vec<Place>> {
    let digits = trailing_digits(text);
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
    vec![vec![loose(text)], vec![place(digits, around)]]
}

fn id(text: &str) -> Vec<Vec<Place>> {
    let mut ways = vec![vec![loose(text)]];
    let digits = trailing_digits(text);
    let lower = text.to_ascii_lowercase();
    if !digits.is_empty()
        && (text.starts_with('#') || lower.contains([' ', '#', ':', '=']) || text.contains("端口"))
    {
        let issue = REFERENCES.begins(&lower);
        let around = if issue { Around::Issue } else { Around::Alone { exact_case: true } };
        ways.push(vec![place(digits, around)]);
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
        ways.push(vec![place(text, Around::Hash)]);
    }
    ways
}

/// Characters that separate the words of a command or of a qualified name.
const PUNCTUATION: &str = ".:\"'=(),{}<>[]|&;";

/// A name occurs as it is; one with dots or colons, or a command, also word by word. In prose, case
/// is ignored.
fn name(text: &str, quoted: bool) -> Vec<Vec<Place>> {
    let as_written = if quoted { alone } else { loose };
    let bare = text.trim_end_matches("()");
    let mut ways = vec![vec![as_written(bare)]];
    // Text in angle brackets is a placeholder: `run <name>`.
    let words = bare.split_whitespace().filter(|w| !(w.starts_with('<') && w.ends_with('>')));
    let parts: Vec<Place> = words
        .flat_map(|word| word.split(|c: char| PUNCTUATION.contains(c)))
        .filter(|part| part.chars().any(char::is_alphanumeric))
        .map(as_written)
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
                        || BEFORE_NUMBER.contains(word.to_ascii_lowercase().as_str()))
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
    // Magnitude and unit are parsed with the number if they follow it.
    let full = number(head_bytes(here, 64));
    let same_value = plain == value || full.as_ref().is_some_and(|n| n.value == value);
    let money = matches!(unit, "usd" | "eur" | "gbp" | "cny")
        && before.ends_with(['$', '€', '£', '¥', '￥']);
    let same_unit = full.as_ref().is_some_and(|n| n.unit == unit) || money || unit.is_empty();
    let telling = value.bytes().filter(u8::is_ascii_digit).count() >= 3 || value.contains('.');
    same_value && (same_unit || telling)
}
