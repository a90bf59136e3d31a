//! The phrases that say what a statement does: it changes, denies, supposes, adds.

use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use ctx_core::text::Slice;
use ctx_text::{WordList, is_cjk};

/// What a phrase says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cue {
    /// A thing that has one value at a time, by its bit in [`super::Statement::slots`].
    Slot(u32),
    /// A value is new: "now", "改成".
    News,
    /// What was said is taken back: "scratch that", "作废".
    Correction,
    /// A supposition: "if", "如果".
    Hypothetical,
    /// What others say: "the docs", "据说".
    Hearsay,
    /// Something is added to what was said: "also", "也".
    Addition,
    Copula,
    /// Nothing else is allowed: "only", "只".
    Exclusive,
    /// The subject was named before: "this may cost".
    Reference,
    /// Something is open or done.
    Open,
    Done,
    /// The next value no longer holds: "instead of", "不再".
    Past,
    /// The same, if [`Cue::Reaches`] follows: "from 18 to 20".
    Leaves,
    Reaches,
    /// The value before no longer holds: "was replaced".
    Passed,
    /// The words name no subject: "deadline", "时间".
    Generic,
    /// A value follows, in a language without capitals: "部署到阿里云".
    Lead,
    /// A preference of which one holds at a time, by its list.
    Choice(usize),
    /// The words that have to stand beside a preference: "answer in short" is about style, "a short
    /// timeout" is not.
    About(usize),
}

static LISTS: [(Cue, WordList); 33] = [
    (Cue::Slot(0), WordList::new("slots.branch")),
    (Cue::Slot(1), WordList::new("slots.on_call")),
    (Cue::Slot(2), WordList::new("slots.next")),
    (Cue::Slot(3), WordList::new("slots.budget")),
    (Cue::Slot(4), WordList::new("slots.date")),
    (Cue::Slot(5), WordList::new("slots.name")),
    (Cue::Slot(6), WordList::new("slots.port")),
    (Cue::Slot(7), WordList::new("slots.version")),
    (Cue::News, WordList::new("slots.news")),
    (Cue::Correction, WordList::new("slots.corrections")),
    (Cue::Hypothetical, WordList::new("slots.hypothetical")),
    (Cue::Hearsay, WordList::new("slots.hearsay")),
    (Cue::Addition, WordList::new("slots.additions")),
    (Cue::Copula, WordList::new("slots.copulas")),
    (Cue::Exclusive, WordList::new("slots.exclusive")),
    (Cue::Reference, WordList::new("slots.references")),
    (Cue::Open, WordList::new("status.open")),
    (Cue::Done, WordList::new("status.done")),
    (Cue::Past, WordList::new("slots.past")),
    (Cue::Leaves, WordList::new("slots.leaves")),
    (Cue::Reaches, WordList::new("slots.reaches")),
    (Cue::Passed, WordList::new("slots.passed")),
    (Cue::Generic, WordList::new("slots.generic")),
    (Cue::Choice(0), WordList::new("values.style")),
    (Cue::Choice(1), WordList::new("values.units")),
    (Cue::Choice(2), WordList::new("values.languages")),
    (Cue::Choice(3), WordList::new("values.weekdays")),
    (Cue::Choice(4), WordList::new("values.currencies")),
    (Cue::Choice(5), WordList::new("values.themes")),
    (Cue::Choice(6), WordList::new("values.switches")),
    (Cue::About(0), WordList::new("values.of_answers")),
    (Cue::About(5), WordList::new("values.of_themes")),
    (Cue::Lead, WordList::new("slots.leads")),
];

/// All phrases, with the cue of each.
static PHRASES: LazyLock<Option<(AhoCorasick, Vec<Cue>)>> = LazyLock::new(|| {
    let entries = || LISTS.iter().flat_map(|(cue, list)| list.iter().map(|words| (*cue, *words)));
    let all = AhoCorasick::new(entries().map(|(_, words)| words)).ok()?;
    Some((all, entries().map(|(cue, _)| cue).collect()))
});

/// Returns the phrases of a lower-case text, with their places; Latin words only as whole words.
pub(super) fn cues(text: &str) -> Vec<(Cue, Range<usize>)> {
    let Some((phrases, kinds)) = PHRASES.as_ref() else { return Vec::new() };
    let joins = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !is_cjk(c));
    let found = phrases.find_overlapping_iter(text).filter_map(|found| {
        let range = found.range();
        let words = text.slice(range.clone());
        let before = text.slice(..range.start).chars().next_back();
        let after = text.slice(range.end..).chars().next();
        let opens = joins(words.chars().next()) && joins(before);
        let closes = joins(words.chars().next_back()) && joins(after);
        let cue = kinds.get(found.pattern().as_usize())?;
        (!opens && !closes).then_some((*cue, range))
    });
    found.collect()
}
