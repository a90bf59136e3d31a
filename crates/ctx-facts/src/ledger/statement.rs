//! What a statement is about, and which value it gives: whether a later one replaces it.

use std::ops::Range;

use ctx_core::Chars;
use ctx_core::text::{Slice, head};
use ctx_text::{Gist, SpanKind, WordList, gist, is_cjk, normal_form, spans};

/// A statement, parsed for comparison with others.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    /// All content words.
    pub(super) gist: Gist,
    /// The content words that name the subject, sorted.
    subject: Vec<u64>,
    /// Its values, each with its kind, in normal form.
    values: Vec<(ValueKind, String)>,
    /// The values that contain digits, as written from their first digit on.
    written: Vec<String>,
    /// The slots it fills, as bits.
    slots: u32,
    /// Whether it says that something changed: "now", "from now on", "改成".
    is_news: bool,
    /// Whether it says that something is something.
    is_copular: bool,
    /// Whether it says that something is done, or is not.
    status: Option<bool>,
}

/// The kind of a value. Only values of one kind replace each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Number,
    Location,
    Id,
    Name,
    /// A word of a closed list, by its index in [`CLOSED`].
    Closed(usize),
}

/// The maximum length of a value after a word such as 到, in characters.
const LED: usize = 8;

/// The length of a statement that is compared.
const LONGEST: Chars = Chars(400);

/// A thing that has one value at a time.
struct Slot {
    /// The words that name it.
    words: WordList,
    /// The kinds of its values. Two values may be written in different ways: `$400`, "four hundred".
    kinds: &'static [ValueKind],
    /// Whether a project has only one, whatever it is called.
    is_unique: bool,
}

use ValueKind::{Id, Location, Name, Number};

static SLOTS: [Slot; 8] = [
    Slot { words: WordList::new("slots.budget"), kinds: &[Number], is_unique: false },
    Slot { words: WordList::new("slots.date"), kinds: &[Number], is_unique: false },
    Slot { words: WordList::new("slots.name"), kinds: &[Id, Name, Location], is_unique: false },
    Slot { words: WordList::new("slots.branch"), kinds: &[Id, Name, Location], is_unique: true },
    Slot { words: WordList::new("slots.on_call"), kinds: &[Name], is_unique: true },
    Slot { words: WordList::new("slots.secret"), kinds: &[Id, Name, Number], is_unique: false },
    Slot { words: WordList::new("slots.port"), kinds: &[Number, Id], is_unique: false },
    Slot { words: WordList::new("slots.version"), kinds: &[Number, Id], is_unique: false },
];

/// Preferences of which one holds at a time: their values are known. With the words that must stand
/// beside them: "answer in short" is about style, "a short timeout" is not.
static CLOSED: [(WordList, Option<&WordList>); 4] = [
    (WordList::new("values.style"), Some(&ANSWERS)),
    (WordList::new("values.units"), None),
    (WordList::new("values.time_zones"), Some(&TIMES)),
    (WordList::new("values.languages"), Some(&ANSWERS)),
];

static ANSWERS: WordList = WordList::new("values.of_answers");
static TIMES: WordList = WordList::new("values.of_times");

/// Words that say that a value is new.
static NEWS: WordList = WordList::new("slots.news");
/// Words that name no subject: "date", "limit", "is", "set".
static GENERIC: WordList = WordList::new("slots.generic");
static COPULAS: WordList = WordList::new("slots.copulas");
/// Words that say that something is open ("in progress", "not started") or done.
static OPEN: WordList = WordList::new("status.open");
static DONE: WordList = WordList::new("status.done");
/// Words that a value follows, in a language without capitals: "部署到阿里云".
static LEADS: WordList = WordList::new("slots.leads");
static NUMBER_WORDS: WordList = WordList::new("slots.number_words");

impl Statement {
    /// Parses a statement.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let text = head(text, LONGEST);
        let mut out = Self { gist: gist(text), ..Self::default() };
        let mut rest = text.to_owned();
        for span in spans(text) {
            let kind = match span.kind {
                SpanKind::Number => ValueKind::Number,
                SpanKind::Path | SpanKind::Url => ValueKind::Location,
                SpanKind::Id => ValueKind::Id,
                SpanKind::ErrorCode | SpanKind::CodeName => continue,
            };
            // Of an id with its label ("端口是 8080"), the label names the subject.
            let label = span.text.trim_end().rfind(char::is_whitespace).map_or(0, |at| at + 1);
            let value = span.text.slice(label..);
            out.values.push((kind, normal_form(span.kind, value).text().to_owned()));
            out.written.extend(from_digit(value));
            blank(&mut rest, &(span.range.start + label..span.range.end));
        }
        out.names(&mut rest);
        out.led_names(&mut rest);
        let lower = format!(" {} ", spaced(&rest.to_lowercase()));
        out.words(lower);
        out
    }

    /// Takes names and plain numbers out of the text: capitalised words after the first one.
    fn names(&mut self, rest: &mut String) {
        let words: Vec<Range<usize>> = words(rest).collect();
        let is_wide = rest.contains(is_cjk);
        let mut begins = true;
        for range in words {
            let word = rest.slice(range.clone()).to_owned();
            let is_name = word.starts_with(|c: char| c.is_uppercase())
                && (!begins || word.chars().nth(1).is_some_and(|c| !c.is_lowercase()))
                || is_wide && word.starts_with(|c: char| c.is_ascii_alphabetic());
            let is_number = word.bytes().all(|b| b.is_ascii_digit());
            // "FACT:" and "Update:" are labels.
            let is_label = rest.slice(range.end..).starts_with([':', '：']);
            begins = is_label || rest.slice(range.end..).trim_start().starts_with(['.', '!', '?']);
            if is_label || !(is_name || is_number) {
                continue;
            }
            let lower = word.to_lowercase();
            // The capital "A" inside of a sentence is a name: "service A".
            let is_generic = GENERIC.contains(&lower.as_str()) && word != "A";
            if is_generic || is_closed(&lower).is_some() {
                continue;
            }
            let kind = if is_number { ValueKind::Number } else { ValueKind::Name };
            self.written.extend(from_digit(&word).filter(|_| is_number));
            self.values.push((kind, lower));
            blank(rest, &range);
        }
    }

    /// Takes what follows a word such as 到 out of the text, up to the end of the clause.
    fn led_names(&mut self, rest: &mut String) {
        let mut status = OPEN.iter().chain(DONE.iter());
        if !self.values.is_empty()
            || !rest.contains(is_cjk)
            || status.any(|words| find(rest, words).is_some())
        {
            return;
        }
        let found = LEADS.iter().filter(|lead| lead.contains(is_cjk)).filter_map(|lead| {
            let at = rest.rfind(lead)?;
            Some(at + lead.len())
        });
        let Some(start) = found.max() else { return };
        let tail = rest.slice(start..);
        let len = tail.find(|c: char| !c.is_alphanumeric()).unwrap_or(tail.len());
        let range = start..start + len;
        if (2..=LED).contains(&rest.slice(range.clone()).chars().count()) {
            self.values.push((ValueKind::Name, rest.slice(range.clone()).to_owned()));
            blank(rest, &range);
        }
    }

    /// Reads the words of the rest, in lower case with spaces around.
    fn words(&mut self, mut rest: String) {
        for (at, slot) in SLOTS.iter().enumerate() {
            if slot.words.iter().any(|words| find(&rest, words).is_some()) {
                self.slots |= 1 << at;
            }
        }
        self.is_copular = COPULAS.iter().any(|words| find(&rest, words).is_some());
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
        let whole = rest.clone();
        let mut number = String::new();
        for range in words(&rest).collect::<Vec<_>>() {
            let word = rest.slice(range.clone()).to_owned();
            if let Some(list) = is_closed(&word) {
                if is_about(&whole, list) {
                    self.values.push((ValueKind::Closed(list), word.clone()));
                }
            } else if NUMBER_WORDS.contains(&word.as_str()) {
                number.push_str(&word);
                number.push(' ');
            }
            let is_number = NUMBER_WORDS.contains(&word.as_str());
            if is_number || GENERIC.contains(&word.as_str()) || is_closed(&word).is_some() {
                blank(&mut rest, &range);
            }
        }
        if !number.is_empty() {
            self.values.push((ValueKind::Number, number));
        }
        self.subject = gist(&rest).words;
    }

    /// Whether it has a value that can be replaced.
    #[must_use]
    pub fn has_value(&self) -> bool {
        !self.values.is_empty()
    }

    /// Whether this later statement gives the thing of the older one another value: "the timeout is
    /// 30s", "the timeout is now 60s"; "the migration has not started", "the migration is done".
    #[must_use]
    pub fn replaces(&self, old: &Self) -> bool {
        let kind =
            self.values.iter().map(|(kind, _)| *kind).find(|kind| self.differs(old, &[*kind]));
        if matches!(kind, Some(ValueKind::Closed(_))) {
            return true;
        }
        // What both name is part of the subject: "Node" in "the version of Node is 20".
        let named = self.values.iter().filter(|value| old.values.contains(value)).count();
        let words = self.subject.iter().filter(|&word| old.subject.contains(word)).count();
        let shared = words + named;
        let most = self.subject.len().max(old.subject.len()) + named;
        if self.status.is_some() && old.status.is_some() && self.status != old.status {
            return shared > 0 && shared * 5 >= most * 4;
        }
        let slots = || {
            let both = self.slots & old.slots;
            SLOTS
                .iter()
                .enumerate()
                .filter(move |(at, _)| both & (1 << at) != 0)
                .map(|(_, slot)| slot)
        };
        if self.is_news {
            let unnamed = self.subject.is_empty() || old.subject.is_empty();
            let renewed = |slot: &Slot| {
                (words > 0 || unnamed || slot.is_unique) && self.differs(old, slot.kinds)
            };
            if slots().any(renewed) {
                return true;
            }
        }
        let is_value = kind.is_some() || self.is_news && self.differs_in_one_name(old);
        // "Tests run with jest", "tests now run with vitest": one word is another.
        let is_word = !is_value
            && self.values.len() == named
            && old.values.len() == named
            && words + 1 == self.subject.len()
            && words + 1 == old.subject.len();
        match self.is_news {
            true => shared > 0 && (is_value && shared * 3 >= most * 2 || is_word && shared >= 2),
            false if self.is_copular && old.is_copular => {
                let kinds = [Number, Location, Id, Name];
                let one_thing =
                    kinds.iter().filter(|&&kind| self.differs(old, &[kind])).count() == 1;
                shared > 0 && is_value && shared == most && one_thing
                    || is_word && shared > 0 && slots().any(|slot| slot.is_unique)
            }
            false => false,
        }
    }

    /// Whether both have values of these kinds, and none in common.
    fn differs(&self, old: &Self, kinds: &[ValueKind]) -> bool {
        let of = |all: &[(ValueKind, String)]| -> Vec<String> {
            all.iter().filter(|(k, _)| kinds.contains(k)).map(|(_, text)| text.clone()).collect()
        };
        let (new, was) = (of(&self.values), of(&old.values));
        !new.is_empty() && !was.is_empty() && new.iter().all(|value| !was.contains(value))
    }

    /// Whether both name the same things but one: "to AWS with Docker", "to Fly with Docker".
    fn differs_in_one_name(&self, old: &Self) -> bool {
        let only = |a: &Self, b: &Self| -> Vec<ValueKind> {
            a.values.iter().filter(|v| !b.values.contains(v)).map(|(kind, _)| *kind).collect()
        };
        let (new, was) = (only(self, old), only(old, self));
        new.len() == 1 && new == was && self.values.len() == old.values.len()
    }

    /// Whether it says that its value is new.
    pub(super) fn is_news(&self) -> bool {
        self.is_news
    }

    /// Whether it says that something is something.
    pub(super) fn is_copular(&self) -> bool {
        self.is_copular
    }

    /// Whether it gives a new value without naming the thing: "现在改成 9090", "now it is 60s".
    pub(super) fn only_renews(&self) -> bool {
        self.is_news && self.subject.is_empty() && self.slots == 0 && self.written.len() == 1
    }

    /// Returns the new and the old value, if each statement has one, written alike: 8080 and 9090,
    /// 30s and 60s.
    pub(super) fn renews<'s>(&'s self, old: &'s Self) -> Option<(&'s str, &'s str)> {
        let shape =
            |value: &str| -> String { value.chars().filter(|c| !c.is_ascii_digit()).collect() };
        match (self.written.as_slice(), old.written.as_slice()) {
            ([new], [was]) if new != was && shape(new) == shape(was) => Some((new, was)),
            _ => None,
        }
    }
}

fn from_digit(value: &str) -> Option<String> {
    let at = value.find(|c: char| c.is_ascii_digit())?;
    value.get(at..).map(str::to_owned)
}

fn is_closed(word: &str) -> Option<usize> {
    CLOSED.iter().position(|(list, _)| list.contains(&word))
}

/// Whether a lower-case text is about the preference.
fn is_about(text: &str, list: usize) -> bool {
    let about = CLOSED.get(list).and_then(|(_, about)| *about);
    about.is_none_or(|about| about.iter().any(|words| find(text, words).is_some()))
}

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
