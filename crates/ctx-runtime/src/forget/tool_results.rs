//! Files of tool results that were moved out of the context.

use std::collections::HashSet;

use ctx_core::{ContentHash, Message, Projected, Projection, Role};
use ctx_redact::Redactor;
use ctx_search::Segment;
use ctx_session::{FileBlobs, blob_names_in};

use super::search_text::SearchText;

/// The archive's prefix for an error result.
const FAILED: &str = "error:\n";

/// The files of tool results that messages refer to.
///
/// A file belongs to the first message that names it, directly or in a projection: it contains the
/// result of that message, and later messages only refer to it.
#[derive(Default)]
pub(super) struct ResultReferences {
    /// File names of erased messages.
    gone: HashSet<String>,
    /// File names of remaining messages, in sessions from which something is erased.
    kept: HashSet<String>,
    /// File names in projections of other sessions.
    elsewhere: HashSet<String>,
    /// Hashes of the erased results: a file may contain one whose message does not name the file.
    results: HashSet<ContentHash>,
    /// Hashes of results that only the archive still has. They may be redacted although the file is
    /// not.
    archived: HashSet<ContentHash>,
}

/// Collects the file names of one session, in message order.
pub(super) struct SessionReferences<'t> {
    traces: &'t mut ResultReferences,
    named: HashSet<String>,
}

/// Whether a message is erased.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultFate {
    Goes,
    Stays,
}

impl ResultReferences {
    pub(super) fn in_session(&mut self) -> SessionReferences<'_> {
        SessionReferences { traces: self, named: HashSet::new() }
    }

    /// Whether no file has to be erased.
    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.results.is_empty() && self.archived.is_empty()
    }

    /// Records a projection of a session from which nothing is erased.
    pub(super) fn stays_elsewhere(&mut self, form: &Projection) {
        for text in texts_of(form) {
            self.elsewhere.extend(blob_names_in(&text));
        }
    }

    /// Returns the names of the files to erase.
    pub(super) fn in_blobs(
        &self,
        blobs: &FileBlobs,
        needle: Option<&SearchText>,
    ) -> ctx_core::Result<Vec<String>> {
        let looks_inside =
            needle.is_some() || !self.results.is_empty() || !self.archived.is_empty();
        let goes = |name: &String| {
            let stays = self.elsewhere.contains(name);
            self.gone.contains(name) && !stays
                || looks_inside
                    && blobs.get(name).is_ok_and(|text| {
                        let is_referenced = stays || self.kept.contains(name);
                        !is_referenced && self.is_result(&text)
                            || needle.is_some_and(|needle| needle.is_in(&text))
                    })
        };
        Ok(blobs.names()?.into_iter().filter(goes).collect())
    }

    /// Whether a file contains the result of an erased message.
    fn is_result(&self, text: &str) -> bool {
        let of_archived = |text: &str| self.archived.contains(&hash(text));
        self.results.contains(&hash(text))
            || !self.archived.is_empty()
                && (of_archived(text) || of_archived(&Redactor::builtin().redact(text).text))
    }
}

impl SessionReferences<'_> {
    /// Records a message and its projections.
    pub(super) fn message(&mut self, message: &Message, forms: &[&Projection], fate: ResultFate) {
        self.mentioned(&message.plain_text(), fate);
        for result in message.tool_results() {
            let text = result.plain_text();
            self.mentioned(&text, fate);
            if fate == ResultFate::Goes {
                self.traces.results.insert(hash(&text));
            }
        }
        for text in forms.iter().flat_map(|form| texts_of(form)) {
            self.mentioned(&text, fate);
        }
    }

    /// Records a projection whose message is missing.
    pub(super) fn form(&mut self, form: &Projection, fate: ResultFate) {
        texts_of(form).iter().for_each(|text| self.mentioned(text, fate));
    }

    /// Records an archived message. Messages that are still in a transcript take precedence.
    pub(super) fn archived(&mut self, segment: &Segment, fate: ResultFate) {
        let text = segment.content.as_str();
        if fate == ResultFate::Goes && segment.role == Role::ToolResult {
            let result = text.strip_prefix(FAILED).unwrap_or(text);
            self.traces.archived.extend([hash(text), hash(result)]);
        }
        let known = blob_names_in(text).filter(|name| self.traces.kept.contains(name));
        self.named.extend(known.collect::<Vec<_>>());
        self.mentioned(text, fate);
    }

    fn mentioned(&mut self, text: &str, fate: ResultFate) {
        for name in blob_names_in(text) {
            if self.named.insert(name.clone()) {
                match fate {
                    ResultFate::Goes => self.traces.gone.insert(name),
                    ResultFate::Stays => self.traces.kept.insert(name),
                };
            }
        }
    }
}

fn texts_of(form: &Projection) -> Vec<String> {
    let mut texts = vec![form.reason.to_string()];
    if let Projected::Replaced(message) = &form.form {
        texts.push(message.plain_text());
        texts.extend(message.tool_results().map(|result| result.plain_text().into_owned()));
    }
    texts
}

pub(super) fn hash(text: &str) -> ContentHash {
    ContentHash::of(&Message::text(Role::ToolResult, text))
}
