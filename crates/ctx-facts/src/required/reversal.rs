//! Withdrawn constraints, reversed decisions, changed values.

use ctx_core::text::Slice;
use ctx_text::WordList;
use std::collections::HashMap;

use super::passages::Passage;
use crate::FactKind;
use ctx_text::{Gist, gist, is_cjk};

/// The content of a statement, for comparison with others.
#[derive(Clone, Debug)]
pub struct Words {
    gist: Gist,
    /// The words without a digit.
    plain: Vec<u64>,
    /// The words with a digit, as written.
    values: Vec<String>,
    /// Whether it says that something holds now.
    is_news: bool,
}

impl Words {
    /// Parses a statement.
    pub fn of(text: &str) -> Self {
        let lower = text.chars().take(LONGEST).collect::<String>().to_lowercase();
        let (mut plain, mut values, mut is_news) = (String::new(), Vec::new(), false);
        // Chinese has no spaces: the words for "now" and "is" are inside a run of characters.
        let mut spaced = String::with_capacity(lower.len() + 16);
        let mut wide = false;
        for c in lower.chars() {
            if is_cjk(c) != wide {
                wide = !wide;
                spaced.push(' ');
            }
            spaced.push(c);
        }
        if spaced.contains(is_cjk) {
            is_news = CHINESE_NEWS.iter().any(|news| spaced.contains(news));
            for word in CHINESE_NEWS.iter().chain(CHINESE_IS) {
                spaced = spaced.replace(word, " ");
            }
        }
        for word in spaced.split_whitespace() {
            let bare = word.trim_matches(|c: char| !c.is_alphanumeric());
            if matches!(bare, "now" | "actually") {
                is_news = true;
            } else if bare.chars().any(|c| c.is_ascii_digit()) {
                values.push(bare.to_owned());
            } else {
                plain.push_str(word);
                plain.push(' ');
            }
        }
        Self { gist: gist(&lower), plain: gist(&plain).words, values, is_news }
    }

    /// Whether it gives a new value without naming the thing: "现在改成 9090", "now it is 60s".
    pub fn only_renews(&self) -> bool {
        self.is_news && self.plain.is_empty() && self.values.len() == 1
    }

    /// Whether both contain one value of the same kind: 8080 and 9090, 30s and 60s.
    pub fn is_of_kind(&self, other: &Self) -> bool {
        let kind =
            |value: &String| -> String { value.chars().filter(|c| !c.is_ascii_digit()).collect() };
        match (self.values.as_slice(), other.values.as_slice()) {
            ([own], [other]) => kind(own) == kind(other) && own != other,
            _ => false,
        }
    }

    /// Whether it contains a number.
    pub fn has_value(&self) -> bool {
        !self.values.is_empty()
    }
}

/// Whether a withdrawal covers everything that the older demand requires.
pub fn takes_back(later: &Words, old: &Words) -> bool {
    whole(&later.gist, &old.gist)
}

/// Whether at least half of the old words occur in the later statement.
fn whole(later: &Gist, old: &Gist) -> bool {
    let shared = later.words.iter().filter(|&&word| old.says(word)).count();
    let enough = shared * 2 >= old.words.len();
    shared > 0 && (enough || (shared > 1 && shared * 2 + 1 >= old.words.len()))
}

/// Whether the later of two statements gives the same thing another value: "the timeout is 30s",
/// "the timeout is now 60s".
pub fn outdates(later: &Words, old: &Words) -> bool {
    if !later.is_news
        || later.values == old.values
        || later.values.is_empty()
        || old.values.is_empty()
    {
        return false;
    }
    let shared = later.plain.iter().filter(|word| old.plain.contains(word)).count();
    shared > 0 && shared * 3 >= later.plain.len().max(old.plain.len()) * 2
}

/// Chinese words that say that something holds now. Longer ones first.
static CHINESE_NEWS: WordList = WordList::new("reversal.news");
/// Chinese words that only express "is".
const CHINESE_IS: &[&str] = &["设置为", "设为", "是", "为", "了", "已经", "已", "先", "用"];

/// The maximum number of characters compared.
const LONGEST: usize = 400;

/// The factor applied to the weight of a passage that no longer holds.
const LEFT: f32 = 0.2;

/// Lowers the weight of a passage that a later one withdraws: both have the same subject, and the
/// later one says so ("actually", "算了") or negates what the earlier one affirms.
pub(super) fn lower_reversed(passages: &mut Vec<Passage>) {
    let gists: Vec<Gist> = passages.iter().map(|passage| gist(&passage.text)).collect();
    // For each word, the passages that contain it. A frequent word does not relate two of them.
    let mut sayers: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut lowered = vec![false; passages.len()];
    let mut raised = vec![false; passages.len()];
    let mut withdrawn = vec![false; passages.len()];
    for (later, passage) in passages.iter().enumerate() {
        let Some(own) = gists.get(later) else { continue };
        if !is_binding(passage.kind) {
            continue;
        }
        let earlier = own.words.iter().filter_map(|word| sayers.get(word));
        let mut shared: HashMap<usize, usize> = HashMap::new();
        for &place in earlier.filter(|places| places.len() <= 40).flatten() {
            *shared.entry(place).or_default() += 1;
        }
        for (place, count) in shared {
            let (Some(old), Some(gist)) = (passages.get(place), gists.get(place)) else { continue };
            let close = count * 2 >= gist.words.len().min(own.words.len());
            let may = old.at < passage.at && (passage.by_user || old.kind == FactKind::Decision);
            let flips =
                own.words.iter().any(|&w| gist.says(w) && own.negates(w) != gist.negates(w));
            let taken_back = passage.revokes && passage.by_user && whole(own, gist);
            if may && taken_back {
                withdrawn[place] = true;
                raised[later] |= old.kind != FactKind::Decision;
            } else if may && close && (passage.revokes || (flips && count >= 1)) {
                lowered[place] = true;
                raised[later] |= old.kind != FactKind::Decision;
            }
        }
        for &word in &own.words {
            sayers.entry(word).or_default().push(later);
        }
    }
    outdate(passages, &mut withdrawn);
    for ((passage, lowered), raised) in passages.iter_mut().zip(lowered).zip(raised) {
        if lowered {
            passage.weight *= LEFT;
        }
        // The replacement of a demand is a demand: "forget npm, switch to pnpm".
        if raised && passage.kind == FactKind::Decision {
            passage.kind = FactKind::Constraint;
        }
    }
    let mut withdrawn = withdrawn.into_iter();
    passages.retain(|_| !withdrawn.next().unwrap_or_default());
}

/// Marks passages that have another value by now.
fn outdate(passages: &[Passage], withdrawn: &mut [bool]) {
    let valued = |passage: &Passage| {
        is_binding(passage.kind) && passage.text.contains(|c: char| c.is_ascii_digit())
    };
    let all: Vec<(usize, Words)> = passages
        .iter()
        .enumerate()
        .filter(|(_, passage)| valued(passage))
        .map(|(n, passage)| (n, Words::of(&passage.text)))
        .collect();
    // Statements with "now" are rare; the newest are examined.
    let news = all.iter().enumerate().rev().filter(|(_, (_, words))| words.is_news).take(COMPARED);
    for (at, (later, new)) in news {
        for (old, words) in all.slice(..at).iter().rev().take(COMPARED) {
            let before = passages[*old].at < passages[*later].at;
            let may = passages[*later].by_user || !passages[*old].by_user;
            withdrawn[*old] |= before && may && outdates(new, words);
        }
    }
}

/// The maximum number of values that are compared.
const COMPARED: usize = 200;

fn is_binding(kind: FactKind) -> bool {
    matches!(kind, FactKind::Pinned | FactKind::Constraint | FactKind::Decision)
}
