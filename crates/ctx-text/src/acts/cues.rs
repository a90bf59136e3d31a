//! The words that classify a sentence, all found in one pass.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use ctx_core::text::{Slice, tail};
use ctx_core::{Chars, text};

use crate::WordList;
use crate::fold::is_cjk;

/// Words that may precede the verb at the beginning of a sentence.
static BEFORE_VERB: WordList = WordList::new("request.before_verb");

/// The length of a sentence that is examined; the beginning is enough to classify it.
const LONGEST: Chars = Chars(2_000);

/// A list, by its index in [`LISTS`].
#[derive(Clone, Copy)]
pub(super) enum List {
    Constraint,
    Standing,
    Revokes,
    Decision,
    Contrast,
    Question,
    Request,
    Tentative,
    Asks,
    Announces,
    Chatter,
    DoneFirst,
    Done,
    NotYet,
    Blocked,
    Decisions,
    Next,
    Findings,
    Demands,
    Strict,
    Causes,
    PutOff,
}

/// The lists, in the order of [`List`]. `^cue` counts only at the beginning of a clause, `!cue` cancels the
/// cues inside it.
static LISTS: [WordList; 22] = [
    WordList::new("cues.constraint"),
    WordList::new("cues.standing"),
    WordList::new("cues.revokes"),
    WordList::new("cues.decision"),
    WordList::new("cues.contrast"),
    WordList::new("cues.question"),
    WordList::new("cues.request"),
    WordList::new("cues.tentative"),
    WordList::new("signals.asks"),
    WordList::new("signals.announces"),
    WordList::new("signals.chatter"),
    WordList::new("signals.done_first"),
    WordList::new("signals.done"),
    WordList::new("signals.not_yet"),
    WordList::new("signals.blocked"),
    WordList::new("signals.decisions"),
    WordList::new("signals.next"),
    WordList::new("signals.findings"),
    WordList::new("signals.demands"),
    WordList::new("signals.strict"),
    WordList::new("signals.causes"),
    WordList::new("signals.put_off"),
];

/// An entry of a list.
struct Cue {
    list: usize,
    begins_clause: bool,
    cancels: bool,
}

struct Cues {
    finder: AhoCorasick,
    /// The entries with the words of each pattern.
    of: Vec<Vec<Cue>>,
}

static CUES: LazyLock<Option<Cues>> = LazyLock::new(|| {
    let mut by_words: BTreeMap<&str, Vec<Cue>> = BTreeMap::new();
    for (list, cues) in LISTS.iter().enumerate() {
        for cue in cues.iter() {
            let (begins_clause, cancels) = (cue.starts_with('^'), cue.starts_with('!'));
            let words = cue.trim_start_matches(['^', '!']);
            by_words.entry(words).or_default().push(Cue { list, begins_clause, cancels });
        }
    }
    let finder = AhoCorasick::builder().ascii_case_insensitive(true).build(by_words.keys()).ok()?;
    Some(Cues { finder, of: by_words.into_values().collect() })
});

/// The words found in a sentence.
pub(super) struct Found {
    /// The beginning of the sentence in lower case.
    pub(super) lower: String,
    /// The start of each list's first word.
    first: [usize; LISTS.len()],
    /// For each list, the end of the word that ends first.
    ended: [usize; LISTS.len()],
    /// The lists with a word at the very beginning.
    opening: [bool; LISTS.len()],
}

impl Found {
    /// Finds all words in a sentence. A Latin word counts only as a whole word.
    pub(super) fn of(sentence: &str) -> Self {
        let lower = text::head(sentence, LONGEST).to_lowercase().replace('’', "'");
        let start = lower.find(|c: char| c.is_alphanumeric()).unwrap_or(lower.len());
        let mut found = Self {
            lower,
            first: [usize::MAX; LISTS.len()],
            ended: [usize::MAX; LISTS.len()],
            opening: [false; LISTS.len()],
        };
        let hits = found.hits();
        let covers = |outer: &Range<usize>, inner: &Range<usize>| {
            outer.start <= inner.start && inner.end <= outer.end
        };
        for (cue, range) in hits.iter().filter(|(cue, _)| !cue.cancels) {
            let mut others = hits.iter().filter(|(other, _)| other.cancels);
            if others.any(|(other, outer)| other.list == cue.list && covers(outer, range)) {
                continue;
            }
            let list = cue.list;
            found.opening[list] |= range.start == start;
            found.first[list] = found.first[list].min(range.start);
            found.ended[list] = found.ended[list].min(range.end);
        }
        found
    }

    /// Returns the entries found, and where.
    fn hits(&self) -> Vec<(&'static Cue, Range<usize>)> {
        let mut hits = Vec::new();
        let Some(cues) = CUES.as_ref() else { return hits };
        for hit in cues.finder.find_overlapping_iter(&self.lower) {
            let range = hit.start()..hit.end();
            if is_whole(&self.lower, range.start, range.end) {
                let of = cues.of.get(hit.pattern().as_usize()).into_iter().flatten();
                let of = of.filter(|c| !c.begins_clause || begins_clause(&self.lower, range.start));
                hits.extend(of.map(|cue| (cue, range.clone())));
            }
        }
        hits
    }

    /// Whether the sentence contains a word of the list.
    pub(super) fn has(&self, list: List) -> bool {
        self.first[list as usize] != usize::MAX
    }

    /// Whether the sentence begins with a word of the list.
    pub(super) fn opens(&self, list: List) -> bool {
        self.opening[list as usize]
    }

    /// Whether a word of `list` precedes the first of `other`.
    pub(super) fn precedes(&self, list: List, other: List) -> bool {
        self.ended[list as usize] <= self.first[other as usize]
    }
}

/// Whether a match in letters is a whole word, unlike "go" in "explain.go".
fn is_whole(text: &str, start: usize, end: usize) -> bool {
    let word = |c: char| (c.is_alphanumeric() && !is_cjk(c)) || matches!(c, '_' | '-' | '/');
    let cue = text.slice(start..end);
    let (head, rest) = (text.slice(..start), text.slice(end..));
    let before = head.strip_suffix('.').unwrap_or(head).chars().next_back();
    let suffix = rest.strip_prefix('.').filter(|suffix| suffix.starts_with(char::is_alphanumeric));
    let after = suffix.unwrap_or(rest).chars().next();
    // `n't` is always attached to a word.
    let opens = cue.starts_with(word) && !cue.starts_with("n't");
    let closes = cue.ends_with(word);
    let goes_on = |c: char| word(c) || c == '\'';
    !(opens && before.is_some_and(word) || closes && after.is_some_and(goes_on))
}

/// Whether a clause begins at `at`: at the start, after punctuation, or after an introductory word.
fn begins_clause(text: &str, at: usize) -> bool {
    // One preceding word is enough.
    let before = tail(text.slice(..at), Chars(32));
    let before = before.trim_end_matches([' ', '*', '_']);
    let Some(last) = before.chars().next_back() else { return true };
    if !last.is_alphanumeric() && !matches!(last, '\'' | '`' | '/') {
        return true;
    }
    let word =
        before.rsplit(|c: char| !c.is_alphanumeric() && c != '\'').next().unwrap_or_default();
    // "locally use it", "definitely never".
    let adverb = word.len() > 4 && word.ends_with("ly");
    adverb || BEFORE_VERB.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_has_words_in_lower_case() {
        for list in &LISTS {
            assert!(list.len() > 3, "{list:?}");
            assert!(list.iter().all(|cue| *cue == cue.to_lowercase()), "{list:?}");
        }
        assert!(CUES.is_some());
    }

    #[test]
    fn latin_words_are_found_whole_and_chinese_ones_anywhere() {
        let found = Found::of("The redone login isn't 已修复");
        assert!(!found.has(List::Next) && !found.opens(List::Done));
        assert!(found.has(List::Done) && found.has(List::NotYet));
        assert!(found.precedes(List::NotYet, List::Done));
        assert!(!Found::of("redone").has(List::Done));
        assert!(Found::of("done, not yet").opens(List::DoneFirst));
    }
}
