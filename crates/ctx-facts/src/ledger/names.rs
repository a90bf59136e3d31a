//! Names that may be needed next: names in code, flags, hashes, by how often and how late they occur.

use std::collections::HashMap;

use ctx_core::text::{Slice, head};
use ctx_core::{Block, Chars, Message};
use ctx_text::{Span, SpanKind, WordList, spans};

use super::passages::Passage;
use super::speakers::Speakers;
use crate::strings;

/// The maximum number of names that are counted.
const MOST: usize = 8_000;
/// The maximum number of names that are returned.
const RETURNED: usize = 1_000;
/// The length of an argument and of a tool result that is examined.
const ARGUMENT: Chars = Chars(600);
const RESULT: Chars = Chars(20_000);
/// After this many characters of later text, a name counts half.
const HALF_LIFE: f32 = 120_000.0;

/// Arguments that are one of a few words, such as `"status": "in_progress"`.
static CHOICES: WordList = WordList::new("arguments.choices");

/// The names so far.
#[derive(Debug, Default)]
pub(super) struct Names {
    found: HashMap<String, Mentions, foldhash::fast::FixedState>,
    /// The characters read so far.
    read: usize,
}

/// The mentions of a name.
#[derive(Debug, Default)]
struct Mentions {
    /// The messages with it.
    messages: u32,
    /// The last of them.
    last: Option<usize>,
    /// The characters read when it was last mentioned.
    read: usize,
}

impl Names {
    /// Reads a message.
    pub(super) fn read(&mut self, at: usize, message: &Message, speakers: &Speakers<'_>) {
        let blocks = speakers.user.blocks.iter().chain(&speakers.assistant.blocks);
        for block in blocks.filter(|block| block.fenced.is_none()) {
            self.read += block.text.len();
            self.count(at, block.spans());
        }
        for block in &message.blocks {
            match block {
                Block::ToolResult(result) => {
                    self.text(at, beginning(&result.plain_text(), RESULT));
                }
                Block::ToolCall(call) => {
                    let arguments = strings(call.arguments.as_str());
                    for argument in arguments.into_iter().filter(|it| !CHOICES.contains(it.key)) {
                        self.text(at, beginning(&argument.value, ARGUMENT));
                    }
                }
                _ => {}
            }
        }
        if self.found.len() > MOST {
            let mut places: Vec<usize> = self.found.values().map(|name| name.read).collect();
            places.sort_unstable();
            let middle = places[places.len() / 2];
            self.found.retain(|_, name| name.read > middle || name.messages > 3);
        }
    }

    fn text(&mut self, at: usize, text: &str) {
        self.read += text.len();
        self.count(at, &spans(text));
    }

    fn count(&mut self, at: usize, spans: &[Span<'_>]) {
        for span in spans {
            let is_name = match span.kind {
                SpanKind::CodeName => !span.text.contains(' '),
                SpanKind::Id => span.text.bytes().all(|b| b.is_ascii_hexdigit()),
                _ => false,
            };
            if is_name && (4..=60).contains(&span.text.len()) && !span.text.contains(['`', '\n']) {
                let name = self.found.entry(span.text.to_owned()).or_default();
                name.messages += u32::from(name.last != Some(at));
                (name.last, name.read) = (Some(at), self.read);
            }
        }
    }

    /// Returns the names, most needed first: by the number of messages with each, and how long ago the
    /// last one was. Those that only statements in `gone` mention are left out.
    pub(super) fn ranked(&self, gone: &[(Passage, usize)]) -> Vec<String> {
        let score = |name: &Mentions| {
            let age = (self.read - name.read) as f32;
            (name.messages as f32).sqrt() * 0.5f32.powf(age / HALF_LIFE)
        };
        let is_stale = |text: &str, name: &Mentions| {
            gone.iter().any(|(old, by)| name.last <= Some(*by) && old.text.contains(text))
        };
        let valid = self.found.iter().filter(|(text, name)| !is_stale(text, name));
        let mut names: Vec<(f32, &String)> =
            valid.map(|(text, name)| (score(name), text)).collect();
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
