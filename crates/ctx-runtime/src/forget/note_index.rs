//! Records which paragraphs of the daily notes were written by memory flushes.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use ctx_core::{ContentHash, Result};
use ctx_disk::FileLock;
use ctx_session::Erased;
use serde::{Deserialize, Serialize};

use super::targets::Targets;
use super::tool_results::hash;
use super::{ForgetReport, ForgetRequest, RemainingCopy};

/// A paragraph written by a flush: its place and its session, without its text.
#[derive(Clone, Serialize, Deserialize)]
struct NoteRecord {
    path: PathBuf,
    session: String,
    bytes: usize,
    hash: ContentHash,
}

/// `notes.jsonl` in the memory of an agent: the paragraphs that flushes wrote for it.
#[derive(Clone, Debug)]
pub(crate) struct NoteIndex(PathBuf);

impl NoteIndex {
    pub(crate) fn of(memory: &Path) -> Self {
        Self(memory.join("notes.jsonl"))
    }

    /// Records a paragraph that is about to be written.
    pub(crate) fn add(&self, path: &Path, session: &str, text: &str) -> Result<()> {
        ctx_disk::create_private_dir(ctx_disk::parent(&self.0))?;
        let _lock = FileLock::with_default_timeout(&self.0)?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (session, bytes, hash) = (session.to_owned(), text.len(), hash(text));
        let mut all = self.all()?;
        all.push(NoteRecord { path, session, bytes, hash });
        self.replace(&all)
    }

    /// Erases paragraphs from the notes. Changed paragraphs are kept.
    pub(super) fn forget(
        &self,
        what: &ForgetRequest,
        plan: &Targets,
        to: &mut ForgetReport,
    ) -> Result<()> {
        let _lock =
            if self.0.exists() { FileLock::with_default_timeout(&self.0)? } else { return Ok(()) };
        let mut all = self.all()?;
        for path in all.iter().map(|note| note.path.clone()).collect::<BTreeSet<_>>() {
            let Ok(before) = ctx_disk::read_to_string(&path) else { continue };
            let mut text = before.clone();
            for note in all.iter_mut().filter(|note| note.path == path) {
                let Some(at) = note.place(&text) else { continue };
                let own = text[at..at + note.bytes].to_owned();
                let stays = own.split('\n').filter(|line| !is_erased(note, line, what, plan));
                let stays = stays.collect::<Vec<_>>().join("\n");
                text.replace_range(at..at + own.len(), &stays);
                (note.bytes, note.hash) = (stays.len(), hash(&stays));
            }
            let needle = plan.needle.as_ref().filter(|_| what.session.is_none());
            if needle.is_some_and(|needle| needle.is_in_file(&text)) {
                let why = "ctx erases only unchanged paragraphs of a note that it wrote itself";
                to.not_reached(RemainingCopy { path: path.clone(), why: why.to_owned() });
            }
            if text == before {
                continue;
            }
            if !to.dry_run {
                // Keep the file permissions.
                let rights = std::fs::metadata(&path).map(|found| found.permissions());
                ctx_disk::write_atomic(&path, text.as_bytes())?;
                let set = rights.and_then(|rights| std::fs::set_permissions(&path, rights));
                set.map_err(|e| {
                    ctx_disk::io_error("cannot set the permissions of a note", &path, e)
                })?;
            }
            let summary_lines = before.lines().count().saturating_sub(text.lines().count());
            to.files.push(Erased { path, summary_lines, ..Erased::default() });
        }
        all.retain(|note| note.bytes > 0);
        if to.dry_run { Ok(()) } else { self.replace(&all) }
    }

    /// Returns all records; unreadable lines are skipped.
    fn all(&self) -> Result<Vec<NoteRecord>> {
        let text = match ctx_disk::read_to_string(&self.0) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => {
                read.map_err(|e| ctx_disk::io_error("cannot read the list of notes", &self.0, e))?
            }
        };
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    fn replace(&self, all: &[NoteRecord]) -> Result<()> {
        ctx_disk::replace(&self.0, |out| {
            all.iter().try_for_each(|note| writeln!(out, "{}", serde_json::to_string(note)?))
        })
    }
}

impl NoteRecord {
    /// Finds its position in a note, if it is unchanged.
    fn place(&self, text: &str) -> Option<usize> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        let is_it =
            |at: &usize| text.get(*at..at + self.bytes).is_some_and(|own| hash(own) == self.hash);
        starts.filter(|_| self.bytes > 0).find(is_it)
    }
}

/// Whether to erase a line of a session: with the whole session, or because of the line's text.
fn is_erased(note: &NoteRecord, line: &str, what: &ForgetRequest, plan: &Targets) -> bool {
    if what.is_whole() && what.session.as_ref() == Some(&note.session) {
        return true;
    }
    let mut sessions = plan.sessions.iter().filter(|session| session.names.contains(&note.session));
    let holds = || plan.needle.as_ref().is_some_and(|needle| needle.is_in(line));
    what.session.is_none() && holds()
        || sessions.any(|session| session.all || session.only.are_in(line) || holds())
}
