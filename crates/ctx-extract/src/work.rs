//! Notes of work done with tools: tasks, commits, effects, refused calls.

use std::borrow::Cow;
use std::collections::HashMap;

use ctx_core::{Block, EntryId, ToolCall};

use super::ExtractInput;
use super::note::{EARLIER, Note};
use super::talk::WIDE;
use super::todos::State;
use super::user::asks;
use crate::{Field, WorkingState};
use ctx_facts::command;
use ctx_text::output::is_rejection;
use ctx_text::{WordList, clip_to_width, marks};

/// Collects notes of all calls and their results.
pub(super) fn notes(job: &ExtractInput<'_>) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
    for (at, said) in job.messages.iter().enumerate() {
        let mut add = |(field, text, weight): (Field, String, f32)| {
            let label = if field == Field::Goal { EARLIER } else { "" };
            notes.push(Note::new(field, text, &said.id, weight, at).labelled(label));
        };
        for block in &said.message.blocks {
            match block {
                Block::ToolCall(call) => {
                    calls.insert(&call.id, call);
                }
                Block::ToolResult(result) => {
                    let text = result.plain_text();
                    let line = calls.get(&*result.call_id).and_then(|it| command::command_line(it));
                    if let Some(words) = refusal(&text) {
                        add(words);
                    } else if let Some(line) = line {
                        ran(&line, &text, result.is_error).into_iter().for_each(&mut add);
                    }
                }
                Block::Bash(run) => {
                    let failed = run.exit_code.is_some_and(|code| code != 0);
                    ran(&run.command, &run.output, failed).into_iter().for_each(&mut add);
                }
                _ => {}
            }
        }
    }
    notes.extend(tasks(job));
    notes
}

/// Returns the tasks of the agent's list, as far as these messages change them or they are open.
fn tasks(job: &ExtractInput<'_>) -> Vec<Note> {
    let own = || WorkingState::of(job.messages);
    let state = job.state.map_or_else(|| Cow::Owned(own()), Cow::Borrowed);
    let places: HashMap<&EntryId, usize> =
        job.messages.iter().enumerate().map(|(at, said)| (&said.id, at)).collect();
    let mut notes = Vec::new();
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
        notes.push(note);
    }
    notes
}

/// Returns the commit that a command made, and its effect: field, text and weight of each note.
fn ran(line: &str, output: &str, failed: bool) -> Vec<(Field, String, f32)> {
    let mut out = Vec::new();
    let words = command::essence(line);
    if let Some(commit) = command::commit_line(output) {
        out.push((Field::Done, format!("Commit {}", clip_to_width(commit, 200)), 0.7));
    }
    if command::has_effect(line) && !failed && !words.is_empty() {
        let url = command::url(output).map(|url| format!(" → {url}")).unwrap_or_default();
        let weight = if url.is_empty() { 0.42 } else { 0.65 };
        out.push((Field::Done, format!("{}{url}", command::code(&words)), weight));
    }
    out
}

/// Returns what the user said when rejecting a call: field, text and weight.
fn refusal(text: &str) -> Option<(Field, String, f32)> {
    static MARKS: WordList = WordList::new("output.rejections");
    if !is_rejection(text) {
        return None;
    }
    let at = MARKS.iter().find_map(|mark| text.find(mark).map(|at| at + mark.len()))?;
    let words = text.get(at..)?.split("\n\nNote:").next()?;
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    let text = Some(clip_to_width(&words, WIDE)).filter(|text| !text.is_empty())?;
    let field = match marks(&text).constraint {
        true => Field::Constraints,
        false if asks(&text) => Field::Goal,
        false => Field::CriticalContext,
    };
    Some((field, text, 0.85))
}
