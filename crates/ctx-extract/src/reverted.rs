//! Takes back work that was reverted: by commands of the agent, or by the user.

use std::collections::{HashMap, HashSet};

use ctx_core::{Block, Message};
use ctx_facts::command;
use ctx_text::{Signal, WordList, sentences};

use super::ExtractInput;
use super::note::{Note, REVERTED, drop_all};
use super::turns::{Turn, typed};
use crate::Field;

/// Words for reverting something, for the user, and for what has not happened.
static VERBS: WordList = WordList::new("reverted.verbs");
static SUBJECTS: WordList = WordList::new("reverted.subjects");
static NOT_YET: WordList = WordList::new("reverted.not_yet");
/// Words that take back all work of the session.
static ALL: WordList = WordList::new("reverted.all");

/// The maximum number of reversals, newest first.
const COMPARED: usize = 100;

/// What was reverted.
enum Reversal {
    /// The files or commits that a command names.
    Command(Vec<String>),
    /// What the user says.
    Said(String),
}

/// Takes back notes of finished work that was reverted later. Work that a command of the agent
/// reverted is dropped; what the user reverted is said to be.
pub(super) fn take_back(job: &ExtractInput<'_>, turns: &[Turn], notes: &mut Vec<Note>) {
    let mut dropped = HashSet::new();
    for (at, reversal) in reversals(job) {
        let mut done: Vec<usize> = (0..notes.len())
            .filter(|n| notes[*n].field == Field::Done && notes[*n].order < at)
            .filter(|n| !dropped.contains(n))
            .collect();
        done.sort_by_key(|&n| std::cmp::Reverse(notes[n].order));
        match reversal {
            Reversal::Command(names) => {
                let is_named = |n: &usize| names.iter().any(|name| holds(&notes[*n].text, name));
                dropped.extend(done.iter().filter(|n| is_named(n)));
            }
            Reversal::Said(words) => {
                for n in meant(&words, &done, notes, turns) {
                    let note = &mut notes[n];
                    (note.field, note.label) = (Field::CriticalContext, REVERTED);
                    note.weight = note.weight.max(0.6);
                }
            }
        }
    }
    drop_all(notes, &dropped);
}

/// Returns the reversals, newest first, with the positions of their messages.
fn reversals(job: &ExtractInput<'_>) -> Vec<(i64, Reversal)> {
    let mut calls = HashMap::new();
    let mut out = Vec::new();
    for (said, at) in job.messages.iter().zip(0..) {
        let mut commands = Vec::new();
        for block in &said.message.blocks {
            match block {
                Block::ToolCall(call) => {
                    calls.insert(&*call.id, call);
                }
                Block::ToolResult(result) if !result.is_error => {
                    let call = calls.get(&*result.call_id);
                    commands.extend(call.and_then(|call| command::command_line(call)));
                }
                Block::Bash(run) if run.exit_code.is_none_or(|code| code == 0) => {
                    commands.push(run.command.clone());
                }
                _ => {}
            }
        }
        out.extend(commands.iter().flat_map(|line| undone(line)).map(|undone| (at, undone)));
        out.extend(says_reverted(&said.message).map(|words| (at, Reversal::Said(words))));
    }
    out.reverse();
    out.truncate(COMPARED);
    out
}

/// Returns the clause in which the user says that something was reverted.
fn says_reverted(message: &Message) -> Option<String> {
    let text = typed(message)?;
    let says = |clause: &&str| {
        let lower = clause.to_lowercase().replace('’', "'");
        VERBS.is_in(&lower)
            && has(&lower, &SUBJECTS)
            && !has(&lower, &NOT_YET)
            && !Signal::of(clause).question
    };
    let clauses = text.lines().flat_map(sentences).flat_map(|s| s.split([',', ';', '，', '；']));
    clauses.map(str::trim).find(says).map(str::to_owned)
}

/// Whether a word of a list is in a text in lower case. Chinese has no space between words.
fn has(text: &str, list: &WordList) -> bool {
    let mut words = text.split(|c: char| !(c.is_alphanumeric() || c == '\''));
    words.any(|word| list.contains(word))
        || list.iter().any(|word| !word.is_ascii() && text.contains(word))
}

/// Returns which of the finished work, newest first, the user means: what the sentence names, all of
/// it, or else that of the turn before.
fn meant(words: &str, done: &[usize], notes: &[Note], turns: &[Turn]) -> Vec<usize> {
    let handles = words.split(|c: char| c.is_whitespace() || matches!(c, '`' | ',' | '"'));
    let handles = handles.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let handles: Vec<&str> = handles.filter(|word| is_handle(word)).collect();
    let named = |n: &&usize| handles.iter().any(|handle| holds(&notes[**n].text, handle));
    let found: Vec<usize> = done.iter().filter(named).copied().collect();
    if !found.is_empty() {
        return found;
    }
    if has(&words.to_lowercase(), &ALL) {
        return done.to_vec();
    }
    let Some(newest) = done.first().map(|&n| &notes[n]) else { return Vec::new() };
    let turn = |order: i64| {
        let at = usize::try_from(order).ok()?;
        turns.iter().position(|turn| turn.range.contains(&at))
    };
    // Of an earlier round, only the entries are known.
    let alike = |note: &Note| match turn(newest.order) {
        Some(last) => turn(note.order) == Some(last),
        None => note.cites.last() == newest.cites.last(),
    };
    done.iter().copied().filter(|&n| alike(&notes[n])).collect()
}

/// Whether a word names a file or a name in code.
fn is_handle(word: &str) -> bool {
    word.contains(['.', '/', '_', '(']) || word.chars().skip(1).any(char::is_uppercase)
}

/// Returns what the parts of a command line take back: "git restore a.rs", "git revert 4f2a9c1".
fn undone(line: &str) -> Vec<Reversal> {
    let parts = line.split("&&").flat_map(|part| part.split([';', '|', '\n']));
    let command = |part: &str| {
        let (_, words) = part.split_once("git ")?;
        let words =
            ["revert ", "restore "].iter().find_map(|start| words.strip_prefix(start)).or_else(
                || words.strip_prefix("checkout ")?.split_once("-- ").map(|(_, files)| files),
            )?;
        let words = words.split_whitespace().filter(|word| !word.starts_with('-')).take(60);
        let names = words.map(|word| word.trim_matches(['"', '\'']).rsplit('/').next());
        Some(Reversal::Command(names.flatten().map(str::to_owned).collect()))
    };
    parts.filter_map(command).collect()
}

/// Whether a text names a file, and not one whose name only has the same ending.
fn holds(text: &str, file: &str) -> bool {
    file.len() > 2
        && text.match_indices(file).any(|(at, _)| {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        })
}
