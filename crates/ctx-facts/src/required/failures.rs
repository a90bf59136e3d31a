//! Causes of failed commands that have not succeeded since.

use std::collections::HashMap;

use ctx_core::Block;

use super::voices::Voice;
use crate::command::{command_line, essence};
use crate::{CitedMessage, FactKind, RequiredFact};
use ctx_text::output::{plain_cause, root_cause, says_failed, totals};

/// The maximum number of failures that are facts, newest first: an old failure that was never rerun
/// is forgotten, not open.
const MOST: usize = 8;

/// The last run of a command.
struct Run {
    at: usize,
    cause: Option<String>,
}

/// Each command so far, with its last run.
#[derive(Default)]
pub(super) struct Failures {
    runs: HashMap<String, Run, foldhash::fast::FixedState>,
}

impl Failures {
    /// Reads a message.
    pub(super) fn read(&mut self, at: usize, one: &CitedMessage, voice: &Voice<'_>) {
        let mut answered = voice.answered.iter();
        for block in &one.message.blocks {
            match block {
                Block::ToolResult(result) => {
                    let call = answered.next().copied().flatten();
                    let Some(line) = call.and_then(command_line) else { continue };
                    self.ran(at, &line, &result.plain_text(), result.is_error);
                }
                Block::Bash(run) => {
                    let failed = run.exit_code.is_some_and(|code| code != 0);
                    self.ran(at, &run.command, &run.output, failed);
                }
                _ => {}
            }
        }
    }

    fn ran(&mut self, at: usize, line: &str, output: &str, failed: bool) {
        let essence = essence(line);
        if essence.is_empty() || super::results::only_shows(&essence) {
            return;
        }
        let sum = totals(output);
        let cause = if failed || sum.is_some_and(says_failed) {
            root_cause(output).or_else(|| sum.map(str::to_owned))
        } else if sum.is_none() {
            plain_cause(output)
        } else {
            None
        };
        self.runs.insert(key(&essence), Run { at, cause });
    }

    /// Returns the facts.
    pub(super) fn into_facts(self, said: &[CitedMessage]) -> Vec<RequiredFact> {
        let mut failed: Vec<(usize, String)> =
            self.runs.into_values().filter_map(|run| Some((run.at, run.cause?))).collect();
        failed.sort_unstable_by(|a, b| b.cmp(a));
        let last = said.len().max(1) as f32;
        let facts = failed.into_iter().take(MOST).filter_map(|(at, text)| {
            let weight = 0.5 + 0.5 * (at + 1) as f32 / last;
            let entry = said.get(at)?.id.clone();
            let sayable = text.contains(char::is_alphanumeric) && !text.contains("[e:");
            sayable.then_some(RequiredFact { kind: FactKind::Failure, text, entry, weight })
        });
        facts.collect()
    }
}

/// Returns a key that is equal for two runs of the same thing: the program and its task. `cargo
/// test sums` and `cargo test` are the same; `npm run lint` and `npm run build` are not.
fn key(essence: &str) -> String {
    let mut words = essence.split_whitespace().filter(|word| !word.contains('='));
    let first = words.next().unwrap_or_default();
    let mut key = first.to_owned();
    let mut rest = words.filter(|word| !word.starts_with('-'));
    let tools =
        ["cargo", "go", "npm", "pnpm", "yarn", "bun", "make", "just", "git", "docker", "npx"];
    if tools.contains(&first) {
        for word in rest.by_ref() {
            key.push(' ');
            key.push_str(word);
            if !matches!(word, "run" | "exec") {
                break;
            }
        }
        return key;
    }
    // Except for these, other commands differ by all their arguments.
    if matches!(first, "pytest" | "jest" | "vitest" | "tsc" | "mypy" | "ruff" | "eslint") {
        return key;
    }
    essence.to_owned()
}
