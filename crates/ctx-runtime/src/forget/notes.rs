//! Notes of the day that memory flushes wrote: they stand in a workspace, among what others write there.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use ctx_core::{ContentHash, Result};
use ctx_disk::FileLock;
use ctx_session::erase::Erased;
use serde::{Deserialize, Serialize};

use super::plan::Plan;
use super::results::hash;
use super::{Forget, Forgotten, StillHeld};

/// A paragraph that a flush wrote: where, and of which session. No word of it is kept.
#[derive(Clone, Serialize, Deserialize)]
struct Written {
    path: PathBuf,
    session: String,
    bytes: usize,
    hash: ContentHash,
}

/// `notes.jsonl` in the memory of an agent: the paragraphs that flushes wrote for it.
#[derive(Clone, Debug)]
pub(crate) struct Notes(PathBuf);

impl Notes {
    pub(crate) fn of(memory: &Path) -> Self {
        Self(memory.join("notes.jsonl"))
    }

    /// Notes a paragraph that is about to be written.
    pub(crate) fn add(&self, path: &Path, session: &str, text: &str) -> Result<()> {
        ctx_disk::create_private_dir(ctx_disk::parent(&self.0))?;
        let _lock = FileLock::soon(&self.0)?;
        let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let (session, bytes, hash) = (session.to_owned(), text.len(), hash(text));
        let mut all = self.all()?;
        all.push(Written { path, session, bytes, hash });
        self.replace(&all)
    }

    /// Erases what is to go from the notes. Where others changed a paragraph, it is theirs.
    pub(super) fn forget(&self, what: &Forget, plan: &Plan, to: &mut Forgotten) -> Result<()> {
        let _lock = if self.0.exists() { FileLock::soon(&self.0)? } else { return Ok(()) };
        let mut all = self.all()?;
        for path in all.iter().map(|of| of.path.clone()).collect::<BTreeSet<_>>() {
            let Ok(before) = ctx_disk::read_to_string(&path) else { continue };
            let mut text = before.clone();
            for of in all.iter_mut().filter(|of| of.path == path) {
                let Some(at) = of.place(&text) else { continue };
                let own = text[at..at + of.bytes].to_owned();
                let stays = own.split('\n').filter(|line| !goes(of, line, what, plan));
                let stays = stays.collect::<Vec<_>>().join("\n");
                text.replace_range(at..at + own.len(), &stays);
                (of.bytes, of.hash) = (stays.len(), hash(&stays));
            }
            let needle = plan.needle.as_ref().filter(|_| what.session.is_none());
            if needle.is_some_and(|needle| needle.is_in_file(&text)) {
                let why =
                    "what others wrote into the note, or changed there, is not ctx's to erase";
                to.not_reached(StillHeld { path: path.clone(), why: why.to_owned() });
            }
            if text == before {
                continue;
            }
            if !to.dry_run {
                // The same may read it as before.
                let rights = std::fs::metadata(&path).map(|found| found.permissions());
                ctx_disk::put(&path, text.as_bytes())?;
                let set = rights.and_then(|rights| std::fs::set_permissions(&path, rights));
                set.map_err(|e| ctx_disk::io_error("cannot set the rights of a note", &path, e))?;
            }
            let summary_lines = before.lines().count().saturating_sub(text.lines().count());
            to.files.push(Erased { path, summary_lines, ..Erased::default() });
        }
        all.retain(|of| of.bytes > 0);
        if to.dry_run { Ok(()) } else { self.replace(&all) }
    }

    /// Lines that cannot be read tell of nothing.
    fn all(&self) -> Result<Vec<Written>> {
        let text = match ctx_disk::read_to_string(&self.0) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            read => {
                read.map_err(|e| ctx_disk::io_error("cannot read the list of notes", &self.0, e))?
            }
        };
        Ok(text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    fn replace(&self, all: &[Written]) -> Result<()> {
        ctx_disk::replace(&self.0, |out| {
            all.iter().try_for_each(|of| writeln!(out, "{}", serde_json::to_string(of)?))
        })
    }
}

impl Written {
    /// Where it stands in a note, if nobody changed it.
    fn place(&self, text: &str) -> Option<usize> {
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        let is_it =
            |at: &usize| text.get(*at..at + self.bytes).is_some_and(|own| hash(own) == self.hash);
        starts.filter(|_| self.bytes > 0).find(is_it)
    }
}

/// Whether a line goes that was written of a session: with all of that, or for what it tells.
fn goes(of: &Written, line: &str, what: &Forget, plan: &Plan) -> bool {
    if what.is_whole() && what.session.as_ref() == Some(&of.session) {
        return true;
    }
    let mut sessions = plan.sessions.iter().filter(|session| session.names.contains(&of.session));
    let holds = || plan.needle.as_ref().is_some_and(|needle| needle.is_in(line));
    what.session.is_none() && holds()
        || sessions.any(|session| session.all || session.only.are_in(line) || holds())
}
