//! Weights by speaker.

use std::hash::BuildHasher as _;

use foldhash::{HashMap, HashSet};

use ctx_core::Role;

use super::SearchSettings;
use crate::Segment;
use crate::lexical::QueryTerm;
use ctx_text::{TermKind, each_term};

/// With this share of tool results, an archive is of an agent's work.
const WORK: f32 = 0.1;

/// Speakers without a name.
const NAMELESS: u32 = 0;

/// The speaker of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speaker<'a> {
    /// Whether the speaker is the user.
    pub by_user: bool,
    /// Whether it is a tool, which results are by.
    pub by_tool: bool,
    /// The speaker's name, if any.
    pub name: Option<&'a str>,
    /// For a result: the key of what its call was about ([`subject_of`]).
    pub subject: Option<u32>,
}

impl<'a> Speaker<'a> {
    /// The speaker of a segment.
    pub fn of(segment: &'a Segment) -> Self {
        let subject = segment.metadata.call.as_deref().map(subject_of);
        Self::new(&segment.role, segment.name.as_deref(), subject)
    }

    /// The speaker of a message with this role, name and subject.
    pub fn new(role: &Role, name: Option<&'a str>, subject: Option<u32>) -> Self {
        Self { by_user: *role == Role::User, by_tool: *role == Role::ToolResult, name, subject }
    }
}

/// Returns the key of what a call was about: the path at the beginning of `call`, or else all of it.
pub fn subject_of(call: &str) -> u32 {
    let first = call.split(' ').next().unwrap_or_default();
    let subject = if first.contains('/') { first } else { call };
    foldhash::fast::FixedState::default().hash_one(subject) as u32
}

/// The speakers, by row.
#[derive(Debug, Default)]
pub(super) struct Speakers {
    /// The number of each row's speaker, whether it is the user, and the key of a result's subject.
    rows: Vec<(u32, bool, Option<u32>)>,
    /// The number of rows by tools.
    results: usize,
    numbers: HashMap<Box<str>, u32>,
    /// The speakers whose name contains a word.
    by_word: HashMap<Box<str>, Vec<u32>>,
}

impl Speakers {
    pub(crate) fn add(&mut self, speaker: Speaker<'_>) {
        let number = speaker.name.map_or(NAMELESS, |name| self.number(name));
        // The result of a call without short arguments has a subject of its own.
        let subject = speaker.subject.unwrap_or(self.rows.len() as u32);
        self.rows.push((number, speaker.by_user, speaker.by_tool.then_some(subject)));
        self.results += usize::from(speaker.by_tool);
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.numbers.len() as u32 + 1;
        self.numbers.insert(name.into(), number);
        let by_word = &mut self.by_word;
        each_term(name, |term| {
            if term.kind == TermKind::Word {
                by_word.entry(term.text.into()).or_default().push(number);
            }
        });
        number
    }

    /// Whether a row is a message of the user.
    pub(super) fn is_user(&self, row: u32) -> bool {
        self.rows.get(row as usize).is_some_and(|(_, is_user, _)| *is_user)
    }

    /// Returns the key of a result's subject.
    pub(super) fn subject(&self, row: u32) -> Option<u32> {
        self.rows.get(row as usize)?.2
    }

    /// Whether the archive is of an agent's work.
    pub(super) fn is_work(&self) -> bool {
        self.results > 0 && self.results as f32 >= WORK * self.rows.len() as f32
    }

    /// Returns the weights of rows, 0 to 1, for a query with these terms.
    pub(crate) fn weights(
        &self,
        query: &[QueryTerm],
        settings: &SearchSettings,
        rows: &[u32],
    ) -> Vec<f32> {
        let known = query.iter().filter_map(|term| self.by_word.get(term.text.as_str()));
        let named: HashSet<u32> = known.flatten().copied().collect();
        // In an agent's work, answers are in results and replies, not in what the user said.
        let reply = if self.is_work() { 1.0 } else { share(settings.reply_weight) };
        let other = share(settings.other_speakers);
        let weight = |row: &u32| {
            let (speaker, is_user, _) = self.rows.get(*row as usize).copied().unwrap_or_default();
            let is_other = !named.is_empty() && !named.contains(&speaker);
            (if is_user { 1.0 } else { reply }) * (if is_other { other } else { 1.0 })
        };
        rows.iter().map(weight).collect()
    }
}

/// Returns a weight that no speaker's is below.
pub(super) fn least_weight(settings: &SearchSettings) -> f32 {
    share(settings.reply_weight) * share(settings.other_speakers)
}

fn share(value: f32) -> f32 {
    if value.is_nan() { 1.0 } else { value.clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::query::terms_of;

    fn weights(query: &str) -> Vec<f32> {
        let mut speakers = Speakers::default();
        let spoken = [
            (Role::User, Some("Ann Lee")),
            (Role::User, Some("Bob")),
            (Role::User, None),
            (Role::Assistant, None),
        ];
        for (role, name) in spoken {
            speakers.add(Speaker::new(&role, name, None));
        }
        let settings =
            SearchSettings { reply_weight: 0.5, other_speakers: 0.8, ..SearchSettings::default() };
        speakers.weights(&terms_of(query), &settings, &[0, 1, 2, 3])
    }

    #[test]
    fn messages_of_the_user_count_most() {
        assert_eq!(weights("which pet"), [1.0, 1.0, 1.0, 0.5]);
    }

    #[test]
    fn in_an_archive_of_work_replies_count_as_much() {
        let mut speakers = Speakers::default();
        let settings = SearchSettings::default();
        let roles = [Role::User, Role::Assistant, Role::ToolResult];
        for (role, expected) in roles.iter().zip([[1.0, 0.6], [1.0, 0.6], [1.0, 1.0]]) {
            speakers.add(Speaker::new(role, None, None));
            let rows = [0, 1];
            let weights = speakers.weights(&terms_of("pet"), &settings, &rows);
            assert_eq!(weights, expected, "{role:?}");
        }
    }

    #[test]
    fn a_named_speaker_counts_more_than_the_others() {
        assert_eq!(weights("Which pet does Ann have?"), [1.0, 0.8, 0.8, 0.4]);
        assert_eq!(weights("Bob's and Lee's pets"), [1.0, 1.0, 0.8, 0.4]);
    }
}
