//! Required tokens, from any speaker.

use ctx_text::{BlockKind, NormalForm, Reading, Span, SpanKind, WordList, normal_form, spans};
use std::collections::HashMap;
use std::ops::Range;

use ctx_core::{Block, Chars, EntryId, Role, ToolCall};

use super::results::of_result;
use super::speakers::Speakers;
use crate::arguments::strings;
use crate::command::command_line;
use crate::files::patched;
use crate::{CitedMessage, RequiredFact};
use ctx_text::output::is_foreign;

/// Names of arguments that are a location: a file, a folder, an address.
static PLACES: WordList = WordList::new("arguments.places");

/// The maximum number of tokens per message that are facts. A message with more is a list.
const MOST_OF_USER: usize = 120;
const MOST_OF_ASSISTANT: usize = 80;
const MOST_OF_CALL: usize = 12;
/// The length of a command line that is examined; the rest is mostly a script.
const COMMAND: Chars = Chars(600);
/// Longer code is quoted, not said.
const SHORT_CODE: usize = 15;

/// The source of a token, which determines its weight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Read,
    Error,
    Changed,
    Assistant,
    User,
}

impl Source {
    fn weight(self) -> f32 {
        match self {
            Self::Read => 0.15,
            Self::Error => 0.3,
            Self::Changed => 0.35,
            Self::Assistant => 0.4,
            Self::User => 0.6,
        }
    }
}

#[derive(Debug)]
struct Mention {
    kind: SpanKind,
    text: String,
    source: Source,
    count: u32,
    last: usize,
    entry: EntryId,
}

/// The tokens found so far.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    found: HashMap<NormalForm, Mention, foldhash::fast::FixedState>,
    /// The message being read.
    at: usize,
    entry: EntryId,
}

impl Tokens {
    /// Reads a message.
    pub(super) fn read(&mut self, at: usize, one: &CitedMessage, speakers: &Speakers<'_>) {
        (self.at, self.entry) = (at, one.id.clone());
        self.prose(&speakers.user, Source::User);
        if one.pinned {
            return;
        }
        self.prose(&speakers.assistant, Source::Assistant);
        let mut answered = speakers.answered.iter();
        for block in &one.message.blocks {
            match block {
                Block::ToolCall(call) => self.call(call),
                Block::ToolResult(result) => {
                    let command = answered.next().and_then(Option::as_deref);
                    for (kind, text) in of_result(result, command) {
                        self.add(kind, &text, Source::Error);
                    }
                }
                Block::Bash(run) if one.message.role == Role::BashExecution => {
                    self.command(&run.command, Source::User);
                    if let Some(code) = run.exit_code.filter(|&code| code != 0) {
                        self.add(SpanKind::ErrorCode, &format!("exit code {code}"), Source::Error);
                    }
                }
                _ => {}
            }
        }
    }

    fn add(&mut self, kind: SpanKind, text: &str, source: Source) {
        let says = text.len() >= 2 && text.contains(char::is_alphanumeric);
        if !says || text.contains(['\n', '\r']) || text.contains("[e:") {
            return;
        }
        let mention = self.found.entry(normal_form(kind, text)).or_insert_with(|| Mention {
            kind,
            text: text.to_owned(),
            source,
            count: 0,
            last: self.at,
            entry: self.entry.clone(),
        });
        // The text comes from the source of highest weight, and is its longest form, but for a file
        // the latest, and for a status the form that says it is one.
        let fuller = match kind {
            SpanKind::Path => true,
            SpanKind::ErrorCode => text.starts_with("HTTP"),
            _ => text.len() >= mention.text.len(),
        };
        if source > mention.source || source == mention.source && fuller {
            text.clone_into(&mut mention.text);
        }
        mention.source = mention.source.max(source);
        mention.count += 1;
        mention.last = self.at;
        mention.entry.clone_from(&self.entry);
    }

    /// Adds the tokens of text by a person or the model.
    fn prose(&mut self, reading: &Reading<'_>, source: Source) {
        let mut left = if source == Source::User { MOST_OF_USER } else { MOST_OF_ASSISTANT };
        for block in reading.blocks.iter().filter(|block| block.kind != BlockKind::Listing) {
            let long = block.fenced.is_some_and(|lines| lines > SHORT_CODE);
            // Long code of a model was written to files; a user's is a log or a configuration.
            if long && source == Source::Assistant {
                continue;
            }
            let data = block.kind == BlockKind::Data;
            let code = block.fenced.is_some() || data;
            let own_frame = (block.kind == BlockKind::Frames).then(|| own_frame(block.text));
            for token in block.spans() {
                let is_kept = own_frame.as_ref().is_none_or(|at| at.contains(&token.range.start));
                if is_kept && left > 0 && matters(token, source, code, long || data) {
                    left -= 1;
                    self.add(token.kind, token.text, source);
                }
            }
        }
    }

    fn call(&mut self, call: &ToolCall) {
        if let Some(command) = command_line(call) {
            self.command(&command, Source::Read);
            return;
        }
        let source = if changes(&call.name) { Source::Changed } else { Source::Read };
        let arguments = strings(call.arguments.as_str());
        for argument in arguments.iter().take(40) {
            let value = argument.value.trim();
            if PLACES.contains(argument.key) && value.len() <= 300 && !value.contains(['\n', '*']) {
                let kind = if value.contains("://") { SpanKind::Url } else { SpanKind::Path };
                let stands = value.contains(['/', '\\', '.']) && value != "." && value != "..";
                if stands && value != "/" {
                    self.add(kind, value, source);
                }
            } else if matches!(argument.key, "patch" | "input" | "diff") {
                for path in patched(value).into_iter().take(MOST_OF_CALL) {
                    self.add(SpanKind::Path, &path, Source::Changed);
                }
            }
        }
    }

    /// Adds the paths and addresses of a command line.
    fn command(&mut self, command: &str, source: Source) {
        let head = ctx_core::text::head(command, COMMAND);
        // A word at the cut may be incomplete, and the text after `<<` is a document.
        let whole = if head.len() == command.len() { head.len() + 1 } else { head.len() };
        let command = head.split("<<").next().unwrap_or_default();
        let found = spans(command).into_iter().filter(|token| {
            matches!(token.kind, SpanKind::Path | SpanKind::Url)
                && !token.text.contains(['*', '$'])
                && !token.text.starts_with("/dev/")
                && token.range.end < whole
                && (source == Source::User || token.text.contains('/') || token.text.contains('.'))
        });
        for token in found.take(MOST_OF_CALL) {
            self.add(token.kind, token.text, source);
        }
    }

    /// Returns the facts among `messages` messages, without those of `stale` forms that nothing else
    /// mentions.
    pub(super) fn facts(
        &self,
        messages: usize,
        stale: &HashMap<NormalForm, usize>,
    ) -> Vec<RequiredFact> {
        let last = messages.max(1) as f32;
        let facts = self.found.iter().filter(|(form, mention)| {
            stale.get(*form).is_none_or(|&superseded| mention.last > superseded)
        });
        let facts = facts.map(|(_, mention)| {
            let often = 0.02 * (mention.count.min(10)) as f32;
            let late = 0.2 * (mention.last + 1) as f32 / last;
            RequiredFact {
                kind: mention.kind.into(),
                text: mention.text.clone(),
                entry: mention.entry.clone(),
                weight: (mention.source.weight() + often + late).min(1.0),
                by_user: mention.source == Source::User,
                order: 0,
            }
        });
        facts.collect()
    }

    /// Forgets the least important tokens beyond `most`.
    pub(super) fn shrink(&mut self, most: usize) {
        if self.found.len() <= most + most / 4 {
            return;
        }
        let rank = |mention: &Mention| (mention.source, mention.last, mention.count);
        let mut ranks: Vec<_> = self.found.values().map(rank).collect();
        ranks.sort_unstable_by(|a, b| b.cmp(a));
        if let Some(least) = ranks.get(most).copied() {
            self.found.retain(|_, mention| rank(mention) > least);
        }
    }
}

/// Whether a token from this source is required.
fn matters(token: &Span<'_>, source: Source, in_code: bool, long: bool) -> bool {
    let user = source == Source::User;
    match token.kind {
        SpanKind::Path | SpanKind::Url => !token.text.starts_with("/dev/null"),
        SpanKind::ErrorCode | SpanKind::Id => user || !in_code,
        SpanKind::Number => {
            let bare = token.text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b','));
            !long && !token.is_count && (user || !in_code && !bare)
        }
        SpanKind::CodeName => !in_code && (token.quoted || user),
    }
}

/// Finds the frame of a stack trace that is kept: the first in the project's own code or, in Python, the
/// last.
fn own_frame(frames: &str) -> Range<usize> {
    let (mut own, mut end) = (0..0, 0);
    for line in frames.split_inclusive('\n') {
        let start = end;
        end += line.len();
        let is_python = line.trim_start().starts_with("File \"");
        if !is_foreign(line) && (own.is_empty() || is_python) {
            own = start..end;
        }
    }
    own
}

/// Whether the tool with this name changes files.
fn changes(tool: &str) -> bool {
    static VERBS: WordList = WordList::new("tools.name_of_change");
    let lower = tool.to_ascii_lowercase();
    VERBS.is_in(&lower)
}
