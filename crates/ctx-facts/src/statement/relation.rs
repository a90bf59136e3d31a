//! Whether a later statement replaces an earlier one.

use super::values::{PREFERENCES, Value, ValueKind};
use super::{Statement, UNIQUE};

/// What two statements have in common, and where they differ: each 0 to 1.
///
/// The order is that of [`WEIGHTS`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Comparison {
    features: [f32; FEATURES],
    is_candidate: bool,
    /// Whether one says exactly what the other denies.
    is_denial: bool,
}

/// The number of features.
const FEATURES: usize = 28;

/// The names of the features, for `cargo run -p ctx-facts --example pairs`.
pub const FEATURE_NAMES: [&str; FEATURES] = [
    "bias",
    "news",
    "corrects",
    "coverage",
    "shared",
    "alike",
    "number",
    "kind",
    "choice",
    "slot",
    "contrast",
    "past",
    "status",
    "same",
    "kinds",
    "news_value",
    "news_coverage",
    "value_coverage",
    "hypothetical",
    "negated",
    "beside",
    "word",
    "clauses",
    "clauses_value",
    "is",
    "preference",
    "task",
    "unique",
];

/// Fitted by `cargo xtask fit supersession`.
const WEIGHTS: [f32; FEATURES] = [
    -5.13, 0.00, 2.93, 0.62, 0.56, 2.48, 2.46, 0.74, 4.03, 1.50, -3.95, 1.60, 4.78, 0.42, -3.23,
    1.74, 1.43, 0.35, -0.72, -0.08, 1.69, 1.54, 1.47, 0.40, 3.77, 2.66, 0.04, 2.43,
];

impl Comparison {
    /// Compares a later statement with an earlier one.
    #[must_use]
    pub fn of(new: &Statement, old: &Statement) -> Self {
        let words = new.subject.iter().filter(|&word| old.says(*word)).count();
        let holds = |v: &&Value| !v.is_past;
        let named = new.values.iter().filter(holds).filter(|v| old.gives(v)).count();
        let least = new.subject.len().min(old.subject.len());
        let all = new.subject.len() + old.subject.len() + named - words;
        let (shared, least) = (words + named, least + named);
        let differs = |of: fn(ValueKind) -> bool| {
            let mut own = new.values.iter().filter(holds).map(|v| v.kind).filter(|kind| of(*kind));
            own.any(|kind| new.differs_in(old, kind))
        };
        let is_number =
            |kind| matches!(kind, ValueKind::Number(_) | ValueKind::Date | ValueKind::Time);
        let number = differs(is_number);
        let preference =
            differs(|kind| matches!(kind, ValueKind::Choice(list) if list < PREFERENCES));
        let choice = differs(|kind| matches!(kind, ValueKind::Choice(_) | ValueKind::Rival(_)));
        let kinds = [
            new.differs(old, is_number),
            differs(|kind| matches!(kind, ValueKind::Location)),
            differs(|kind| matches!(kind, ValueKind::Id)),
            differs(|kind| matches!(kind, ValueKind::Name)),
        ];
        let different = kinds.iter().filter(|is| **is).count();
        let any = different > 0 || choice;
        let unnamed = new.subject.is_empty() || old.subject.is_empty();
        let slots = new.slots & old.slots & if shared > 0 || unnamed { u32::MAX } else { UNIQUE };
        let slot = slots != 0;
        let contrast = new.specified.iter().any(|(word, by)| {
            let others = || old.specified.iter().filter(|(o, _)| o == word);
            others().next().is_some()
                && others().all(|(_, was)| was != by && !new.says(*was) && !old.says(*by))
        });
        let past = new.values.iter().any(|v| v.is_past && old.gives(v));
        let flips = |a: &Statement, b: &Statement| {
            a.gist.words.iter().any(|&w| b.gist.says(w) && a.gist.negates(w) != b.gist.negates(w))
        };
        let status = new.status.is_some() && old.status.is_some() && new.status != old.status;
        // "The branch is main", "Tests now run with vitest": one word is another.
        let is_word = !any
            && shared > 0
            && words + 1 == new.subject.len()
            && words + 1 == old.subject.len()
            && new.others(old) + old.others(new) == 0;
        let kinds = different > 1 || new.others(old) > 1 && old.others(new) > 1;
        let is_same = any && !kinds && new.subject == old.subject || is_word && (slot || named > 0);
        let coverage = shared as f32 / least.max(1) as f32;
        let news = new.is_news || new.corrects;
        let bit = |is: bool| f32::from(u8::from(is));
        Self {
            is_denial: new.gist.words == old.gist.words && flips(new, old) && !new.is_hypothetical,
            is_candidate: new.gist != old.gist
                && !new.asks
                && (!new.is_hypothetical || new.corrects)
                && (shared > 0 || slot || choice || past),
            features: [
                1.0,
                bit(new.is_news),
                bit(new.corrects),
                coverage,
                shared.min(4) as f32 / 4.0,
                shared as f32 / all.max(1) as f32,
                bit(number),
                bit(any && !number),
                bit(choice),
                bit(slot),
                bit(contrast),
                bit(past),
                bit(status) * coverage,
                bit(!any && !past && !old.values.is_empty() && named == old.values.len()),
                bit(kinds),
                bit(news && any),
                bit(news) * coverage,
                bit(any) * coverage,
                bit(new.is_hypothetical),
                bit(flips(new, old)) * coverage,
                bit(new.has_beside(old)),
                bit(is_word),
                bit(new.has_clauses),
                bit(new.has_clauses && any),
                bit(is_same && new.is_copular && old.is_copular),
                bit(preference),
                bit(new.is_task),
                bit(slots & UNIQUE != 0 && news && any),
            ],
        }
    }

    /// Returns the features.
    #[must_use]
    pub fn features(&self) -> [f32; FEATURES] {
        self.features
    }

    /// Whether the later statement replaces the earlier one.
    #[must_use]
    pub fn replaces(&self) -> bool {
        let sum: f32 = self.features.iter().zip(WEIGHTS).map(|(is, weight)| is * weight).sum();
        self.is_denial || self.is_candidate && sum > 0.0
    }
}

impl Statement {
    /// Whether this later statement gives the thing of the older one another value: "the timeout is
    /// 30s", "the timeout is now 60s"; "the migration has not started", "the migration is done".
    #[must_use]
    pub fn replaces(&self, old: &Self) -> bool {
        Comparison::of(self, old).replaces()
    }

    /// Whether the other one says all of this: the same words, values, denials and state.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        let (own, gist) = (&self.gist, &other.gist);
        let is_said = |&word: &u64| gist.says(word) && own.negates(word) == gist.negates(word);
        let is_given = |value: &Value| other.values.iter().any(|v| v.text == value.text);
        own.words.iter().all(is_said)
            && self.values.iter().all(is_given)
            && self.status == other.status
            && !own.words.is_empty()
    }

    /// Whether both may be about the same subject.
    #[must_use]
    pub fn resembles(&self, other: &Self) -> bool {
        let (own, gist) = (&self.gist.words, &other.gist.words);
        let shared = own.iter().filter(|&&word| other.gist.says(word)).count();
        shared >= 2 || shared * 10 >= (own.len() + gist.len() - shared).max(1) * 3
    }

    fn says(&self, word: u64) -> bool {
        self.subject.binary_search(&word).is_ok()
    }

    /// Whether it gives this value, as one that holds.
    fn gives(&self, value: &Value) -> bool {
        self.values.iter().any(|own| !own.is_past && own.text == value.text)
    }

    fn differs_in(&self, old: &Self, kind: ValueKind) -> bool {
        self.differs(old, |k| k == kind)
    }

    /// The number of values that hold and that the other one does not give.
    fn others(&self, other: &Self) -> usize {
        self.values.iter().filter(|own| !own.is_past && !other.gives(own)).count()
    }

    /// Whether it names a value of the older one, and another one of its kind.
    fn has_beside(&self, old: &Self) -> bool {
        old.values.iter().any(|was| {
            let own = || self.values.iter().filter(|own| own.kind == was.kind);
            own().any(|own| own.text == was.text) && own().any(|own| !old.gives(own))
        })
    }

    /// Whether both have values of these kinds that hold, and none in common.
    fn differs(&self, old: &Self, kinds: impl Fn(ValueKind) -> bool) -> bool {
        let of = |all: &'_ [Value]| -> Vec<String> {
            let held = all.iter().filter(|v| !v.is_past && kinds(v.kind));
            held.map(|v| v.text.clone()).collect()
        };
        let (new, was) = (of(&self.values), of(&old.values));
        !new.is_empty() && !was.is_empty() && new.iter().all(|value| !was.contains(value))
    }
}
