//! Notes of work done with tools: tasks, commits, tests, failures, files.

use std::collections::HashMap;

use ctx_core::{Block, EntryId, ToolCall};

use super::ExtractInput;
use super::note::{FILES, Note, without_marks};
use super::reverted::restored;
use super::talk::WIDE;
use super::todos::{State, Todos};
use super::turns::Turn;
use crate::Field;
use ctx_facts::command::{self, End, Purpose};
use ctx_facts::modified_files;
use ctx_text::output::is_rejection;
use ctx_text::{WordList, clip_to_width};

/// The last run of a command.
struct Run {
    entry: EntryId,
    at: usize,
    purpose: Purpose,
    end: End,
}

#[derive(Default)]
struct Work {
    todos: Todos,
    /// The last run of each command.
    runs: HashMap<String, Run>,
    /// For each file, the entry and position of its last change.
    files: HashMap<String, (EntryId, usize)>,
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
                    if !work.todos.call(call, &said.id, at) {
                        work.file(call, &said.id, at);
                    }
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
    work.finish(job.messages.len(), turns)
}

impl Work {
    fn file(&mut self, call: &ToolCall, entry: &EntryId, at: usize) {
        let files = modified_files(call).into_iter();
        self.files.extend(files.map(|path| (path, (entry.clone(), at))));
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
            self.notes.push(Note::new(Field::Constraints, text, entry, 0.85, at));
            return;
        }
        if let Some(line) = call.and_then(command::command_line) {
            self.command(&line, text, failed, entry, at);
        }
    }

    fn command(&mut self, line: &str, output: &str, failed: bool, entry: &EntryId, at: usize) {
        if !failed {
            for path in restored(line) {
                // Calls use full paths more often than commands do.
                self.files.retain(|file, _| !(file == path || file.ends_with(&format!("/{path}"))));
            }
        }
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
        for task in self.todos.tasks() {
            let (field, weight) = match task.state {
                State::Done => (Field::Done, 0.55),
                State::Doing => (Field::InProgress, 0.9),
                State::Pending => (Field::NextSteps, 0.85),
                State::Dropped => continue,
            };
            self.notes.push(Note::new(
                field,
                clip_to_width(&task.text, 240),
                &task.entry,
                weight,
                task.at,
            ));
        }
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
        // Of many commits, the newest matter most.
        for note in &mut self.notes {
            if note.field == Field::Done && note.order < i64::MAX / 8 {
                let at = note.order.max(0) as f32;
                note.weight *= 0.7 + 0.3 * (at / length).min(1.0);
            }
        }
        self.changed_files(length);
        self.notes
    }

    /// Adds one line with the files changed last.
    fn changed_files(&mut self, length: f32) {
        let mut files: Vec<(String, (EntryId, usize))> = self.files.drain().collect();
        files.sort_by(|a, b| (b.1.1, &a.0).cmp(&(a.1.1, &b.0)));
        let Some((_, (newest, at))) = files.first().cloned() else { return };
        let mut text = String::new();
        for (path, (entry, _)) in files.into_iter().take(8) {
            if path.len() > 300 {
                continue;
            }
            if !text.is_empty() {
                text.push_str(", ");
            }
            text.push_str(&without_marks(&path));
            if entry != newest {
                text.push_str(&format!(" [e:{entry}]"));
            }
        }
        if !text.is_empty() {
            let weight = 0.4 + 0.1 * (at as f32 / length);
            let note = Note::new(Field::Done, text, &newest, weight, at);
            self.notes.push(note.labelled(FILES));
        }
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
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    (!words.is_empty()).then_some(words)
}
