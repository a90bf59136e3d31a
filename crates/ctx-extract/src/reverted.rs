//! Takes back work that was reverted: by commands of the agent, or by the user.

use std::collections::{HashMap, HashSet};

use ctx_core::text::Slice;
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
    /// A file, by a command.
    File(String),
    /// The commit with this hash, or the newest one, by a command.
    Commit(Option<String>),
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
            Reversal::File(path) => {
                let name = path.rsplit('/').next().unwrap_or(&path);
                dropped.extend(done.into_iter().filter(|&n| names(&notes[n].text, name)));
            }
            Reversal::Commit(hash) => {
                let is_it = |commit: &str| hash.as_ref().is_none_or(|hash| has_hash(commit, hash));
                let mut commits = done.into_iter().filter(|&n| is_commit(&notes[n]));
                dropped.extend(commits.find(|&n| is_it(&notes[n].text)));
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
        for line in commands {
            out.extend(restored(&line).into_iter().map(|path| (at, Reversal::File(path.into()))));
            out.extend(reverted_commit(&line).map(|hash| (at, Reversal::Commit(hash))));
        }
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
        let words = Words::of(clause);
        VERBS.iter().any(|verb| words.text.contains(verb))
            && words.has(&SUBJECTS)
            && !words.has(&NOT_YET)
            && !Signal::of(clause).question
    };
    let clauses = text.lines().flat_map(sentences).flat_map(|s| s.split([',', ';', '，', '；']));
    clauses.map(str::trim).find(says).map(str::to_owned)
}

/// A text in lower case.
struct Words {
    text: String,
}

impl Words {
    fn of(text: &str) -> Self {
        Self { text: text.to_lowercase().replace('’', "'") }
    }

    /// Whether a word of a list is in it. Chinese has no space between words.
    fn has(&self, list: &WordList) -> bool {
        let mut words = self.text.split(|c: char| !(c.is_alphanumeric() || c == '\''));
        words.any(|word| list.contains(&word))
            || list.iter().any(|word| !word.is_ascii() && self.text.contains(word))
    }
}

/// Returns which of the finished work, newest first, the user means: what the sentence names, all of
/// it, or else that of the turn before.
fn meant(words: &str, done: &[usize], notes: &[Note], turns: &[Turn]) -> Vec<usize> {
    let handles = words.split(|c: char| c.is_whitespace() || matches!(c, '`' | ',' | '"'));
    let handles = handles.map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    let handles: Vec<&str> = handles.filter(|word| is_handle(word)).collect();
    let named = |n: &&usize| handles.iter().any(|handle| names(&notes[**n].text, handle));
    let found: Vec<usize> = done.iter().filter(named).copied().collect();
    if !found.is_empty() {
        return found;
    }
    if Words::of(words).has(&ALL) {
        return done.to_vec();
    }
    // A reset of the working tree leaves commits.
    let mut work = done.iter().copied().filter(|&n| !is_commit(&notes[n])).peekable();
    let Some(newest) = work.peek().map(|&n| &notes[n]) else { return Vec::new() };
    let turn = |order: i64| {
        turns
            .iter()
            .position(|turn| usize::try_from(order).is_ok_and(|at| turn.range.contains(&at)))
    };
    // Of an earlier round, only the entries are known.
    let alike = |note: &Note| match turn(newest.order) {
        Some(last) => turn(note.order) == Some(last),
        None => note.cites.last() == newest.cites.last(),
    };
    work.filter(|&n| alike(&notes[n])).collect()
}

/// Whether a word names a file, a name in code or a commit.
fn is_handle(word: &str) -> bool {
    let is_hash = word.len() >= 7 && word.bytes().all(|b| b.is_ascii_hexdigit());
    is_hash || word.contains(['.', '/', '_', '(']) || word.chars().skip(1).any(char::is_uppercase)
}

pub(super) fn is_commit(note: &Note) -> bool {
    note.text.starts_with("Commit [")
}

/// Returns the files that a command restored.
fn restored(line: &str) -> Vec<&str> {
    let mut out = Vec::new();
    for part in line.split("&&").flat_map(|part| part.split([';', '|', '\n'])) {
        let words: Vec<&str> = part.split_whitespace().take(60).collect();
        let Some(git) = words.iter().position(|word| *word == "git") else { continue };
        let rest = words.slice(git + 1..);
        let from = match rest.first() {
            Some(&"checkout") => rest.iter().position(|word| *word == "--"),
            Some(&"restore") => Some(0),
            _ => None,
        };
        let Some(from) = from else { continue };
        let paths = rest.iter().skip(from + 1).filter(|word| !word.starts_with('-'));
        out.extend(paths.map(|word| word.trim_matches(['"', '\''])));
    }
    out
}

/// Returns the commit that a command reverts: the one it names, or the newest.
fn reverted_commit(line: &str) -> Option<Option<String>> {
    let (_, rest) =
        line.split_once("git revert").or_else(|| line.split_once("git reset --hard HEAD~1"))?;
    let words = rest.split_whitespace().take(8);
    let hash = words.into_iter().find(|word| {
        word.len() >= 7 && word.len() <= 40 && word.bytes().all(|b| b.is_ascii_hexdigit())
    });
    Some(hash.map(str::to_owned))
}

fn has_hash(commit: &str, hash: &str) -> bool {
    let head = commit.split(']').next().unwrap_or_default();
    let own = head.rsplit(' ').next().unwrap_or_default();
    !own.is_empty() && (hash.starts_with(own) || own.starts_with(hash))
}

/// Whether a text names a file, and not one whose name only has the same ending.
fn names(text: &str, file: &str) -> bool {
    file.len() > 2
        && text.match_indices(file).any(|(at, _)| {
            let before = text.get(..at).and_then(|text| text.chars().next_back());
            !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        })
}
