//! What a statement is about, and which values it gives.

mod relation;
mod values;

use std::ops::Range;

use ctx_core::Chars;
use ctx_core::text::{Slice, head};
use ctx_text::{Gist, WordList, gist, is_cjk, is_courtesy};

use values::Value;

pub use relation::{Comparison, Feature};

/// A statement, parsed for comparison with others.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    /// All content words.
    pub(crate) gist: Gist,
    /// The content words that name the subject, sorted.
    subject: Vec<u64>,
    /// Words with the word that specifies them: "staging port", "the pool for readers".
    specified: Vec<(u64, u64)>,
    values: Vec<Value>,
    /// The values that contain digits, as written from their first digit on.
    written: Vec<String>,
    /// The slots it fills, as bits.
    slots: u32,
    /// Whether it says that something changed: "now", "from now on", "改成".
    is_news: bool,
    /// Whether it takes back what was said: "scratch that", "not any more", "作废".
    corrects: bool,
    /// Whether it says that something is something.
    is_copular: bool,
    /// Whether it allows nothing else: "only", "at most", "只".
    is_exclusive: bool,
    /// Whether it says that something is done, or is not.
    status: Option<bool>,
    /// Whether it supposes, or reports what others say.
    is_hypothetical: bool,
    /// Whether it asks for what holds.
    asks: bool,
    /// Whether it consists of clauses: a new value often comes with its reason.
    has_clauses: bool,
}

/// The length of a statement that is compared.
const LONGEST: Chars = Chars(400);

/// Things that have one value at a time.
static SLOTS: [WordList; 9] = [
    WordList::new("slots.branch"),
    WordList::new("slots.on_call"),
    WordList::new("slots.next"),
    WordList::new("slots.budget"),
    WordList::new("slots.date"),
    WordList::new("slots.name"),
    WordList::new("slots.secret"),
    WordList::new("slots.port"),
    WordList::new("slots.version"),
];

/// The first slots: a project has only one of these, whatever it is called.
const UNIQUE: u32 = 0b111;

/// Words that say that a value is new.
static NEWS: WordList = WordList::new("slots.news");
/// Words that take back what was said.
static CORRECTIONS: WordList = WordList::new("slots.corrections");
/// Words of questions, suppositions and hearsay.
static HYPOTHETICAL: WordList = WordList::new("slots.hypothetical");
/// Words that name no subject: "date", "limit", "is", "set".
static GENERIC: WordList = WordList::new("slots.generic");
static COPULAS: WordList = WordList::new("slots.copulas");
static EXCLUSIVE: WordList = WordList::new("slots.exclusive");
/// Words that say that something is open ("in progress", "not started") or done.
static OPEN: WordList = WordList::new("status.open");
static DONE: WordList = WordList::new("status.done");

impl Statement {
    /// Parses a statement.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let text = head(text, LONGEST);
        let mut out = Self { gist: gist(text), ..Self::default() };
        let mut rest = text.to_owned();
        out.spans(text, &mut rest);
        out.times(&mut rest);
        out.names(&mut rest);
        out.led_names(&mut rest);
        out.words(format!(" {} ", spaced(&rest.to_lowercase())));
        let clauses = text.split([',', ';', ':', '，', '；', '：']).filter(|it| !is_courtesy(it));
        out.has_clauses = clauses.count() > 1;
        out.asks = out.is_hypothetical && text.trim_end().ends_with(['?', '？']);
        out
    }

    /// Reads the words of the rest, in lower case with spaces around.
    fn words(&mut self, mut rest: String) {
        for (at, slot) in SLOTS.iter().enumerate() {
            if slot.iter().any(|words| find(&rest, words).is_some()) {
                self.slots |= 1 << at;
            }
        }
        let says = |list: &WordList| list.iter().any(|words| find(&rest, words).is_some());
        self.is_copular = says(&COPULAS);
        self.is_exclusive = says(&EXCLUSIVE);
        self.is_hypothetical = says(&HYPOTHETICAL);
        self.corrects = says(&CORRECTIONS);
        for (list, status) in [(&OPEN, false), (&DONE, true)] {
            while let Some(range) = list.iter().find_map(|words| find(&rest, words)) {
                self.status.get_or_insert(status);
                blank(&mut rest, &range);
            }
        }
        for news in NEWS.iter() {
            while let Some(range) = find(&rest, news) {
                self.is_news = true;
                blank(&mut rest, &range);
            }
        }
        self.specified.extend(specified(&rest));
        self.choices(&mut rest);
        for range in words(&rest).collect::<Vec<_>>() {
            if GENERIC.contains(&rest.slice(range.clone())) {
                blank(&mut rest, &range);
            }
        }
        self.subject = gist(&rest).words;
    }

    /// Whether it says that its value is new.
    pub(crate) fn is_news(&self) -> bool {
        self.is_news
    }

    /// Whether it says that something is something.
    #[must_use]
    pub fn is_copular(&self) -> bool {
        self.is_copular
    }

    /// Whether it gives a new value without naming the thing: "现在改成 9090", "now it is 60s".
    pub(crate) fn only_renews(&self) -> bool {
        self.is_news
            && self.subject.is_empty()
            && self.slots == 0
            && self.values.len() == 1
            && self.written.len() == 1
    }

    /// Returns the new and the old value, if each statement has one, written alike: 8080 and 9090,
    /// 30s and 60s.
    pub(crate) fn renews<'s>(&'s self, old: &'s Self) -> Option<(&'s str, &'s str)> {
        let shape =
            |value: &str| -> String { value.chars().filter(|c| !c.is_ascii_digit()).collect() };
        match (self.written.as_slice(), old.written.as_slice()) {
            ([new], [was]) if new != was && shape(new) == shape(was) => Some((new, was)),
            _ => None,
        }
    }
}

/// Returns the words of a lower-case text that another word specifies, with that word: the one right
/// before, or the one after "for" or "of".
fn specified(text: &str) -> Vec<(u64, u64)> {
    let content = |range: Range<usize>| content_word(text.slice(range));
    let mut out = Vec::new();
    let ranges: Vec<Range<usize>> = words(text).collect();
    for (at, range) in ranges.iter().enumerate() {
        let word = text.slice(range.clone());
        if word.contains(is_cjk) {
            let chars: Vec<(usize, char)> = word.char_indices().collect();
            for three in chars.windows(3) {
                let [(a, first), (b, _), (c, last)] = three else { continue };
                let end = c + last.len_utf8();
                if PARTICLES.iter().all(|particle| !particle.starts_with(*first)) {
                    let (own, before) = (word.slice(*b..end), word.slice(*a..*c));
                    out.extend(content_word(own).zip(content_word(before)));
                }
            }
            continue;
        }
        let Some(own) = content(range.clone()) else { continue };
        let Some(before) = at.checked_sub(1).and_then(|at| ranges.get(at)) else { continue };
        let gap = text.slice(before.end..range.start);
        if matches!(gap, " " | "'s " | "-") {
            out.extend(content(before.clone()).map(|before| (own, before)));
        }
        let lead = text.slice(before.clone());
        if matches!(lead, "for" | "of")
            && let Some(head) = at.checked_sub(2).and_then(|at| ranges.get(at))
        {
            out.extend(content(head.clone()).map(|head| (head.rotate_left(1), own)));
        }
    }
    out
}

/// Returns a word as a gist has it; `None` for a stop word.
fn content_word(word: &str) -> Option<u64> {
    gist(word).words.first().copied()
}

/// Chinese characters that specify nothing: 的, 是, 在.
static PARTICLES: WordList = WordList::new("slots.particles");

/// Finds words in a lower-case text; Latin words only as whole words.
fn find(text: &str, words: &str) -> Option<Range<usize>> {
    let joins = |c: char| c.is_alphanumeric() && !is_cjk(c);
    let places = text.match_indices(words).map(|(at, found)| at..at + found.len());
    places.into_iter().find(|range| {
        let before = text.slice(..range.start).chars().next_back();
        let after = text.slice(range.end..).chars().next();
        let opens = words.starts_with(joins) && before.is_some_and(joins);
        let closes = words.ends_with(joins) && after.is_some_and(joins);
        !opens && !closes
    })
}

/// Returns the words of a text: runs of letters and digits, and what joins them inside.
fn words(text: &str) -> impl Iterator<Item = Range<usize>> {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '\'');
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text.get(at..)?.find(char::is_alphanumeric)?;
        let rest = text.get(start..)?;
        let len = rest.find(|c: char| !is_part(c)).unwrap_or(rest.len());
        at = start + len;
        let word = rest.get(..len)?.trim_end_matches(['-', '_', '\'']);
        Some(start..start + word.len())
    })
}

/// Replaces a part of a text by spaces.
fn blank(text: &mut String, range: &Range<usize>) {
    if text.get(range.clone()).is_some() {
        text.replace_range(range.clone(), &" ".repeat(range.len()));
    }
}

/// Puts spaces between Chinese and other characters.
fn spaced(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    let mut wide = false;
    for c in text.chars() {
        if is_cjk(c) != wide {
            wide = !wide;
            out.push(' ');
        }
        out.push(c);
    }
    out
}
