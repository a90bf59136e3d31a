//! Whether a later statement replaces an earlier one.

use std::sync::LazyLock;

use super::cues::Cue;
use super::parts::Part;
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
    /// Whether they have something in common: a word of the subject, a value.
    is_related: bool,
    /// The slots that both fill; if they are not related, only those that a project has once.
    slots: u32,
    /// Whether they give different values of the same kind, different choices.
    value: bool,
    choice: bool,
    /// Whether they differ in more than one kind of value.
    kinds: bool,
    /// Whether the later one says of a part of the earlier one that it no longer holds.
    past: bool,
}

impl<'a> Comparison<'a> {
    /// Compares a later statement with an earlier one.
    #[must_use]
    pub fn of(new: &'a Statement, old: &'a Statement) -> Self {
        let differs = |of: fn(ValueKind) -> bool| {
            let mut kinds = new.held().map(|v| v.kind).filter(|kind| of(*kind));
            kinds.any(|kind| new.differs(old, kind))
        };
        let different = [
            new.differs_in_number(old),
            differs(|kind| kind == ValueKind::Location),
            differs(|kind| kind == ValueKind::Id),
            differs(|kind| matches!(kind, ValueKind::Name | ValueKind::Led)),
        ];
        let different = different.iter().filter(|is| **is).count();
        let choice = differs(|kind| matches!(kind, ValueKind::Choice(_) | ValueKind::Rival(_)));
        let is_related = new.subject.iter().any(|word| old.subject.binary_search(word).is_ok())
            || new.held().any(|value| old.gives(value))
            || new.has(Cue::Reference) && new.slots & old.slots != 0
            || new.subject.is_empty()
            || old.subject.is_empty();
        Self {
            new,
            old,
            is_related,
            slots: new.slots & old.slots & if is_related { u32::MAX } else { UNIQUE },
            value: different > 0 || choice,
            choice,
            kinds: different > 1,
            past: new.parts.iter().any(|part| part.is_past && old.has_part(part.word)),
        }
    }

    /// Returns the features.
    pub fn features(&self) -> [Feature; 26] {
        let (new, old) = (self.new, self.old);
        let known = old.parts.iter().filter(|part| new.has_part(part.word)).count();
        let of_old = known as f32 / old.parts.len().max(1) as f32;
        let news = new.is_news() || new.has(Cue::Correction);
        let in_slot = self.slots != 0;
        // Things that differ in a number and in their state are two things: "node 1", "node 2".
        let contrasts = self.differ(Part::contrasts_with)
            || self.new.status != self.old.status && self.changes_status() && self.value;
        let at_end = self.differ_at_end();
        let topic = old.parts.first().is_some_and(|part| new.has_part(part.word));
        let is = |is: bool| f32::from(u8::from(is));
        [
            ("bias", 1.0),
            ("known", known.min(4) as f32 / 4.0),
            ("of_old", of_old),
            ("topic", is(topic)),
            ("unit", is(self.differ_in_unit())),
            ("choice", is(self.choice)),
            ("preference", is(self.prefers_other())),
            ("kinds", is(self.kinds)),
            ("beside", is(self.names_both())),
            ("slot", is(in_slot)),
            ("status", is(self.changes_status() && !contrasts) * of_old),
            ("flips", is(self.flips() && !contrasts) * of_old),
            ("past", is(self.past)),
            ("corrects", is(new.has(Cue::Correction))),
            ("news", is(news)),
            ("news_value", is(news && self.value)),
            ("news_of_old", is(news) * of_old),
            ("news_names", is(news && new.held().any(|value| old.gives(value)))),
            ("news_subject", is(news && self.value && new.has_subject_of(old))),
            ("contrasts", is(contrasts)),
            ("end", is(at_end)),
            ("one_value", is(self.value && old.runs(new) == 1 && new.runs(old) == 1)),
            ("adds", is(new.has(Cue::Addition))),
            ("task_news", is(new.is_task && news)),
            ("tasks", is(new.is_task && old.is_task)),
            ("clauses_value", is(new.has_clauses && self.value)),
        ]
    }

    /// Whether the later statement replaces the earlier one.
    pub fn replaces(&self) -> bool {
        let score = || -> f32 {
            let features = self.features();
            features.iter().zip(WEIGHTS.iter()).map(|((_, is), weight)| is * weight).sum()
        };
        self.certain().unwrap_or_else(|| score() > 0.0)
    }

    /// Whether the later statement surely replaces the earlier one, or surely does not; `None` if the
    /// weights decide.
    pub fn certain(&self) -> Option<bool> {
        let is_related = self.is_related || self.slots != 0 || self.choice || self.past;
        if self.denies() || self.assigns() || self.is_unique() {
            Some(true)
        } else if !is_related || self.new.supposes() || !self.conflicts() || self.forbids_more() {
            Some(false)
        } else {
            None
        }
    }

    /// Whether both give the same key a value: `LOG_LEVEL=info`.
    fn assigns(&self) -> bool {
        self.new.key.is_some() && self.new.key == self.old.key && self.new.gist != self.old.gist
    }

    /// Whether one says exactly what the other denies.
    fn denies(&self) -> bool {
        let (new, old) = (&self.new.gist, &self.old.gist);
        new.words == old.words && new.negated != old.negated && !self.new.has(Cue::Hypothetical)
    }

    /// Whether both forbid the same of different things: "never edit a.rs", "never edit b.rs". Both hold.
    /// Of two limits, "never wait more than 30s" and "more than 60s", the later one does.
    fn forbids_more(&self) -> bool {
        let (new, old) = (self.new, self.old);
        let corrects = |one: &Statement| one.is_news() || one.has(Cue::Correction);
        let limits = |one: &Statement| one.values.iter().any(|value| value.kind.unit().is_some());
        let forbid_same = !new.gist.negated.is_empty() && new.gist.negated == old.gist.negated;
        let is_correction = corrects(new) && !corrects(old);
        let are_limits = limits(new) && limits(old);
        forbid_same && !is_correction && !are_limits && !self.choice
    }

    /// Whether both fill a slot that a project has once, and the later one says that it is new.
    fn is_unique(&self) -> bool {
        let new = self.new;
        self.slots & UNIQUE != 0
            && !new.supposes()
            && (self.value && new.is_news() || new.has(Cue::Correction))
    }

    /// Whether both cannot hold: each says something that the other one does not say, they give
    /// different values, or one takes something of the other back.
    fn conflicts(&self) -> bool {
        let lacks = |a: &Statement, b: &Statement| a.only_here(b).next().is_some();
        self.value
            || self.past
            || self.new.has(Cue::Correction)
            || self.changes_status()
            || self.flips()
            || self.names_both()
            || lacks(self.new, self.old) && lacks(self.old, self.new)
    }

    /// Whether a part that only one of them has and a part that only the other has are related so.
    fn differ(&self, are: fn(&Part, &Part) -> bool) -> bool {
        let added: Vec<_> = self.new.only_here(self.old).collect();
        self.old.only_here(self.new).any(|old| added.iter().any(|new| are(old, new)))
    }

    /// Whether what the earlier statement says of its subject is all that differs.
    fn differ_at_end(&self) -> bool {
        let (new, old) = (self.new, self.old);
        let is_other = |part: &Part| !part.is_past && !new.has_part(part.word);
        (new.is_copular() && old.is_copular() || new.has(Cue::Exclusive) && old.has(Cue::Exclusive))
            && new.runs(old) > 0
            && old.runs(new) == 1
            && old.parts.last().is_some_and(is_other)
    }

    /// Whether they give different values of the same unit.
    fn differ_in_unit(&self) -> bool {
        let has_unit = |value: &Value| value.kind.unit().is_some_and(|unit| !unit.is_empty());
        self.new.differs_in_number(self.old)
            && self.new.held().any(|new| {
                has_unit(new) && self.old.held().any(|old| old.kind.unit() == new.kind.unit())
            })
    }

    /// Whether one denies what the other one affirms.
    fn flips(&self) -> bool {
        let (new, old) = (&self.new.gist, &self.old.gist);
        new.words.iter().any(|&w| old.says(w) && new.negates(w) != old.negates(w))
    }

    /// Whether they differ in what is done: "in progress" and "done", "2 of 6" and "4 of 6".
    fn changes_status(&self) -> bool {
        let (new, old) = (self.new.status, self.old.status);
        new.is_some() && old.is_some() && new != old
            || self.new.differs(self.old, ValueKind::Number("of"))
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
        (0..PREFERENCES).any(|list| self.new.differs(self.old, ValueKind::Choice(list)))
    }
}

impl Statement {
    /// Whether this later statement gives the thing of the older one another value: "the timeout is
    /// 30s", "the timeout is now 60s"; "the migration has not started", "the migration is done".
    pub fn replaces(&self, old: &Self) -> bool {
        Comparison::of(self, old).replaces()
    }

    /// Whether the other one says all of this: the same words, values, denials and state.
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
    pub fn resembles(&self, other: &Self) -> bool {
        let shared = self.gist.shared(&other.gist);
        let all = self.gist.words.len() + other.gist.words.len() - shared;
        shared >= 2 || shared * 10 >= all.max(1) * 3
    }

    /// Returns the values that hold.
    fn held(&self) -> impl Iterator<Item = &Value> {
        self.values.iter().filter(|value| !value.is_past)
    }

    fn has_subject_of(&self, other: &Self) -> bool {
        other.subject.iter().all(|word| self.subject.binary_search(word).is_ok())
    }

    /// Whether it gives this value, as one that holds.
    fn gives(&self, value: &Value) -> bool {
        self.held().any(|own| own.text == value.text)
    }

    /// Whether both give different numbers that may measure the same.
    fn differs_in_number(&self, old: &Self) -> bool {
        let unit = |value: &Value| value.kind.unit();
        let numbers = |of: &Self| -> Vec<Value> {
            of.held().filter(|value| unit(value).is_some()).cloned().collect()
        };
        let (new, was) = (numbers(self), numbers(old));
        let fits =
            |a: &Value, b: &Value| unit(a) == unit(b) || unit(a) == Some("") || unit(b) == Some("");
        new.iter().all(|value| was.iter().all(|old| old.text != value.text))
            && new.iter().any(|value| was.iter().any(|old| fits(value, old)))
    }

    /// Whether both have values of this kind that hold, and none in common.
    fn differs(&self, old: &Self, kind: ValueKind) -> bool {
        let mut new = self.held().filter(|value| value.kind == kind).peekable();
        let was = || old.held().filter(|value| value.kind == kind);
        new.peek().is_some()
            && was().next().is_some()
            && new.all(|value| was().all(|old| old.text != value.text))
    }

    /// Whether it asks or supposes.
    fn supposes(&self) -> bool {
        let is_news = self.is_news() || self.has(Cue::Correction);
        (self.asks || self.has(Cue::Hearsay)) && !is_news
            || self.has(Cue::Hypothetical) && (self.asks || !self.has(Cue::Correction))
    }
}
