//! Notes of work done with tools: tasks, commits, tests, failures.

use std::borrow::Cow;
use std::collections::HashMap;

use ctx_core::{Block, EntryId, ToolCall};

use super::ExtractInput;
use super::note::{EARLIER, Note};
use super::talk::WIDE;
use super::todos::State;
use super::turns::Turn;
use super::user::asks;
use crate::{Field, WorkingState};
use ctx_facts::command::{self, End, Purpose};
use ctx_text::output::is_rejection;
use ctx_text::{WordList, clip_to_width, collapsed, marks};

/// The last run of a command.
struct Run {
    entry: EntryId,
    at: usize,
    purpose: Purpose,
    end: End,
}

#[derive(Default)]
struct Work {
    /// The last run of each command.
    runs: HashMap<String, Run>,
    notes: Vec<Note>,
}

/// Collects notes of all calls and their results.
pub(super) fn notes(job: &ExtractInput<'_>, turns: &[Turn]) -> Vec<Note> {
    let mut work = Work::default();
    let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
    for (at, said) in job.messages.iter().enumerate() {
        for block in &said.message.blocks {
            match block {
                Block::ToolCall(call) => {
                    calls.insert(&call.id, call);
                }
                Block::ToolResult(result) => {
                    let text = result.plain_text();
                    let call = calls.get(&*result.call_id).copied();
                    work.result(call, &text, result.is_error, &said.id, at);
                }
                Block::Bash(run) => {
                    let failed = run.exit_code.is_some_and(|code| code != 0);
                    work.command(&run.command, &run.output, failed, &said.id, at);
                }
                _ => {}
            }
        }
    }
    work.tasks(job);
    work.finish(job.messages.len(), turns)
}

impl Work {
    /// Adds the tasks of the agent's list, as far as these messages change them or they are open.
    fn tasks(&mut self, job: &ExtractInput<'_>) {
        let own = || WorkingState::of(job.messages);
        let state = job.state.map_or_else(|| Cow::Owned(own()), Cow::Borrowed);
        let places: HashMap<&EntryId, usize> =
            job.messages.iter().enumerate().map(|(at, said)| (&said.id, at)).collect();
        for task in state.tasks() {
            let at = places.get(&task.entry).copied();
            let (field, weight) = match task.state {
                State::Done if at.is_some() => (Field::Done, 0.55),
                State::Doing => (Field::InProgress, 0.9),
                State::Pending => (Field::NextSteps, 0.85),
                State::Done | State::Dropped => continue,
            };
            let text = clip_to_width(&task.text, 240);
            let mut note = Note::new(field, text, &task.entry, weight, at.unwrap_or(0));
            if at.is_none() {
                // Tasks of earlier rounds come before all others.
                note.order = i64::MIN / 4 + i64::try_from(task.at).unwrap_or_default();
            }
            self.notes.push(note);
        }
    }

    fn result(
        &mut self,
        call: Option<&ToolCall>,
        text: &str,
        failed: bool,
        entry: &EntryId,
        at: usize,
    ) {
        if let Some(words) = refusal(text) {
            let text = clip_to_width(&words, WIDE);
            let field = match marks(&text).constraint {
                true => Field::Constraints,
                false if asks(&text) => Field::Goal,
                false => Field::CriticalContext,
            };
            let label = if field == Field::Goal { EARLIER } else { "" };
            self.notes.push(Note::new(field, text, entry, 0.85, at).labelled(label));
            return;
        }
        if let Some(line) = call.and_then(command::command_line) {
            self.command(&line, text, failed, entry, at);
        }
    }

    fn command(&mut self, line: &str, output: &str, failed: bool, entry: &EntryId, at: usize) {
        let words = command::essence(line);
        let purpose = command::purpose(line, &words);
        if words.is_empty() {
            return;
        }
        if let Some(commit) = command::commit_line(output) {
            let text = format!("Commit {}", clip_to_width(commit, 200));
            self.notes.push(Note::new(Field::Done, text, entry, 0.7, at));
        }
        let end = command::end(line, output, failed);
        if purpose == Purpose::Effect && !failed {
            let url = command::url(output).map(|url| format!(" → {url}")).unwrap_or_default();
            let text = format!("{}{url}", command::code(&words));
            let weight = if url.is_empty() { 0.42 } else { 0.65 };
            self.notes.push(Note::new(Field::Done, text, entry, weight, at));
        }
        let matters = purpose == Purpose::Check
            || matches!(end, End::Badly(_))
            || self.runs.contains_key(&words);
        if matters {
            self.runs.insert(words, Run { entry: entry.clone(), at, purpose, end });
        }
    }

    fn finish(mut self, length: usize, turns: &[Turn]) -> Vec<Note> {
        let length = length.max(1) as f32;
        let recent = |at: usize| 0.5 + 0.5 * (at as f32 / length);
        let last_turn = turns.last().map_or(0, |turn| turn.range.start);
        let mut runs: Vec<(String, Run)> = self.runs.drain().collect();
        runs.sort_by_key(|(_, run)| std::cmp::Reverse(run.at));
        let (mut well, mut badly) = (0u32, 0u32);
        for (words, run) in runs {
            let (field, text, weight) = match run.end {
                End::Badly(why) => {
                    let text = format!("{} → {}", command::code(&words), clip_to_width(&why, WIDE));
                    badly += 1;
                    let check = run.purpose == Purpose::Check;
                    match (check, run.at >= last_turn) {
                        (true, true) => (Field::Blocked, text, 0.8),
                        (true, false) => (Field::CriticalContext, text, 0.7),
                        (false, true) => (Field::CriticalContext, text, 0.6),
                        (false, false) => (Field::CriticalContext, text, 0.4),
                    }
                }
                End::Well(sum) if run.purpose == Purpose::Check => {
                    well += 1;
                    let words = command::code(&words);
                    let text = match sum {
                        Some(sum) => format!("{words} → {}", clip_to_width(&sum, 160)),
                        None => format!("{words} → no error"),
                    };
                    (Field::CriticalContext, text, 0.5)
                }
                _ => continue,
            };
            if well > 8 || badly > 12 {
                break;
            }
            let place = recent(run.at);
            self.notes.push(Note::new(field, text, &run.entry, weight * place, run.at));
        }
        self.notes
    }
}

/// Returns what the user said when rejecting a call.
fn refusal(text: &str) -> Option<String> {
    static MARKS: WordList = WordList::new("output.rejections");
    if !is_rejection(text) {
        return None;
    }
    let at = MARKS.iter().find_map(|mark| text.find(mark).map(|at| at + mark.len()))?;
    let words = text.get(at..)?.split("\n\nNote:").next()?;
    let words = collapsed(words);
    (!words.is_empty()).then_some(words)
}
