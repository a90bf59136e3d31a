//! Constraints that were taken back, decisions that were reversed, values that changed.

use std::collections::HashMap;

use super::passages::Passage;
use crate::FactKind;
use crate::text::{Gist, gist, is_cjk};

/// What a statement says, to be compared with others.
#[derive(Clone, Debug)]
pub(crate) struct Words {
    gist: Gist,
    /// Its words without those that hold a digit.
    plain: Vec<u64>,
    /// Those that do, as they are written.
    values: Vec<String>,
    /// Whether it says that something is so now.
    is_news: bool,
}

impl Words {
    pub(crate) fn of(text: &str) -> Self {
        let lower = text.chars().take(LONGEST).collect::<String>().to_lowercase();
        let (mut plain, mut values, mut is_news) = (String::new(), Vec::new(), false);
        // Chinese has no blanks: what says "now", and "is", stands within a run of characters.
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

    /// Whether it gives something a new value without saying what: "现在改成 9090", "now it is 60s".
    pub(crate) fn only_renews(&self) -> bool {
        self.is_news && self.plain.is_empty() && self.values.len() == 1
    }

    /// Whether both hold one value of one kind: 8080 and 9090, 30s and 60s.
    pub(crate) fn is_of_kind(&self, other: &Self) -> bool {
        let kind =
            |value: &String| -> String { value.chars().filter(|c| !c.is_ascii_digit()).collect() };
        match (self.values.as_slice(), other.values.as_slice()) {
            ([own], [other]) => kind(own) == kind(other) && own != other,
            _ => false,
        }
    }

    /// Whether it holds a number.
    pub(crate) fn has_value(&self) -> bool {
        !self.values.is_empty()
    }
}

/// Whether a demand that takes something back speaks of all that the older one demands.
pub(crate) fn takes_back(later: &Words, old: &Words) -> bool {
    whole(&later.gist, &old.gist)
}

/// Half of what the old one says is said again.
fn whole(later: &Gist, old: &Gist) -> bool {
    let shared = later.words.iter().filter(|&&word| old.says(word)).count();
    let enough = shared * 2 >= old.words.len();
    shared > 0 && (enough || (shared > 1 && shared * 2 + 1 >= old.words.len()))
}

/// Whether the later of two statements gives the same thing another value: "the timeout is 30s",
/// "the timeout is now 60s".
pub(crate) fn outdates(later: &Words, old: &Words) -> bool {
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

/// What says in Chinese that something is so now. Longer ones first.
const CHINESE_NEWS: &[&str] = &[
    "现在",
    "如今",
    "目前",
    "改成",
    "改为",
    "改到",
    "变成",
    "变为",
    "换成",
    "换为",
    "调到",
    "调成",
    "调整为",
    "升到",
    "降到",
];
/// Words of Chinese that say that something is, and nothing of what.
const CHINESE_IS: &[&str] = &["设置为", "设为", "是", "为", "了", "已经", "已", "先", "用"];

/// So much of a statement is compared.
const LONGEST: usize = 400;

/// What is left of the weight of a passage that no longer holds.
const LEFT: f32 = 0.2;

/// Lowers the weight of what a later passage takes back. It does where both speak of the same and the
/// later one says so ("actually", "算了"), or negates what the earlier one affirms.
pub(super) fn lower_reversed(passages: &mut Vec<Passage>) {
    let gists: Vec<Gist> = passages.iter().map(|passage| gist(&passage.text)).collect();
    // By word, the passages so far that say it. A word of many passages tells nothing about two.
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
        // What takes the place of a demand is one: "forget npm, switch to pnpm".
        if raised && passage.kind == FactKind::Decision {
            passage.kind = FactKind::Constraint;
        }
    }
    let mut withdrawn = withdrawn.into_iter();
    passages.retain(|_| !withdrawn.next().unwrap_or_default());
}

/// Marks what holds another value by now.
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
    // What says "now" is rare; the newest of it are looked at.
    let news = all.iter().enumerate().rev().filter(|(_, (_, words))| words.is_news).take(COMPARED);
    for (at, (later, new)) in news {
        for (old, words) in all.get(..at).unwrap_or_default().iter().rev().take(COMPARED) {
            let before = passages[*old].at < passages[*later].at;
            let may = passages[*later].by_user || !passages[*old].by_user;
            withdrawn[*old] |= before && may && outdates(new, words);
        }
    }
}

/// So many values are compared with each other.
const COMPARED: usize = 200;

fn is_binding(kind: FactKind) -> bool {
    matches!(kind, FactKind::Pinned | FactKind::Constraint | FactKind::Decision)
}
