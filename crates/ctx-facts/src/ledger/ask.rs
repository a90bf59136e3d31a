//! Finds the open request: what the user asked last and is not answered.

use std::collections::VecDeque;

use ctx_core::{EntryId, Role};
use ctx_text::{Marks, Reading, Sentence, clip, is_courtesy};

use super::speakers::Speakers;
use crate::CitedMessage;

/// A request: the message and its sentences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Ask {
    /// The index of the message.
    pub(super) at: usize,
    /// Its entry.
    pub(super) entry: EntryId,
    /// The requests, sentence by sentence.
    pub(super) sentences: Vec<String>,
}

/// A longer message is a document rather than a request.
const MOST_SENTENCES: usize = 12;
const LONGEST: usize = 400;

/// A message this short refers to one before it: "continue".
const SHORT: usize = 24;
/// The number of messages of the user among which that one is looked for.
const RECENT: usize = 9;

/// A message of the user.
#[derive(Debug)]
struct UserMessage {
    at: usize,
    entry: EntryId,
    is_short: bool,
    /// The requests, sentence by sentence.
    requests: Vec<String>,
}

impl UserMessage {
    /// Returns at most `most` of the requests in it.
    fn ask(&self, most: usize) -> Ask {
        let sentences = self.requests.iter().take(most).cloned().collect();
        Ask { at: self.at, entry: self.entry.clone(), sentences }
    }
}

/// The newest messages of the user.
#[derive(Debug, Default)]
pub(super) struct RecentAsks {
    /// The messages, newest last.
    asks: VecDeque<UserMessage>,
    /// Whether the newest has a final answer.
    is_answered: bool,
}

impl RecentAsks {
    /// Reads a message.
    pub(super) fn read(&mut self, at: usize, one: &CitedMessage, speakers: &Speakers<'_>) {
        let user = &speakers.user;
        if one.message.role == Role::User && !one.pinned && !user.text.is_empty() {
            self.asks.push_back(UserMessage {
                at,
                entry: one.id.clone(),
                is_short: user.text.chars().count() <= SHORT,
                requests: requests(user),
            });
            if self.asks.len() > RECENT {
                self.asks.pop_front();
            }
            self.is_answered = false;
        } else {
            self.is_answered |= is_final(one);
        }
    }

    /// Returns the open request, if the user's last message has no final answer. For "continue" and
    /// the like, the preceding request is included.
    pub(super) fn open(&self) -> Vec<Ask> {
        let mut newest_first = self.asks.iter().rev();
        let Some(newest) = newest_first.next().filter(|_| !self.is_answered) else {
            return Vec::new();
        };
        let mut asks = vec![newest.ask(MOST_SENTENCES)];
        if newest.is_short {
            asks.extend(newest_first.find(|ask| !ask.is_short).map(|fuller| fuller.ask(2)));
        }
        asks.retain(|ask| !ask.sentences.is_empty());
        asks
    }
}

/// Whether a message ends the turn: text of the assistant without a call.
fn is_final(one: &CitedMessage) -> bool {
    one.message.role == Role::Assistant
        && one.message.tool_calls().next().is_none()
        && !one.message.plain_text().trim().is_empty()
}

/// Returns the sentences of a message that ask for something; if none clearly does, the first ones.
fn requests(words: &Reading<'_>) -> Vec<String> {
    let all = || words.sentences().iter().filter(|sentence| !is_courtesy(sentence.text));
    let asks = |marks: &Marks| marks.request || marks.question || marks.constraint;
    let mut out: Vec<&Sentence<'_>> =
        all().filter(|sentence| asks(&sentence.marks)).take(MOST_SENTENCES).collect();
    if out.is_empty() {
        out = all().take(2).collect();
    }
    out.into_iter().map(|sentence| clip(sentence.text, LONGEST).to_owned()).collect()
}
