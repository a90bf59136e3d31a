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
/// The length of an argument that is examined.
const ARGUMENT: Chars = Chars(600);

/// The length of a result that is examined.
const RESULT: Chars = Chars(4_000);

/// Arguments that are one of a few words, such as `"status": "in_progress"`.
static CHOICES: WordList = WordList::new("arguments.choices");

/// The names so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    found: HashMap<String, Name, foldhash::fast::FixedState>,
}

/// How often a name occurs.
#[derive(Debug, Default)]
struct Name {
    count: u32,
    /// The message that mentions it last.
    last: usize,
    /// Whether the user or the agent wrote it. A name that only one result mentions is not needed.
    is_written: bool,
}

impl Names {
    /// Reads a message.
    pub(super) fn read(&mut self, at: usize, message: &Message, speakers: &Speakers<'_>) {
        for words in [&speakers.user, &speakers.assistant] {
            for segment in segments(words).into_iter().filter(|segment| !segment.is_code) {
                self.text(at, words.slice(segment.range), true);
            }
        }
        for block in &message.blocks {
            if let Block::ToolResult(result) = block {
                self.text(at, whole_words(&result.plain_text(), RESULT), false);
                continue;
            }
            let Block::ToolCall(call) = block else { continue };
            for argument in strings(call.arguments.as_str()) {
                if CHOICES.contains(&argument.key) {
                    continue;
                }
                self.text(at, whole_words(&argument.value, ARGUMENT), true);
            }
        }
        if self.found.len() > MOST {
            let mut last: Vec<usize> = self.found.values().map(|name| name.last).collect();
            last.sort_unstable();
            let middle = last[last.len() / 2];
            self.found.retain(|_, name| name.last > middle || name.count > 3);
        }
    }

    fn text(&mut self, at: usize, text: &str, is_written: bool) {
        for span in spans(text) {
            let is_name = match span.kind {
                SpanKind::CodeName => !span.text.contains(' '),
                SpanKind::Id => span.text.bytes().all(|b| b.is_ascii_hexdigit()),
                _ => false,
            };
            if is_name && (4..=60).contains(&span.text.len()) && !span.text.contains(['`', '\n']) {
                let name = self.found.entry(span.text.to_owned()).or_default();
                name.count += 1;
                name.last = at;
                name.is_written |= is_written;
            }
        }
    }

    /// Returns the names among `messages` messages, most needed first.
    pub(super) fn ranked(&self, messages: usize) -> Vec<String> {
        let all = messages.max(1) as f32;
        let score = |name: &Name| {
            (1.0 + (name.count as f32).ln()) * (0.3 + 0.7 * (name.last + 1) as f32 / all)
        };
        let found = self.found.iter().filter(|(_, name)| name.is_written || name.count > 1);
        let mut names: Vec<(f32, &String)> = found.map(|(name, is)| (score(is), name)).collect();
        names.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        names.into_iter().take(RETURNED).map(|(_, name)| name.clone()).collect()
    }
}

/// Returns the beginning of a text, without the word that may be cut.
fn whole_words(text: &str, most: Chars) -> &str {
    let start = head(text, most);
    let whole = start.rfind(char::is_whitespace).filter(|_| start.len() < text.len());
    start.slice(..whole.unwrap_or(start.len()))
}
