//! Finds work that was reverted later.

use ctx_core::text::Slice;
use std::collections::HashSet;

use ctx_core::Block;

use super::ExtractInput;
use super::note::{FILES, Note, drop_all};
use crate::Field;
use ctx_facts::command;

/// The maximum number of reverted files and of reports that are compared, newest first.
const COMPARED: usize = 300;

/// Removes notes of work that was reverted later.
pub(super) fn drop_reverted(job: &ExtractInput<'_>, notes: &mut Vec<Note>) {
    let said = Reversals::of(job);
    let mut done: Vec<usize> = (0..notes.len())
        .filter(|&n| notes[n].field == Field::Done && notes[n].label != FILES)
        .collect();
    done.sort_by_key(|&n| std::cmp::Reverse((notes[n].order, n)));
    done.truncate(COMPARED);
    let mut gone: HashSet<usize> = HashSet::new();
    for (at, path) in &said.files {
        let name = path.rsplit('/').next().unwrap_or(path);
        gone.extend(
            done.iter().copied().filter(|&n| notes[n].order < *at && names(&notes[n].text, name)),
        );
    }
    for (at, hash) in &said.commits {
        let mut commits = done
            .iter()
            .copied()
            .filter(|&n| notes[n].order < *at && notes[n].text.starts_with("Commit ["));
        let found = match hash {
            Some(hash) => commits.find(|&n| has_hash(&notes[n].text, hash)),
            None => commits.next(),
        };
        gone.extend(found);
    }
    drop_all(notes, &gone);
}

/// Returns the files that a command restored.
pub(super) fn restored(line: &str) -> Vec<&str> {
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

/// All reversals, newest first.
#[derive(Default)]
struct Reversals {
    files: Vec<(i64, String)>,
    /// Reverted commits, with a prefix of the hash if it is given.
    commits: Vec<(i64, Option<String>)>,
}

impl Reversals {
    fn of(job: &ExtractInput<'_>) -> Self {
        let mut out = Self::default();
        for (at, said) in job.messages.iter().enumerate().rev() {
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            for block in &said.message.blocks {
                let line = match block {
                    Block::ToolCall(call) => command::command_line(call),
                    Block::Bash(run) => Some(run.command.clone()),
                    _ => None,
                };
                let Some(line) = line.filter(|_| out.files.len() < COMPARED) else { continue };
                out.files.extend(restored(&line).into_iter().map(|path| (at, path.to_owned())));
                out.commits.extend(reverted_commit(&line).map(|hash| (at, hash)));
            }
        }
        out
    }
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
