//! Finds work that was reverted later.

use ctx_core::text::Slice;
use ctx_text::WordList;
use std::collections::{HashMap, HashSet};

use ctx_core::{Block, Role};

use super::ExtractInput;
use super::note::{FILES, Note, drop_all, words};
use crate::Field;
use ctx_facts::command;
use ctx_text::sentences;

/// The maximum number of refutations and of reports that are compared, newest first.
const COMPARED: usize = 300;

/// Words that say that something failed.
static FAILED: WordList = WordList::new("refutes.failed");
/// Words that say that something was reverted.
static TAKEN_BACK: WordList = WordList::new("refutes.taken_back");

/// A statement that reverts something.
struct Reversal {
    /// Its position in the history.
    at: i64,
    /// Its content words.
    about: HashSet<String>,
    /// Whether it may refer with "that" to the last report.
    last: bool,
}

/// Removes notes of work that was reverted later.
pub(super) fn drop_reverted(job: &ExtractInput<'_>, notes: &mut Vec<Note>) {
    let said = Reversals::of(job);
    let mut done: Vec<usize> = (0..notes.len())
        .filter(|&n| notes[n].field == Field::Done && notes[n].label != FILES)
        .collect();
    done.sort_by_key(|&n| std::cmp::Reverse((notes[n].order, n)));
    done.truncate(COMPARED);
    let about: HashMap<usize, HashSet<String>> =
        done.iter().map(|&n| (n, words(&notes[n].text))).collect();
    let mut gone: HashSet<usize> = HashSet::new();
    for reversal in &said.spoken {
        let before = || done.iter().copied().filter(|&n| notes[n].order < reversal.at);
        if reversal.about.is_empty() {
            let last = before().next().map(|n| notes[n].order).filter(|_| reversal.last);
            gone.extend(before().filter(|&n| Some(notes[n].order) == last));
            continue;
        }
        gone.extend(before().filter(|n| {
            let shared = about.get(n).map_or(0, |done| reversal.about.intersection(done).count());
            shared >= 2.min(reversal.about.len()) && shared * 2 >= reversal.about.len()
        }));
    }
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
    spoken: Vec<Reversal>,
    files: Vec<(i64, String)>,
    /// Reverted commits, with a prefix of the hash if it is given.
    commits: Vec<(i64, Option<String>)>,
}

impl Reversals {
    fn of(job: &ExtractInput<'_>) -> Self {
        let mut out = Self::default();
        for (at, said) in job.messages.iter().enumerate().rev() {
            let at = i64::try_from(at).unwrap_or(i64::MAX);
            if said.message.role == Role::Assistant && out.spoken.len() < COMPARED {
                let text = said.message.plain_text();
                let lines = text.lines().filter(|line| refutes(line).is_some());
                let found = lines.flat_map(sentences).filter_map(|sentence| reversal(at, sentence));
                out.spoken.extend(found.take(COMPARED));
            }
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

/// Returns the words that refute, and whether they say that something was reverted.
fn all_refuting() -> impl Iterator<Item = (&'static str, bool)> {
    let failed = FAILED.iter().map(|words| (*words, false));
    failed.chain(TAKEN_BACK.iter().map(|words| (*words, true)))
}

/// Finds the first refuting words of a text, and whether they say that something was reverted.
fn refutes(text: &str) -> Option<(usize, &'static str, bool)> {
    let lower = text.to_ascii_lowercase();
    all_refuting().find_map(|(words, back)| Some((lower.find(words)?, words, back)))
}

fn reversal(at: i64, sentence: &str) -> Option<Reversal> {
    let lower = sentence.chars().take(400).collect::<String>().to_lowercase().replace('’', "'");
    refutes(&lower)?;
    // A plan or a question reverts nothing.
    if lower.ends_with(['?', '？'])
        || [" if ", "should ", "would "].iter().any(|w| lower.contains(w))
    {
        return None;
    }
    let (mut rest, mut last) = (lower, false);
    for (cue, back) in all_refuting() {
        if rest.contains(cue) {
            last |= back;
            rest = rest.replace(cue, "，");
        }
    }
    let about = words(&rest);
    (last || about.len() >= 2).then_some(Reversal { at, about, last })
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
