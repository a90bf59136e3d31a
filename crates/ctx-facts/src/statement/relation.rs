//! Whether a later statement replaces an earlier one.

use std::sync::LazyLock;

use super::values::{PREFERENCES, Value, ValueKind};
use super::{Statement, UNIQUE};

/// A measure of what two statements have in common or where they differ, with its name: 0 to 1.
pub type Feature = (&'static str, f32);

/// The weights of the features, by name and in their order: see `cargo xtask fit`.
static WEIGHTS: LazyLock<Vec<f32>> = LazyLock::new(|| {
    let lines = include_str!("weights.txt").lines();
    lines.filter_map(|line| line.split_once(' ')?.1.parse().ok()).collect()
});

/// A later statement, compared with an earlier one.
#[derive(Clone, Debug)]
pub struct Comparison<'a> {
    new: &'a Statement,
    old: &'a Statement,
    /// The words of the subject that both have.
    words: usize,
    /// The values that both give.
    named: usize,
    /// The slots that both fill; without a common subject, only those that a project has once.
    slots: u32,
    /// Whether they give different numbers, different values of the same kind, different choices.
    number: bool,
    value: bool,
    choice: bool,
    /// Whether they differ in more than one kind of value, or more than one value.
    kinds: bool,
    /// Whether the later one says of a value of the earlier one that it no longer holds.
    past: bool,
}

impl<'a> Comparison<'a> {
    /// Compares a later statement with an earlier one.
    #[must_use]
    pub fn of(new: &'a Statement, old: &'a Statement) -> Self {
        let words = new.subject.iter().filter(|&word| old.says(*word)).count();
        let named = new.held().filter(|v| old.gives(v)).count();
        let differs = |of: fn(ValueKind) -> bool| {
            let mut kinds = new.held().map(|v| v.kind).filter(|kind| of(*kind));
            kinds.any(|kind| new.differs(old, |k| k == kind))
        };
        let is_number =
            |kind| matches!(kind, ValueKind::Number(_) | ValueKind::Date | ValueKind::Time);
        let different = [
            new.differs(old, is_number),
            differs(|kind| kind == ValueKind::Location),
            differs(|kind| kind == ValueKind::Id),
            differs(|kind| kind == ValueKind::Name),
        ];
        let different = different.iter().filter(|is| **is).count();
        let choice = differs(|kind| matches!(kind, ValueKind::Choice(_) | ValueKind::Rival(_)));
        let is_related = words + named > 0 || new.subject.is_empty() || old.subject.is_empty();
        Self {
            new,
            old,
            words,
            named,
            slots: new.slots & old.slots & if is_related { u32::MAX } else { UNIQUE },
            number: differs(is_number),
            value: different > 0 || choice,
            choice,
            kinds: different > 1 || new.others(old) > 1 && old.others(new) > 1,
            past: new.values.iter().any(|v| v.is_past && old.gives(v)),
        }
    }

    /// Returns the features.
    #[must_use]
    pub fn features(&self) -> [Feature; 25] {
        let (new, old) = (self.new, self.old);
        let shared = self.words + self.named;
        let least = new.subject.len().min(old.subject.len()) + self.named;
        let all = new.subject.len() + old.subject.len() + self.named - self.words;
        let coverage = shared as f32 / least.max(1) as f32;
        let news = new.is_news || new.corrects;
        let (slot, word) = (self.slots != 0, self.is_one_word());
        let same = self.value && !self.kinds && new.subject == old.subject
            || word && (slot || self.named > 0);
        let exclusive = new.is_exclusive && old.is_exclusive;
        let is = |is: bool| f32::from(u8::from(is));
        [
            ("bias", 1.0),
            ("corrects", is(new.corrects)),
            ("coverage", coverage),
            ("shared", shared.min(4) as f32 / 4.0),
            ("alike", shared as f32 / all.max(1) as f32),
            ("number", is(self.number)),
            ("kind", is(self.value && !self.number)),
            ("choice", is(self.choice)),
            ("slot", is(slot)),
            ("contrast", is(self.contrasts())),
            ("past", is(self.past)),
            ("status", is(self.changes_status()) * coverage),
            ("same", is(self.repeats())),
            ("kinds", is(self.kinds)),
            ("news_value", is(news && self.value)),
            ("news_coverage", is(news) * coverage),
            ("value_coverage", is(self.value) * coverage),
            ("hypothetical", is(new.is_hypothetical)),
            ("beside", is(self.names_both())),
            ("word", is(word)),
            ("clauses", is(new.has_clauses)),
            ("clauses_value", is(new.has_clauses && self.value)),
            ("is", is(same && (new.is_copular && old.is_copular || exclusive))),
            ("preference", is(self.prefers_other())),
            ("unique", is(self.slots & UNIQUE != 0 && news && self.value)),
        ]
    }

    /// Whether the later statement replaces the earlier one.
    #[must_use]
    pub fn replaces(&self) -> bool {
        if self.denies() {
            return true;
        }
        let is_related = self.words + self.named > 0 || self.slots != 0 || self.choice || self.past;
        let supposes = self.new.asks || self.new.is_hypothetical && !self.new.corrects;
        let score = || -> f32 {
            let features = self.features();
            features.iter().zip(WEIGHTS.iter()).map(|((_, is), weight)| is * weight).sum()
        };
        is_related && !supposes && self.new.gist != self.old.gist && score() > 0.0
    }

    /// Whether one says exactly what the other denies.
    fn denies(&self) -> bool {
        let (new, old) = (&self.new.gist, &self.old.gist);
        new.words == old.words && new.negated != old.negated && !self.new.is_hypothetical
    }

    /// "The staging port", "the production port": another word specifies the same one.
    fn contrasts(&self) -> bool {
        let (new, old) = (self.new, self.old);
        new.specified.iter().any(|(word, by)| {
            let others = || old.specified.iter().filter(|(other, _)| other == word);
            others().next().is_some()
                && others().all(|(_, was)| was != by && !new.says(*was) && !old.says(*by))
        })
    }

    fn changes_status(&self) -> bool {
        let (new, old) = (self.new.status, self.old.status);
        new.is_some() && old.is_some() && new != old
    }

    /// Whether the later statement gives the values of the earlier one again, and no other.
    fn repeats(&self) -> bool {
        let values = self.old.values.len();
        !self.value && !self.past && values > 0 && self.named == values
    }

    /// "The branch is main", "Tests now run with vitest": one word is another.
    fn is_one_word(&self) -> bool {
        !self.value
            && self.words + self.named > 0
            && self.words + 1 == self.new.subject.len()
            && self.words + 1 == self.old.subject.len()
            && self.new.others(self.old) + self.old.others(self.new) == 0
    }

    /// Whether the later statement gives a value of the earlier one, and another one of its kind.
    fn names_both(&self) -> bool {
        self.old.values.iter().any(|was| {
            let own = || self.new.values.iter().filter(|own| own.kind == was.kind);
            own().any(|own| own.text == was.text) && own().any(|own| !self.old.gives(own))
        })
    }

    /// Whether both state the same preference, such as the language of answers, differently.
    fn prefers_other(&self) -> bool {
        (0..PREFERENCES).any(|list| self.new.differs(self.old, |k| k == ValueKind::Choice(list)))
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

    /// Returns the values that hold.
    fn held(&self) -> impl Iterator<Item = &Value> {
        self.values.iter().filter(|value| !value.is_past)
    }

    fn says(&self, word: u64) -> bool {
        self.subject.binary_search(&word).is_ok()
    }

    /// Whether it gives this value, as one that holds.
    fn gives(&self, value: &Value) -> bool {
        self.held().any(|own| own.text == value.text)
    }

    /// The number of values that hold and that the other one does not give.
    fn others(&self, other: &Self) -> usize {
        self.held().filter(|own| !other.gives(own)).count()
    }

    /// Whether both have values of these kinds that hold, and none in common.
    fn differs(&self, old: &Self, kinds: impl Fn(ValueKind) -> bool) -> bool {
        let of = |statement: &Self| -> Vec<String> {
            statement.held().filter(|v| kinds(v.kind)).map(|v| v.text.clone()).collect()
        };
        let (new, was) = (of(self), of(old));
        !new.is_empty() && !was.is_empty() && new.iter().all(|value| !was.contains(value))
    }
}
