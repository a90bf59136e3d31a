//! Causes of failed commands that have not succeeded since.

use std::collections::HashMap;

use ctx_core::{Block, EntryId};

use super::speakers::Speakers;
use crate::command::{End, end, essence};
use crate::{CitedMessage, FactKind, RequiredFact};
use ctx_text::WordList;
use ctx_text::output::plain_cause;

/// The maximum number of failures that are facts, newest first: an old failure that was never rerun
/// is forgotten, not open.
const MOST: usize = 8;

/// The last run of a command.
#[derive(Debug)]
struct Run {
    at: usize,
    entry: EntryId,
    cause: Option<String>,
}

/// Each command so far, with its last run.
#[derive(Debug, Default)]
pub(super) struct Failures {
    runs: HashMap<String, Run, foldhash::fast::FixedState>,
}

impl Failures {
    /// Reads a message.
    pub(super) fn read(&mut self, at: usize, one: &CitedMessage, speakers: &Speakers<'_>) {
        let mut answered = speakers.answered.iter();
        for block in &one.message.blocks {
            match block {
                Block::ToolResult(result) => {
                    let Some(line) = answered.next().and_then(Option::as_ref) else { continue };
                    self.ran(at, &one.id, line, &result.plain_text(), result.is_error);
                }
                Block::Bash(run) => {
                    let failed = run.exit_code.is_some_and(|code| code != 0);
                    self.ran(at, &one.id, &run.command, &run.output, failed);
                }
                _ => {}
            }
        }
    }

    fn ran(&mut self, at: usize, entry: &EntryId, line: &str, output: &str, failed: bool) {
        let essence = essence(line);
        if essence.is_empty() || super::results::only_shows(&essence) {
            return;
        }
        let cause = match end(line, output, failed) {
            End::Badly(cause) => Some(cause),
            End::Well(None) | End::Unknown => plain_cause(output),
            End::Well(Some(_)) => None,
        };
        self.runs.insert(key(&essence), Run { at, entry: entry.clone(), cause });
    }

    /// Returns the facts among `messages` messages.
    pub(super) fn facts(&self, messages: usize) -> Vec<RequiredFact> {
        let failed = self.runs.values().filter_map(|run| Some((run, run.cause.as_deref()?)));
        let mut failed: Vec<(&Run, &str)> = failed.collect();
        failed.sort_unstable_by(|(a, x), (b, y)| (b.at, y).cmp(&(a.at, x)));
        let last = messages.max(1) as f32;
        let facts = failed.into_iter().take(MOST).filter_map(|(run, text)| {
            let weight = 0.5 + 0.5 * (run.at + 1) as f32 / last;
            let sayable = text.contains(char::is_alphanumeric) && !text.contains("[e:");
            sayable.then(|| RequiredFact {
                kind: FactKind::Failure,
                text: text.to_owned(),
                entry: run.entry.clone(),
                weight,
                by_user: false,
                order: 0,
            })
        });
        facts.collect()
    }
}

/// Returns a key that is equal for two runs of the same thing: the program and its task. `cargo
/// test sums` and `cargo test` are the same; `npm run lint` and `npm run build` are not.
fn key(essence: &str) -> String {
    static RUNNERS: WordList = WordList::new("command.runners");
    let mut words = essence.split_whitespace().filter(|word| !word.contains('='));
    let first = words.next().unwrap_or_default();
    // Other commands differ by all their arguments.
    if !RUNNERS.contains(first) {
        return essence.to_owned();
    }
    let mut key = first.to_owned();
    for word in words.filter(|word| !word.starts_with('-')) {
        key.push(' ');
        key.push_str(word);
        if !matches!(word, "run" | "exec") {
            break;
        }
    }
    key
}
