//! Weights by speaker.

use foldhash::{HashMap, HashSet};

use ctx_core::Role;

use super::SearchSettings;
use crate::Segment;
use crate::lexical::QueryTerm;
use ctx_text::{TermKind, Terms};

/// Speakers without a name.
const NAMELESS: u32 = 0;

/// The speaker of a segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Speaker<'a> {
    /// Whether the speaker is the user.
    pub by_user: bool,
    /// The speaker's name, if any.
    pub name: Option<&'a str>,
}

impl<'a> Speaker<'a> {
    /// The speaker of a segment.
    pub fn of(segment: &'a Segment) -> Self {
        Self { by_user: segment.role == Role::User, name: segment.name.as_deref() }
    }
}

/// The speakers, by row.
#[derive(Debug, Default)]
pub(super) struct Speakers {
    /// The number of each row's speaker, and whether it is the user.
    rows: Vec<(u32, bool)>,
    numbers: HashMap<Box<str>, u32>,
    /// The speakers whose name contains a word.
    by_word: HashMap<Box<str>, Vec<u32>>,
    scanner: Terms,
}

impl Speakers {
    pub(crate) fn add(&mut self, speaker: Speaker<'_>) {
        let number = speaker.name.map_or(NAMELESS, |name| self.number(name));
        self.rows.push((number, speaker.by_user));
    }

    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        let number = self.numbers.len() as u32 + 1;
        self.numbers.insert(name.into(), number);
        let by_word = &mut self.by_word;
        self.scanner.each(name, |term| {
            if term.kind == TermKind::Word {
                by_word.entry(term.text.into()).or_default().push(number);
            }
        });
        number
    }

    /// Whether a row is a message of the user.
    pub(super) fn is_user(&self, row: u32) -> bool {
        self.rows.get(row as usize).is_some_and(|(_, is_user)| *is_user)
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
        let (reply, other) = (share(settings.reply_weight), share(settings.other_speakers));
        let weight = |row: &u32| {
            let (speaker, is_user) = self.rows.get(*row as usize).copied().unwrap_or_default();
            let is_other = !named.is_empty() && !named.contains(&speaker);
            (if is_user { 1.0 } else { reply }) * (if is_other { other } else { 1.0 })
        };
        rows.iter().map(weight).collect()
    }
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
            speakers.add(Speaker { by_user: role == Role::User, name });
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
    fn a_named_speaker_counts_more_than_the_others() {
        assert_eq!(weights("Which pet does Ann have?"), [1.0, 0.8, 0.8, 0.4]);
        assert_eq!(weights("Bob's and Lee's pets"), [1.0, 1.0, 0.8, 0.4]);
    }
}
