//! Files of tool results that were moved out of the context.

use std::collections::HashSet;

use ctx_core::{ContentHash, Message, Projected, Projection, Role};
use ctx_memory::{Redactor, Segment};
use ctx_session::blobs::FileBlobs;

use super::words::Needle;

/// What the archive says of a result that is an error.
const FAILED: &str = "error:\n";

/// What messages tell of files that were made of tool results.
///
/// A file is of the message that names it first, itself or in a form it was sent in: it was made of
/// that one, and those that come later only speak of it.
#[derive(Default)]
pub(super) struct Traces {
    /// Names of files of messages that go.
    gone: HashSet<String>,
    /// Names of files of messages that stay, in sessions of which something goes.
    kept: HashSet<String>,
    /// Names of files that forms in other sessions speak of.
    elsewhere: HashSet<String>,
    /// The results themselves: a file may hold one whose message does not say so.
    results: HashSet<ContentHash>,
    /// Those that only the archive has still, maybe without the secrets that the file holds.
    archived: HashSet<ContentHash>,
}

/// What the messages of one session tell, in their order.
pub(super) struct InSession<'t> {
    traces: &'t mut Traces,
    named: HashSet<String>,
}

/// Whether a message is to be forgotten.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    Goes,
    Stays,
}

impl Traces {
    pub(super) fn in_session(&mut self) -> InSession<'_> {
        InSession { traces: self, named: HashSet::new() }
    }

    /// Whether nothing tells of any file.
    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.results.is_empty() && self.archived.is_empty()
    }

    /// Learns of a form in a session that stays.
    pub(super) fn stays_elsewhere(&mut self, form: &Projection) {
        for text in texts_of(form) {
            self.elsewhere.extend(names_in(&text));
        }
    }

    /// The names of the files that are to go.
    pub(super) fn in_blobs(
        &self,
        blobs: &FileBlobs,
        needle: Option<&Needle>,
    ) -> ctx_core::Result<Vec<String>> {
        let looks_inside =
            needle.is_some() || !self.results.is_empty() || !self.archived.is_empty();
        let goes = |name: &String| {
            let stays = self.elsewhere.contains(name);
            self.gone.contains(name) && !stays
                || looks_inside
                    && blobs.get(name).is_ok_and(|text| {
                        let is_spoken_of = stays || self.kept.contains(name);
                        !is_spoken_of && self.is_result(&text)
                            || needle.is_some_and(|needle| needle.is_in(&text))
                    })
        };
        Ok(blobs.names()?.into_iter().filter(goes).collect())
    }

    /// Whether a file holds the result of a message that goes.
    fn is_result(&self, text: &str) -> bool {
        let of_archived = |text: &str| self.archived.contains(&hash(text));
        self.results.contains(&hash(text))
            || !self.archived.is_empty()
                && (of_archived(text) || of_archived(&Redactor::builtin().redact(text).text))
    }
}

impl InSession<'_> {
    /// Learns of a message and the forms it was sent in.
    pub(super) fn message(&mut self, message: &Message, forms: &[&Projection], fate: Fate) {
        self.mentioned(&message.plain_text(), fate);
        for result in message.tool_results() {
            let text = result.plain_text();
            self.mentioned(&text, fate);
            if fate == Fate::Goes {
                self.traces.results.insert(hash(&text));
            }
        }
        for text in forms.iter().flat_map(|form| texts_of(form)) {
            self.mentioned(&text, fate);
        }
    }

    /// Learns of a form whose message is not there any more.
    pub(super) fn form(&mut self, form: &Projection, fate: Fate) {
        texts_of(form).iter().for_each(|text| self.mentioned(text, fate));
    }

    /// Learns of a message as the archive has it. What messages tell that are still there counts more.
    pub(super) fn archived(&mut self, segment: &Segment, fate: Fate) {
        let text = segment.content.as_str();
        if fate == Fate::Goes && segment.role == Role::ToolResult {
            let result = text.strip_prefix(FAILED).unwrap_or(text);
            self.traces.archived.extend([hash(text), hash(result)]);
        }
        let known = names_in(text).filter(|name| self.traces.kept.contains(name));
        self.named.extend(known.collect::<Vec<_>>());
        self.mentioned(text, fate);
    }

    fn mentioned(&mut self, text: &str, fate: Fate) {
        for name in names_in(text) {
            if self.named.insert(name.clone()) {
                match fate {
                    Fate::Goes => self.traces.gone.insert(name),
                    Fate::Stays => self.traces.kept.insert(name),
                };
            }
        }
    }
}

fn texts_of(form: &Projection) -> Vec<String> {
    let mut texts = vec![form.reason.clone()];
    if let Projected::Replaced(message) = &form.form {
        texts.push(message.plain_text());
        texts.extend(message.tool_results().map(|result| result.plain_text().into_owned()));
    }
    texts
}

/// The names of files that a text speaks of.
pub(super) fn names_in(text: &str) -> impl Iterator<Item = String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let words = text.split(move |c: char| !is_name(c));
    words.filter_map(|word| word.trim_end_matches('.').strip_suffix(".txt").map(str::to_owned))
}

pub(super) fn hash(text: &str) -> ContentHash {
    ContentHash::of(&Message::text(Role::ToolResult, text))
}
