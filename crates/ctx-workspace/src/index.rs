//! A folder's index: its files, and its state in memory.

use ctx_core::text::Slice;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use ctx_core::{Error, ErrorKind, Result};

use crate::disk::{self, FileLock};
use crate::hash::FileHash;
use crate::list::{self, ListHeader};
use crate::rows::Rows;
use crate::settings::WorkspaceSettings;
use ctx_search::index::{DiskIndex, Snapshot};
use ctx_search::near;
use ctx_search::vectors::Embedding;

/// The list of indexed files, in the folder of an index.
const LIST: &str = "files.jsonl";

/// How long to wait for another process that works on the same index.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// Returns the folder with the indexes of `folder` (a canonical path) below `workspaces`, usually
/// `agents/<agent>/workspaces`. Each counter and chunk length has its own index in it, so that
/// hosts with different settings do not undo each other's work.
#[must_use]
pub fn folder_of(workspaces: &Path, folder: &Path) -> PathBuf {
    let hash = FileHash::of(folder.as_os_str().as_encoded_bytes()).hex();
    workspaces.join(hash.slice(..16))
}

/// The searchable files of a folder.
///
/// # Notes
///
/// The index is derived: if it is missing, damaged or has other settings, the next
/// [`update`](Self::update) rebuilds it. The parts that a killed update has written stay. One
/// process updates at a time; any number search.
#[derive(Debug)]
pub struct Workspace {
    pub(super) folder: PathBuf,
    /// The folder of all indexes of this workspace.
    stores: PathBuf,
    /// The folder of this index.
    pub(super) store: PathBuf,
    pub(super) settings: WorkspaceSettings,
    /// Whether a listed file was missing from the index.
    pub(super) is_unsound: AtomicBool,
    state: Mutex<Option<SearchState>>,
}

/// The state for searches.
#[derive(Debug)]
pub(super) struct SearchState {
    pub(super) rows: Rows,
    /// `None` without a readable index.
    pub(super) snapshot: Option<Snapshot>,
    pub(super) vectors: Option<(Embedding, near::Rows)>,
    seen: Option<Seen>,
}

/// Length and modification time of the list that a state was made from.
type Seen = (u64, SystemTime);

impl SearchState {
    fn is_damaged(&self) -> bool {
        self.snapshot.as_ref().is_some_and(Snapshot::is_damaged)
    }
}

impl Workspace {
    /// Opens the workspace in `folder`, whose index is kept under `workspaces`. Nothing is read or
    /// written yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if the folder does not exist.
    pub fn open(workspaces: &Path, folder: &Path, settings: WorkspaceSettings) -> Result<Self> {
        let missing = |reason: String| {
            Error::new(ErrorKind::NotFound, format!("the workspace cannot be searched: {reason}"))
                .with("path", folder.display())
                .hint("give an existing folder that you may read")
        };
        let canonical = folder.canonicalize().map_err(|error| missing(error.to_string()))?;
        if !canonical.is_dir() {
            return Err(missing("not a folder".into()));
        }
        let stores = folder_of(workspaces, &canonical);
        Ok(Self {
            store: stores.join(settings.cut().name()),
            stores,
            folder: canonical,
            settings,
            is_unsound: AtomicBool::new(false),
            state: Mutex::default(),
        })
    }

    /// The folder, as a canonical path.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The folder of its index.
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// The folder of all indexes of this workspace.
    pub(super) fn stores(&self) -> &Path {
        &self.stores
    }

    pub(super) fn list(&self) -> PathBuf {
        self.store.join(LIST)
    }

    pub(super) fn lexical(&self) -> PathBuf {
        self.store.join("lexical")
    }

    pub(super) fn header(&self) -> ListHeader {
        ListHeader::new(&self.folder, self.settings.cut())
    }

    /// Opens the index on disk; returns `None` if it is damaged.
    pub(super) fn opened(&self, rows: &Rows) -> Result<Option<(DiskIndex, Snapshot)>> {
        let opened = DiskIndex::open(&self.lexical()).and_then(|index| {
            let snapshot = index.snapshot(|key| rows.row_of(key))?;
            Ok((index, snapshot))
        });
        match opened {
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(None),
            opened => opened.map(Some),
        }
    }

    /// Returns the state for searches, according to the current list.
    pub(super) fn state(&self) -> Result<MutexGuard<'_, Option<SearchState>>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.seen();
        if state.as_ref().is_none_or(|state| state.seen != seen || state.is_damaged()) {
            // The old state is dropped first, so that there are never two in memory.
            *state = None;
            *state = Some(self.load(seen)?);
        }
        Ok(state)
    }

    /// Nothing is written here, because only an update holds the lock.
    fn load(&self, seen: Option<Seen>) -> Result<SearchState> {
        let mut state = SearchState { rows: Rows::default(), snapshot: None, vectors: None, seen };
        let lexical = self.lexical();
        if seen.is_none() || !lexical.is_dir() {
            self.is_unsound.store(seen.is_some(), Ordering::Relaxed);
            return Ok(state);
        }
        let cut = self.settings.cut();
        let rows = Rows::new(list::read(&self.list(), &self.header())?, cut);
        let Some((index, snapshot)) = self.opened(&rows)? else {
            self.is_unsound.store(true, Ordering::Relaxed);
            return Ok(state);
        };
        let listed = rows.files().len();
        let rows = Rows::new(rows.indexed(&snapshot.keys()), cut).named();
        if rows.files().len() < listed {
            self.is_unsound.store(true, Ordering::Relaxed);
        }
        // The rows are renumbered if some were dropped.
        state.snapshot = Some(index.snapshot(|key| rows.row_of(key))?);
        state.rows = rows;
        Ok(state)
    }

    /// Whether a search found the index damaged; the next [`refresh`](Self::refresh) repairs it.
    pub(super) fn wants_check(&self) -> bool {
        self.is_unsound.load(Ordering::Relaxed)
    }

    /// Drops the vectors in memory, so that they are read again.
    pub(super) fn forget_vectors(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = state.as_mut() {
            state.vectors = None;
        }
    }

    fn seen(&self) -> Option<Seen> {
        let metadata = self.list().metadata().ok()?;
        Some((metadata.len(), metadata.modified().ok()?))
    }

    /// Deletes all indexes of the folder, with any settings, and returns whether there were any.
    /// The folder itself is not changed.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if another process updates one; [`ErrorKind::Io`] if one cannot be
    /// deleted.
    pub fn forget(&self) -> Result<bool> {
        self.forget_within(PATIENCE)
    }

    pub(super) fn forget_within(&self, patience: Duration) -> Result<bool> {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = None;
        let failed =
            |error| disk::io_error("cannot remove the index of the workspace", &self.stores, error);
        let mut was_there = false;
        for store in entries(&self.stores).map_err(failed)? {
            if !store.is_dir() {
                continue;
            }
            let list = store.join(LIST);
            let _lock = FileLock::with_timeout(&list, patience)?;
            let lock = disk::beside(&list, ".lock");
            for path in entries(&store).map_err(failed)? {
                // The lock file stays, so that all waiting processes wait for the same lock.
                if path == lock {
                    continue;
                }
                was_there = true;
                let removed = match path.is_dir() {
                    true => fs::remove_dir_all(&path),
                    false => fs::remove_file(&path),
                };
                removed.map_err(failed)?;
            }
        }
        Ok(was_there)
    }
}

/// Lists a folder; empty if it does not exist.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read?.map(|entry| Ok(entry?.path())).collect(),
    }
}
