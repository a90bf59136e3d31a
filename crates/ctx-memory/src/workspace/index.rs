//! A folder's index: where it is, and what is at hand of it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use ctx_core::{Error, ErrorKind, Result};

use super::hash::FileHash;
use super::list::{self, Header};
use super::rows::Rows;
use super::settings::Settings;
use crate::disk::{self, FileLock};
use crate::index::{DiskIndex, Snapshot};
use crate::near;
use crate::vectors::Embedding;

/// The file with what is indexed, in the folder of an index.
const LIST: &str = "files.jsonl";

/// How long one waits for another process that works on the same index.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// The folder with the indexes of `folder`, which is a canonical path, in the folder of all of an
/// agent's: usually `agents/<agent>/workspaces`. Each counter and length of chunks has an index of its
/// own in it, so that hosts that cut otherwise do not undo each other's work.
#[must_use]
pub fn folder_of(workspaces: &Path, folder: &Path) -> PathBuf {
    let hash = FileHash::of(folder.as_os_str().as_encoded_bytes()).hex();
    workspaces.join(hash.get(..16).unwrap_or_default())
}

/// The files of a folder, to be searched.
///
/// # Notes
///
/// The index is derived: missing, damaged or of other settings, it is made anew by the next
/// [`update`](Self::update). An update that is killed leaves what it wrote by then; one process updates
/// at a time, any number search.
#[derive(Debug)]
pub struct Workspace {
    pub(super) folder: PathBuf,
    /// The folder of all of its indexes.
    stores: PathBuf,
    /// That of this one.
    pub(super) store: PathBuf,
    pub(super) settings: Settings,
    /// Whether a file that is listed was not in the index.
    pub(super) is_unsound: AtomicBool,
    state: Mutex<Option<State>>,
}

/// What a search needs.
#[derive(Debug)]
pub(super) struct State {
    pub(super) rows: Rows,
    /// None where there is no index yet, or none that can be read.
    pub(super) snapshot: Option<Snapshot>,
    pub(super) vectors: Option<(Embedding, near::Rows)>,
    seen: Option<Seen>,
}

/// The list that a state was made from.
type Seen = (u64, SystemTime);

impl State {
    fn is_damaged(&self) -> bool {
        self.snapshot.as_ref().is_some_and(Snapshot::is_damaged)
    }
}

impl Workspace {
    /// The workspace in `folder`, whose index is kept under `workspaces`. Nothing is read or written
    /// yet.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] where there is no such folder.
    pub fn open(workspaces: &Path, folder: &Path, settings: Settings) -> Result<Self> {
        let missing = |reason: String| {
            Error::new(ErrorKind::NotFound, format!("the workspace cannot be searched: {reason}"))
                .with("path", folder.display())
                .hint("name a folder that is there and that you may read")
        };
        let canonical = folder.canonicalize().map_err(|error| missing(error.to_string()))?;
        if !canonical.is_dir() {
            return Err(missing("it is no folder".into()));
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
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where its index is.
    #[must_use]
    pub fn store(&self) -> &Path {
        &self.store
    }

    /// Where all indexes of the folder are.
    pub(super) fn stores(&self) -> &Path {
        &self.stores
    }

    pub(super) fn list(&self) -> PathBuf {
        self.store.join(LIST)
    }

    pub(super) fn lexical(&self) -> PathBuf {
        self.store.join("lexical")
    }

    pub(super) fn header(&self) -> Header {
        Header::new(&self.folder, self.settings.cut())
    }

    /// The index on disk and what it holds; `None` where it is damaged.
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

    /// What a search needs, of the list as it is now.
    pub(super) fn state(&self) -> Result<MutexGuard<'_, Option<State>>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let seen = self.seen();
        if state.as_ref().is_none_or(|state| state.seen != seen || state.is_damaged()) {
            // What is held is let go of first, so that there are never two.
            *state = None;
            *state = Some(self.load(seen)?);
        }
        Ok(state)
    }

    /// Nothing is written here: whoever updates holds the lock for that.
    fn load(&self, seen: Option<Seen>) -> Result<State> {
        let mut state = State { rows: Rows::default(), snapshot: None, vectors: None, seen };
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
        // Rows have other numbers where some are left out.
        state.snapshot = Some(index.snapshot(|key| rows.row_of(key))?);
        state.rows = rows;
        Ok(state)
    }

    /// Whether a search found the index damaged; the next [`refresh`](Self::refresh) sees to it.
    pub(super) fn wants_check(&self) -> bool {
        self.is_unsound.load(Ordering::Relaxed)
    }

    /// Has the vectors read again.
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

    /// Removes all indexes of the folder from the disk, whatever the settings, and says whether there
    /// were any. The folder itself stays as it is.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] where another process updates one; [`ErrorKind::Io`] where one cannot be
    /// removed.
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
            let _lock = FileLock::within(&list, patience)?;
            let lock = disk::beside(&list, ".lock");
            for path in entries(&store).map_err(failed)? {
                // The lock stays: whoever waits for it must not get another than who comes next.
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

/// What a folder holds; nothing where there is none.
fn entries(folder: &Path) -> io::Result<Vec<PathBuf>> {
    match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read?.map(|entry| Ok(entry?.path())).collect(),
    }
}
