//! Appending to ctx sessions.

mod ids;

use std::path::Path;
use std::sync::Arc;

use ctx_core::{
    Compacted, EntryId, Error, ErrorKind, IdSource, Message, Projection, RawJson, Result, Timestamp,
};

pub use crate::schema::{NewEntry, NewSession};
pub use ids::RandomIds;

use crate::disk::{self, FileLock, GroupCommit, LogFile, Medium, OsMedium, first_line, is_newer};
use crate::formats::in_database;
use crate::schema::{
    check_session_header, compaction_entry, header_line, is_ctx_header, projections_entry,
};
use crate::transcript::Transcript;
use ids::UsedIds;

/// When an appended entry survives a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// After [`SessionLog::commit`], which the caller calls once per turn.
    #[default]
    PerTurn,
    /// After [`SessionLog::append`].
    PerEntry,
    /// When the operating system writes it; `commit` does nothing. A crash of the process alone
    /// loses nothing.
    None,
}

/// The options of a log.
#[derive(Clone)]
pub struct LogOptions {
    /// The durability; default: once per turn.
    pub durability: Durability,
    /// The source of ids; default: random.
    pub ids: Arc<dyn IdSource>,
    /// Shares syncs with other sessions; default: none.
    pub group: Option<Arc<GroupCommit>>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { durability: Durability::default(), ids: Arc::new(RandomIds), group: None }
    }
}

ctx_core::partial_debug!(LogOptions, it, durability = it.durability, group = it.group.is_some());

/// A ctx session file, open for appending. There is one writer at a time: a second one, in this
/// process or another, gets [`ErrorKind::Locked`].
///
/// # What
///
/// The file is pi's session format, version 3, with a field `ctx` in its header. Only files with
/// that mark are opened: a file of another program is never written to; ctx's additions to it go to
/// an [`Overlay`](crate::Overlay).
///
/// Every entry becomes a child of the leaf and then the new leaf, as in pi. A write that fails is
/// rolled back, so the file is always complete and keeps its earlier entries. If the file ends in a
/// torn line (from a power cut in the middle of a write), that line is moved to `<file>.torn-<n>`
/// before the first append.
///
/// # Example
///
/// ```
/// use ctx_core::{RawJson, Timestamp};
/// use ctx_session::key::FileId;
/// use ctx_session::{LogOptions, NewEntry, NewSession, SessionLog};
///
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("s1.jsonl");
/// let session = NewSession {
///     id: FileId::new("s1")?,
///     timestamp: Timestamp(1_765_233_665_306),
///     cwd: "/src".into(),
///     parent_session: None,
/// };
/// let mut log = SessionLog::create(&path, &session, LogOptions::default())?;
/// let hello = RawJson::from_text(r#"{"role":"user","content":"hello"}"#);
/// let id = log.append(&NewEntry::message(hello), Timestamp(1_765_233_665_307))?;
/// log.commit()?;
/// assert_eq!(log.leaf(), Some(&id));
/// # Ok::<(), ctx_core::Error>(())
/// ```
#[derive(Debug)]
pub struct SessionLog {
    file: LogFile,
    /// The session's id from the header.
    pub session_id: String,
    leaf: Option<EntryId>,
    taken: UsedIds,
    options: LogOptions,
}

impl SessionLog {
    /// Creates the file. It is on disk with its header when this returns.
    pub fn create(path: &Path, session: &NewSession, options: LogOptions) -> Result<Self> {
        let mut file = LogFile::create(path, &header_line(session)?)?;
        if let Some(group) = &options.group {
            file.join(group)?;
        }
        let taken = UsedIds::default();
        let session_id = session.id.to_string();
        Ok(Self { file, session_id, leaf: None, taken, options })
    }

    /// Opens a ctx session for appending. Leaf and ids are read by a [`Transcript`], so damage is
    /// bridged in the same way as for readers.
    pub fn open(path: &Path, options: LogOptions) -> Result<Self> {
        Self::open_on(path, options, Box::new(OsMedium))
    }

    pub(crate) fn open_on(
        path: &Path,
        options: LogOptions,
        medium: Box<dyn Medium>,
    ) -> Result<Self> {
        if in_database(path).is_some() {
            return Err(Error::new(ErrorKind::UnknownFormat, "cannot append to a database")
                .with("path", path.display())
                .hint("convert it to a ctx session with `ctx convert --to ctx`"));
        }
        let mut session_id = String::new();
        let accept = |first: &[u8]| {
            session_id =
                check_session_header(first).map_err(|e| e.with("path", path.display()))?.id;
            Ok(())
        };
        let mut file = LogFile::open_on(path, accept, medium)?;
        let transcript = Transcript::open(path)?;
        let leaf = transcript.leaf().cloned();
        let mut taken = UsedIds::default();
        for entry in &transcript.entries {
            taken.insert(&entry.id);
        }
        if let Some(group) = &options.group {
            file.join(group)?;
        }
        Ok(Self { file, session_id, leaf, taken, options })
    }

    /// Returns the parent of the next entry; `None` at the beginning.
    pub fn leaf(&self) -> Option<&EntryId> {
        self.leaf.as_ref()
    }

    /// Refuses to replace the file if another program changed it.
    pub(crate) fn check_unchanged(&self) -> Result<()> {
        let path = self.file.path();
        let metadata = std::fs::metadata(path)
            .map_err(|e| disk::io_error("cannot inspect the file", path, e))?;
        if metadata.len() == self.file.bytes() {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Conflict, "another program changed the file")
            .with("path", path.display())
            .hint("try again, with no other program writing to it"))
    }

    /// Moves the leaf to another entry: the next append begins a branch there. Nothing is written;
    /// to move the leaf for the next reader too, append a [`NewEntry::Leaf`].
    pub fn branch(&mut self, from: Option<EntryId>) -> Result<()> {
        if let Some(id) = &from {
            self.require(id)?;
        }
        self.leaf = from;
        Ok(())
    }

    /// Appends an entry and returns its id. On an error the file and the leaf are unchanged.
    pub fn append(&mut self, entry: &NewEntry, now: Timestamp) -> Result<EntryId> {
        if let NewEntry::Leaf { target_id: Some(target) } = entry {
            self.require(target)?;
        }
        let id = self.taken.fresh(&*self.options.ids);
        let line = entry.line(&id, self.leaf.as_ref(), now)?;
        match self.options.durability {
            Durability::PerEntry => self.file.append_durably(&line)?,
            Durability::PerTurn | Durability::None => self.file.append(&line)?,
        }
        self.taken.insert(&id);
        self.leaf = match entry {
            NewEntry::Leaf { target_id } => target_id.clone(),
            _ => Some(id.clone()),
        };
        Ok(id)
    }

    /// Appends a compaction, together with the projections of kept messages. For a caller that has
    /// the log open; [`store_compaction`](crate::store_compaction) opens it, and also
    /// checks the plan.
    pub fn append_compaction(&mut self, compacted: &Compacted, now: Timestamp) -> Result<EntryId> {
        self.append(&compaction_entry(compacted, None)?, now)
    }

    /// Appends projections in one entry. Writes nothing if there are none. Use
    /// [`Transcript::projections`] to read them.
    pub fn append_projections(
        &mut self,
        projections: &[Projection],
        now: Timestamp,
    ) -> Result<Option<EntryId>> {
        let entry = projections_entry(projections)?;
        entry.map(|entry| self.append(&entry, now)).transpose()
    }

    /// Appends a message, and returns the ids of its entries: a message with several tool results
    /// becomes several messages in pi's format. On an error earlier entries stay.
    pub fn append_message(&mut self, message: &Message, now: Timestamp) -> Result<Vec<EntryId>> {
        let messages = ctx_dialect::pi::write(message).into_iter();
        let entries = messages.map(|json| NewEntry::message(RawJson::from_text(json)));
        entries.map(|entry| self.append(&entry, now)).collect()
    }

    /// Makes all entries appended so far durable, unless durability is [`Durability::None`]. It can
    /// be retried after an error.
    pub fn commit(&mut self) -> Result<()> {
        if self.options.durability == Durability::None { Ok(()) } else { self.file.commit() }
    }

    /// Commits and closes. Dropping a log does the same, but ignores errors.
    pub fn close(mut self) -> Result<()> {
        self.file.close()
    }

    fn require(&self, id: &EntryId) -> Result<()> {
        if self.taken.contains(id) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::NotFound, "unknown entry id in the session")
            .with("entry", id)
            .with("path", self.file.path().display()))
    }
}

/// Whether opening for writing failed because the file is not a ctx session, or is too old.
pub fn is_foreign(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::UnknownFormat | ErrorKind::InvalidInput) && !is_newer(error)
}

/// A session that no other process can open while this value exists.
#[derive(Debug)]
pub struct SessionLock {
    _lock: FileLock,
}

impl SessionLock {
    /// Takes the lock of the session at `path`. Returns `None` if the file is missing or belongs to
    /// another program: ctx does not append to such a file, and creates no lock file beside it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`](ctx_core::ErrorKind::Locked) if it is open,
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if it cannot be read.
    pub fn of(path: &Path) -> Result<Option<Self>> {
        let failed = |error| disk::io_error("cannot inspect the session", path, error);
        let line = match disk::open(path) {
            Ok(file) => first_line(&file).map_err(failed)?,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        if !std::str::from_utf8(&line).is_ok_and(is_ctx_header) {
            return Ok(None);
        }
        Ok(Some(Self { _lock: FileLock::with_default_timeout(path)? }))
    }
}

#[cfg(test)]
pub(crate) mod tests;
