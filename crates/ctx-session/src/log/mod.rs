//! Appending to a session of ours.

mod entry;
mod file;
mod ids;
mod scan;
mod shared;

use std::path::Path;
use std::sync::Arc;

use ctx_core::{
    Compacted, EntryId, Error, ErrorKind, IdSource, Message, Projection, RawJson, Result, Timestamp,
};
use serde::{Deserialize, Serialize};

pub use entry::NewEntry;
pub use ids::RandomIds;

pub(crate) use entry::{Body, UNDO_TYPE, iso, one_line};
pub(crate) use file::LogFile;
pub(crate) use scan::first_line;
pub(crate) use shared::{Medium, SharedFile, System};

use crate::Transcript;
use crate::compactions::CompactionBody;
use crate::group_commit::GroupCommit;
use crate::key::FileId;
use ids::TakenIds;

/// The version of pi's session format that is written.
pub const PI_VERSION: u64 = 3;

/// The mark in a header that says ctx wrote the file and may append to it.
pub(crate) const OURS: u64 = 1;

/// The command that makes a session of ours of another file.
const CONVERT: &str = "`ctx convert FILE --to ctx --output NEW`";

/// When an appended entry is safe from a power cut.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// When [`SessionLog::commit`] returns, which the caller does once a turn.
    #[default]
    PerTurn,
    /// When [`SessionLog::append`] returns.
    PerEntry,
    /// When the operating system gets round to it; `commit` does nothing. A crash of the process
    /// alone loses nothing even so.
    None,
}

/// How a log is kept.
#[derive(Clone)]
pub struct LogOptions {
    durability: Durability,
    ids: Arc<dyn IdSource>,
    group: Option<Arc<GroupCommit>>,
}

impl Default for LogOptions {
    fn default() -> Self {
        Self { durability: Durability::default(), ids: Arc::new(RandomIds), group: None }
    }
}

impl LogOptions {
    /// When an entry is safe; once a turn by default.
    #[must_use]
    pub fn with_durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Where ids come from; random by default.
    #[must_use]
    pub fn with_ids(mut self, ids: Arc<dyn IdSource>) -> Self {
        self.ids = ids;
        self
    }

    /// Shares the cost of durability with other sessions; alone by default.
    #[must_use]
    pub fn with_group(mut self, group: Arc<GroupCommit>) -> Self {
        self.group = Some(group);
        self
    }
}

impl std::fmt::Debug for LogOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogOptions")
            .field("durability", &self.durability)
            .field("group", &self.group.is_some())
            .finish_non_exhaustive()
    }
}

/// What a new session's header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: FileId,
    /// When it begins.
    pub timestamp: Timestamp,
    /// The folder the agent works in.
    pub cwd: String,
    /// The transcript it was forked from.
    pub parent_session: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    version: u64,
    #[serde(default)]
    id: String,
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_session: Option<String>,
    #[serde(default)]
    ctx: u64,
}

/// A session file of ours, open for appending. There is one writer at a time: a second one, in
/// this process or another, gets [`ErrorKind::Locked`].
///
/// # What
///
/// The file is pi's session format, version 3, with a field `ctx` in its header. Only files with
/// that mark are opened: a file that another program wrote is never written to; what ctx adds to
/// it goes to an [`Overlay`](crate::overlay::Overlay).
///
/// Every entry becomes a child of the leaf and then is the leaf itself, as in pi. A write that
/// fails is taken back, so the file is whole whatever happened, and the entries before it are
/// there. If the file ends in a torn line (the machine lost power in the middle of a write), that
/// line is moved to `<file>.torn-<n>` before the first append.
///
/// # Example
///
/// ```
/// use ctx_core::{RawJson, Timestamp};
/// use ctx_session::key::FileId;
/// use ctx_session::log::{LogOptions, NewEntry, NewSession, SessionLog};
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
    session_id: String,
    leaf: Option<EntryId>,
    taken: TakenIds,
    options: LogOptions,
    line: Vec<u8>,
}

impl SessionLog {
    /// Creates the file. It is on disk with its header when this returns.
    pub fn create(path: &Path, session: &NewSession, options: LogOptions) -> Result<Self> {
        let line = header_line(session)?;
        let mut file = LogFile::create(path, &line)?;
        if let Some(group) = &options.group {
            file.join(group)?;
        }
        let taken = TakenIds::default();
        let session_id = session.id.to_string();
        Ok(Self { file, session_id, leaf: None, taken, options, line })
    }

    /// Opens a file of ours to append to it. Leaf and ids are those a [`Transcript`] finds in it,
    /// so what was damaged is bridged here as it is for readers.
    pub fn open(path: &Path, options: LogOptions) -> Result<Self> {
        Self::open_on(path, options, Box::new(System))
    }

    pub(crate) fn open_on(
        path: &Path,
        options: LogOptions,
        medium: Box<dyn Medium>,
    ) -> Result<Self> {
        let mut session_id = String::new();
        let accept = |first: &[u8]| {
            session_id = check_header(first).map_err(|e| e.with("path", path.display()))?.id;
            Ok(())
        };
        let mut file = LogFile::open_on(path, accept, medium)?;
        let transcript = Transcript::open(path)?;
        let leaf = transcript.leaf().cloned();
        let mut taken = TakenIds::default();
        for entry in transcript.entries() {
            taken.insert(entry.id());
        }
        if let Some(group) = &options.group {
            file.join(group)?;
        }
        Ok(Self { file, session_id, leaf, taken, options, line: Vec::new() })
    }

    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The session's id, from the header.
    #[must_use]
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// The entry the next one becomes a child of; `None` at the beginning.
    #[must_use]
    pub fn leaf(&self) -> Option<&EntryId> {
        self.leaf.as_ref()
    }

    /// Bytes in the file.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.file.len()
    }

    /// Goes on from another entry: the next append begins a branch there. Nothing is written; to
    /// have the next reader begin there too, append a [`NewEntry::Leaf`].
    pub fn branch(&mut self, from: Option<EntryId>) -> Result<()> {
        if let Some(id) = &from {
            self.require(id)?;
        }
        self.leaf = from;
        Ok(())
    }

    /// Appends an entry and returns its id. On an error the file and the leaf are as before.
    pub fn append(&mut self, entry: &NewEntry, now: Timestamp) -> Result<EntryId> {
        self.append_body(entry, now)
    }

    pub(crate) fn append_body(&mut self, entry: &impl Body, now: Timestamp) -> Result<EntryId> {
        if let Some(Some(target)) = entry.moves_leaf() {
            self.require(target)?;
        }
        let id = self.taken.fresh(&*self.options.ids);
        entry.write_line(&id, self.leaf.as_deref(), now, &mut self.line)?;
        let before = self.file.len();
        self.file.append(&self.line)?;
        if self.options.durability == Durability::PerEntry
            && let Err(e) = self.file.commit()
        {
            // The caller is told that the entry is not there, so it must not be.
            self.file.take_back_to(before)?;
            return Err(e);
        }
        self.taken.insert(&id);
        self.leaf = match entry.moves_leaf() {
            Some(target) => target.cloned(),
            None => Some(id.clone()),
        };
        Ok(id)
    }

    /// Appends a compaction, together with the forms of kept messages that came with it. For who
    /// has the log open; [`store_compaction`](crate::compactions::store_compaction) does the same
    /// for who has not, and checks the plan.
    pub fn append_compaction(&mut self, compacted: &Compacted, now: Timestamp) -> Result<EntryId> {
        self.append_body(&CompactionBody::new(compacted, None), now)
    }

    /// Appends the forms that messages are sent in, in one entry; nothing where there are none.
    /// [`Transcript::sent_forms`] finds them.
    pub fn append_projections(
        &mut self,
        projections: &[Projection],
        now: Timestamp,
    ) -> Result<Option<EntryId>> {
        let entry = crate::projections::projections_entry(projections)?;
        entry.map(|entry| self.append(&entry, now)).transpose()
    }

    /// Appends a message, and returns the ids of its entries: a message with several tool results
    /// becomes as many messages in pi's format. On an error those appended before it stay.
    pub fn append_message(&mut self, message: &Message, now: Timestamp) -> Result<Vec<EntryId>> {
        let messages = ctx_dialect::pi::write(message).into_iter();
        let entries = messages.map(|json| NewEntry::message(RawJson::from_text(json)));
        entries.map(|entry| self.append(&entry, now)).collect()
    }

    /// Makes all entries appended so far durable, unless durability is [`Durability::None`]. After
    /// an error it can be tried again.
    pub fn commit(&mut self) -> Result<()> {
        if self.options.durability == Durability::None { Ok(()) } else { self.file.commit() }
    }

    /// Commits and closes. Dropping a log does the same, but nobody hears of an error then.
    pub fn close(mut self) -> Result<()> {
        self.file.close()
    }

    fn require(&self, id: &EntryId) -> Result<()> {
        if self.taken.contains(id) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::NotFound, "the session has no such entry")
            .with("entry", id)
            .with("path", self.path().display()))
    }
}

/// The header of a session of ours, as a line.
pub(crate) fn header_line(session: &NewSession) -> Result<Vec<u8>> {
    let header = Header {
        kind: "session".into(),
        version: PI_VERSION,
        id: session.id.to_string(),
        timestamp: iso(session.timestamp)?,
        cwd: session.cwd.clone(),
        parent_session: session.parent_session.clone(),
        ctx: OURS,
    };
    let mut line = Vec::new();
    one_line(&header, &mut line)?;
    Ok(line)
}

/// Whether a header is that of a session that ctx may append to.
pub(crate) fn is_header_of_ours(line: &str) -> bool {
    check_header(line.as_bytes()).is_ok()
}

fn check_header(line: &[u8]) -> Result<Header> {
    let foreign = "what ctx adds to a file of another program goes to an overlay";
    let header = match serde_json::from_slice::<Header>(line) {
        Ok(header) if header.kind == "session" => header,
        _ => {
            return Err(Error::new(ErrorKind::UnknownFormat, "the file is no session of ours")
                .hint(format!("its first line is no session header; {foreign}")));
        }
    };
    if header.ctx != OURS {
        return Err(Error::new(ErrorKind::InvalidInput, "the session was not written by ctx")
            .hint(format!("{foreign}; to go on in a session of ctx, convert it: {CONVERT}")));
    }
    if header.version != PI_VERSION {
        return Err(Error::new(ErrorKind::UnknownFormat, "the session has another version")
            .with("version", header.version)
            .with("supported", PI_VERSION)
            .hint(format!("it is not rewritten in place; convert it to this version: {CONVERT}")));
    }
    Ok(header)
}

#[cfg(test)]
pub(crate) mod failing_disk;
#[cfg(test)]
pub(crate) mod tests;
