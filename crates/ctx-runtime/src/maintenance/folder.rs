//! The contents of a folder of sessions.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use ctx_core::{Result, Timestamp};
use ctx_session::{Sessions, retired_at};

use crate::files::list_folder;

/// The files of a folder of sessions.
pub(super) struct SessionsFolder {
    pub(super) path: PathBuf,
    /// Total size of the files.
    pub(super) bytes: u64,
    files: HashMap<PathBuf, File>,
    /// Size of the side files of each transcript.
    beside: HashMap<PathBuf, u64>,
    /// Transcripts that belong to a session.
    taken: HashSet<PathBuf>,
    /// The ids of all sessions.
    ids: HashSet<String>,
    /// Whether some entries of the store are unreadable, so that their transcripts are unknown.
    has_unreadable: bool,
    /// Transcripts that were archived in this run.
    pub(super) fresh: HashSet<PathBuf>,
}

#[derive(Clone, Copy)]
struct File {
    bytes: u64,
    changed: Timestamp,
}

impl SessionsFolder {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let mut files = HashMap::new();
        for file in list_folder(path)? {
            // A link takes almost no space, and its target is not maintained.
            let Ok(found) = file.symlink_metadata() else { continue };
            if found.is_file() {
                let changed = found.modified().map(Timestamp::from).unwrap_or_default();
                files.insert(file, File { bytes: found.len(), changed });
            }
        }
        let bytes = files.values().map(|file: &File| file.bytes).sum();
        let mut beside: HashMap<PathBuf, u64> = HashMap::new();
        for (path, file) in &files {
            if let Some(of) = owner(path) {
                *beside.entry(of).or_default() += file.bytes;
            }
        }
        Ok(Self {
            path: path.to_owned(),
            bytes,
            files,
            beside,
            taken: HashSet::new(),
            ids: HashSet::new(),
            has_unreadable: false,
            fresh: HashSet::new(),
        })
    }

    /// Records the ids of the sessions in the store.
    pub(super) fn note(&mut self, sessions: &Sessions) {
        self.ids = sessions.all().map(|(_, entry)| entry.session_id.clone()).collect();
        self.has_unreadable = sessions.unreadable().next().is_some();
    }

    /// Marks a transcript as used by a session.
    pub(super) fn take(&mut self, file: &Path) {
        self.taken.insert(file.to_owned());
        // The same file may have another name.
        if !self.has(file)
            && let (Ok(full), Ok(folder)) = (file.canonicalize(), self.path.canonicalize())
            && full.parent() == Some(&*folder)
            && let Some(name) = full.file_name()
        {
            self.taken.insert(self.path.join(name));
        }
    }

    pub(super) fn has(&self, file: &Path) -> bool {
        self.files.contains_key(file)
    }

    /// Returns when a file was last written.
    pub(super) fn changed(&self, file: &Path) -> Option<Timestamp> {
        self.files.get(file).map(|file| file.changed)
    }

    /// Returns the size of a transcript and its side files.
    pub(super) fn bytes_of(&self, file: &Path) -> u64 {
        let own = self.files.get(file).map_or(0, |file| file.bytes);
        own + self.beside.get(file).copied().unwrap_or_default()
    }

    /// Returns archived transcripts with the time of archiving, oldest first.
    pub(super) fn archived(&self) -> Vec<(Timestamp, PathBuf)> {
        // In a dry run, transcripts that would be archived keep their names.
        let now = |file: &PathBuf| self.fresh.contains(file).then_some(Timestamp(i64::MAX));
        let at = |file: &PathBuf| Some((retired_at(file).or_else(|| now(file))?, file.clone()));
        let mut archived: Vec<_> = self.files.keys().filter_map(at).collect();
        archived.sort_unstable();
        archived
    }

    /// Returns transcripts without a session, with the time of the last write.
    pub(super) fn orphans(&self) -> Vec<(Timestamp, PathBuf)> {
        let is_orphan = |file: &PathBuf| {
            let name = file.file_name().and_then(|name| name.to_str());
            let id = name.and_then(|name| name.strip_suffix(".jsonl"));
            let id = id.map(|id| id.split_once("-topic-").map_or(id, |(id, _)| id));
            id.is_some_and(|id| !self.ids.contains(id)) && !self.taken.contains(file)
        };
        let orphans = self.files.iter().filter(|(file, _)| !self.has_unreadable && is_orphan(file));
        let mut orphans: Vec<_> =
            orphans.map(|(path, file)| (file.changed, path.clone())).collect();
        orphans.sort_unstable();
        orphans
    }

    /// Records that a transcript was archived. In a dry run it has no new name.
    pub(super) fn moved(&mut self, from: &Path, to: Option<&Path>) {
        let to = to.unwrap_or(from);
        if let Some(file) = self.files.remove(from) {
            self.files.insert(to.to_owned(), file);
        }
        if let Some(beside) = self.beside.remove(from) {
            self.beside.insert(to.to_owned(), beside);
        }
        self.taken.insert(from.to_owned());
        self.fresh.insert(to.to_owned());
    }

    /// Returns the size of the transcripts that were archived in this run and still exist.
    pub(super) fn fresh_bytes(&self) -> u64 {
        self.fresh.iter().map(|file| self.bytes_of(file)).sum()
    }

    /// Records that a file was removed.
    pub(super) fn removed(&mut self, file: &Path, bytes: u64) {
        self.files.remove(file);
        self.beside.remove(file);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// Returns the transcript that a side file belongs to.
fn owner(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let of = [".archived-", ".torn-"].iter().find_map(|mark| Some(name.rsplit_once(mark)?.0));
    Some(path.with_file_name(of.or_else(|| name.strip_suffix(".lock"))?))
}
