//! Names that may be needed next: names in code, flags, hashes, by how often and how late they occur.

use std::collections::HashMap;

use ctx_core::text::{Slice, head};
use ctx_core::{Block, Chars, Message};
use ctx_text::{SpanKind, WordList, segments, spans};

use super::speakers::Speakers;
use crate::strings;

/// The maximum number of names that are counted.
const MOST: usize = 4_000;
/// The maximum number of names that are returned.
const RETURNED: usize = 600;
/// The length of an argument and of a tool result that is examined.
const ARGUMENT: Chars = Chars(600);
const RESULT: Chars = Chars(2_000);

/// Arguments that are one of a few words, such as `"status": "in_progress"`.
static CHOICES: WordList = WordList::new("arguments.choices");

/// The names so far: how often, and the message that mentions each last.
#[derive(Debug, Default)]
pub(super) struct Names {
    found: HashMap<String, (u32, usize), foldhash::fast::FixedState>,
}

impl Names {
    /// Reads a message.
    pub(super) fn read(&mut self, at: usize, message: &Message, speakers: &Speakers<'_>) {
        for words in [&speakers.user, &speakers.assistant] {
            for segment in segments(words).into_iter().filter(|segment| !segment.is_code) {
                self.text(at, words.slice(segment.range));
            }
        }
        for block in &message.blocks {
            match block {
                Block::ToolResult(result) => {
                    self.text(at, beginning(&result.plain_text(), RESULT));
                }
                Block::ToolCall(call) => {
                    let arguments = strings(call.arguments.as_str());
                    for argument in arguments.into_iter().filter(|it| !CHOICES.contains(&it.key)) {
                        self.text(at, beginning(&argument.value, ARGUMENT));
                    }
                }
                _ => {}
            }
        }
        if self.found.len() > MOST {
            let mut last: Vec<usize> = self.found.values().map(|(_, last)| *last).collect();
            last.sort_unstable();
            let middle = last[last.len() / 2];
            self.found.retain(|_, (count, last)| *last > middle || *count > 3);
        }
    }

    fn text(&mut self, at: usize, text: &str) {
        for span in spans(text) {
            let is_name = match span.kind {
                SpanKind::CodeName => !span.text.contains(' '),
                SpanKind::Id => span.text.bytes().all(|b| b.is_ascii_hexdigit()),
                _ => false,
            };
            if is_name && (4..=60).contains(&span.text.len()) && !span.text.contains(['`', '\n']) {
                let (count, last) = self.found.entry(span.text.to_owned()).or_default();
                *count += 1;
                *last = at;
            }
        }
    }

    /// Returns the names among `messages` messages, most needed first.
    pub(super) fn ranked(&self, messages: usize) -> Vec<String> {
        let all = messages.max(1) as f32;
        let score = |count: u32, last: usize| {
            (1.0 + (count as f32).ln()) * (0.3 + 0.7 * (last + 1) as f32 / all)
        };
        let mut names: Vec<(f32, &String)> =
            self.found.iter().map(|(name, &(count, last))| (score(count, last), name)).collect();
        names.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        names.into_iter().take(RETURNED).map(|(_, name)| name.clone()).collect()
    }
}

/// Returns the beginning of a text, without a word that would be cut.
fn beginning(text: &str, most: Chars) -> &str {
    let start = head(text, most);
    let is_cut = start.len() < text.len();
    let whole = start.rfind(char::is_whitespace).filter(|_| is_cut);
    start.slice(..whole.unwrap_or(start.len()))
}
