//! Files of tool results that were moved out of the context.

use std::collections::HashSet;

use ctx_core::{ContentHash, Message, Projection, Role};
use ctx_session::blobs::FileBlobs;

use super::words::Needle;

/// What messages that go tell of files that were made of them.
#[derive(Default)]
pub(super) struct Traces {
    /// Names of files that they, or the forms they were sent in, speak of.
    names: HashSet<String>,
    /// The results themselves: a file may hold one whose message does not say so.
    results: HashSet<ContentHash>,
}

impl Traces {
    pub(super) fn of_message(&mut self, message: &Message) {
        for result in message.tool_results() {
            let text = result.plain_text();
            self.mentioned(&text);
            self.results.insert(hash(&text));
        }
        self.mentioned(&message.plain_text());
    }

    pub(super) fn of_form(&mut self, form: &Projection) {
        self.mentioned(&form.reason);
        if let ctx_core::Projected::Replaced(message) = &form.form {
            self.mentioned(&message.plain_text());
            message.tool_results().for_each(|result| self.mentioned(&result.plain_text()));
        }
    }

    fn mentioned(&mut self, text: &str) {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        for word in text.split(|c: char| !is_name(c)) {
            let word = word.trim_end_matches('.');
            self.names.extend(word.strip_suffix(".txt").map(str::to_owned));
        }
    }

    /// The names of the files that are to go.
    pub(super) fn in_blobs(
        &self,
        blobs: &FileBlobs,
        needle: Option<&Needle>,
    ) -> ctx_core::Result<Vec<String>> {
        let looks_inside = needle.is_some() || !self.results.is_empty();
        let goes = |name: &String| {
            self.names.contains(name)
                || looks_inside
                    && blobs.get(name).is_ok_and(|text| {
                        self.results.contains(&hash(&text))
                            || needle.is_some_and(|needle| needle.is_in(&text))
                    })
        };
        Ok(blobs.names()?.into_iter().filter(goes).collect())
    }
}

fn hash(text: &str) -> ContentHash {
    ContentHash::of(&Message::text(Role::ToolResult, text))
}
