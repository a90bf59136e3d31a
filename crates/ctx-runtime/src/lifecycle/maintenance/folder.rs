//! What is in the folder of sessions.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use ctx_core::{Result, Timestamp};
use ctx_session::retire::retired_at;
use ctx_session::store::Sessions;

use crate::forget::listed;

/// The files of a folder of sessions.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// What all of them take.
    pub(super) bytes: u64,
    files: HashMap<PathBuf, File>,
    /// What stands beside each transcript under its name takes so much.
    beside: HashMap<PathBuf, u64>,
    /// Transcripts that some session has.
    taken: HashSet<PathBuf>,
    /// The ids of all sessions.
    ids: HashSet<String>,
    /// Whether some session may have a transcript without anybody knowing which.
    in_doubt: bool,
    /// Transcripts that were put aside in this run.
    pub(super) fresh: HashSet<PathBuf>,
}

#[derive(Clone, Copy)]
struct File {
    bytes: u64,
    changed: Timestamp,
}

impl Folder {
    pub(super) fn of(path: &Path) -> Result<Self> {
        let mut files = HashMap::new();
        for file in listed(path)? {
            // A link takes no room to speak of, and where it leads to is not ours to look after.
            let Ok(found) = file.symlink_metadata() else { continue };
            if found.is_file() {
                let changed =
                    found.modified().ok().and_then(|at| at.duration_since(UNIX_EPOCH).ok());
                let changed =
                    changed.map_or(0, |at| i64::try_from(at.as_millis()).unwrap_or(i64::MAX));
                files.insert(file, File { bytes: found.len(), changed: Timestamp(changed) });
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
            in_doubt: false,
            fresh: HashSet::new(),
        })
    }

    /// Takes note of what the sessions of the store have here.
    pub(super) fn note(&mut self, sessions: &Sessions) {
        self.ids = sessions.all().map(|(_, entry)| entry.session_id.clone()).collect();
        self.in_doubt = sessions.unreadable().next().is_some();
    }

    /// A session has this transcript.
    pub(super) fn take(&mut self, file: &Path) {
        self.taken.insert(file.to_owned());
        // The same file may be called by another name.
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

    /// When a file was last written.
    pub(super) fn changed(&self, file: &Path) -> Option<Timestamp> {
        self.files.get(file).map(|file| file.changed)
    }

    /// What a transcript takes, with what is beside it.
    pub(super) fn bytes_of(&self, file: &Path) -> u64 {
        let own = self.files.get(file).map_or(0, |file| file.bytes);
        own + self.beside.get(file).copied().unwrap_or_default()
    }

    /// Archived transcripts, oldest first, with the time of that.
    pub(super) fn archived(&self) -> Vec<(Timestamp, PathBuf)> {
        // In a dry run those that would be archived just now have their names still.
        let now = |file: &PathBuf| self.fresh.contains(file).then_some(Timestamp(i64::MAX));
        let at = |file: &PathBuf| Some((retired_at(file).or_else(|| now(file))?, file.clone()));
        let mut archived: Vec<_> = self.files.keys().filter_map(at).collect();
        archived.sort_unstable();
        archived
    }

    /// Transcripts that no session has any more, with the time when they were last written.
    pub(super) fn orphans(&self) -> Vec<(Timestamp, PathBuf)> {
        let is_orphan = |file: &PathBuf| {
            let name = file.file_name().and_then(|name| name.to_str());
            let id = name.and_then(|name| name.strip_suffix(".jsonl"));
            let id = id.map(|id| id.split_once("-topic-").map_or(id, |(id, _)| id));
            id.is_some_and(|id| !self.ids.contains(id)) && !self.taken.contains(file)
        };
        let orphans = self.files.iter().filter(|(file, _)| !self.in_doubt && is_orphan(file));
        let mut orphans: Vec<_> =
            orphans.map(|(path, file)| (file.changed, path.clone())).collect();
        orphans.sort_unstable();
        orphans
    }

    /// A transcript was put aside, or would be: then it has no new name.
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

    /// What transcripts take that were put aside in this run and are still there.
    pub(super) fn fresh_bytes(&self) -> u64 {
        self.fresh.iter().map(|file| self.bytes_of(file)).sum()
    }

    /// So much is gone.
    pub(super) fn removed(&mut self, file: &Path, bytes: u64) {
        self.files.remove(file);
        self.beside.remove(file);
        self.bytes = self.bytes.saturating_sub(bytes);
    }
}

/// The transcript that a file stands beside.
fn owner(path: &Path) -> Option<PathBuf> {
    let name = path.file_name()?.to_str()?;
    let of = [".archived-", ".torn-"].iter().find_map(|mark| Some(name.rsplit_once(mark)?.0));
    Some(path.with_file_name(of.or_else(|| name.strip_suffix(".lock"))?))
}
