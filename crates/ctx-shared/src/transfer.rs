//! Sessions between the files of a home and a shared store.
//!
//! Both directions can be interrupted and repeated: what is there already is not sent again.

use std::path::Path;
use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result, Timer};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{Home, SessionEntry, SessionLock, SessionStore, Transcript};
use ctx_store::{AnyStore, DirectoryEntry, EntryPages, HostOptions, SessionName};
use serde::Serialize;

use crate::leases::SharedLeases;
use crate::sync::spawn_blocking;
use crate::{cache, log_name, parsed, session_name};

/// What a transfer did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TransferReport {
    /// The number of sessions that both have now.
    pub sessions: usize,
    /// The number of lines of these sessions.
    pub lines: u64,
    /// The number of those lines that were copied.
    pub copied: u64,
    /// The sessions that were left out.
    pub skipped: Vec<SkippedSession>,
}

/// A session that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SkippedSession {
    /// Its key.
    pub key: String,
    /// The reason.
    pub reason: String,
}

impl TransferReport {
    /// Adds a session with the numbers of its lines and of those that were copied.
    fn add(&mut self, key: &impl ToString, lines: Result<(u64, u64)>) {
        match lines {
            Ok((lines, copied)) => {
                self.sessions += 1;
                self.lines += lines;
                self.copied += copied;
            }
            Err(error) => {
                let (key, reason) = (key.to_string(), error.to_string());
                self.skipped.push(SkippedSession { key, reason });
            }
        }
    }
}

/// Copies the sessions of a home to a store. Calls `progress` with the key of each session. The
/// files stay as they are.
///
/// # Errors
///
/// If the sessions of the home cannot be listed. Errors of single sessions are in the report.
pub async fn import(
    home: &Home,
    store: &AnyStore,
    options: &HostOptions,
    timer: Arc<dyn Timer>,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<TransferReport> {
    let leases = Arc::new(SharedLeases::new(store.clone(), options, timer));
    let mut report = TransferReport::default();
    for agent in home.agents()? {
        let index = SessionStore::at(home.sessions_file(&agent));
        let sessions = spawn_blocking(move || index.load()).await?;
        for (key, entry) in sessions.iter() {
            progress(&key.to_string());
            report.add(&key, import_session(home, store, &leases, &key, entry).await);
        }
    }
    Ok(report)
}

async fn import_session(
    home: &Home,
    store: &AnyStore,
    leases: &Arc<SharedLeases>,
    key: &SessionKey,
    entry: &SessionEntry,
) -> Result<(u64, u64)> {
    let agent = crate::agent(key);
    let path = home.transcript(key, entry)?;
    let log = log_name(home, &agent, &path)?;
    let (file, id) = (path.clone(), entry.session_id.clone());
    spawn_blocking(move || check_session(&file, &id)).await?;
    let held = leases.acquire(key).await?;
    let done = async {
        let name = session_name(key);
        let stored = store.get(&name).await?;
        let is_same = |stored: &DirectoryEntry| {
            parsed(key, &stored.json).is_ok_and(|stored| stored.session_id == entry.session_id)
        };
        if stored.as_ref().is_some_and(|stored| !is_same(stored)) {
            return Err(Error::new(
                ErrorKind::Conflict,
                "the store has another session of this key",
            )
            .hint("rename one of them, or import into another tenant"));
        }
        let mut cached = cache::beginning(&**store, &log, &path).await?;
        let before = cached.lines();
        cached.commit(&**store, &held.lease(), &path).await?;
        if stored.is_none() {
            let json = serde_json::to_string(entry).map_err(|error| {
                Error::new(ErrorKind::Corrupt, "the entry cannot be written").source(error)
            })?;
            store.compare_and_put(&name, None, &json).await?;
        }
        Ok((cached.lines(), cached.lines() - before))
    };
    let done = done.await;
    leases.release(held).await;
    done
}

/// Refuses a file that is not the session of ctx that its entry names.
fn check_session(path: &Path, id: &str) -> Result<()> {
    let failed = |error| ctx_disk::io_error("cannot read the session", path, error);
    let is_link = path.symlink_metadata().map_err(failed)?.is_symlink();
    let is_own = !is_link
        && SessionLock::of(path)?.is_some()
        && Transcript::open(path)?.header.id.as_deref() == Some(id);
    if is_own {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "the file is not the session that its entry names")
        .with("path", path.display())
        .hint("convert transcripts of other programs with `ctx convert --to ctx`"))
}

/// Copies the sessions of a store to a home. Calls `progress` with the key of each session. Sessions
/// that the home has, too, get the lines that they lack.
///
/// # Errors
///
/// If the sessions of the store cannot be listed. Errors of single sessions are in the report.
pub async fn export(
    store: &AnyStore,
    home: &Home,
    progress: &mut (dyn FnMut(&str) + Send),
) -> Result<TransferReport> {
    let mut report = TransferReport::default();
    let mut pages = EntryPages::of(&**store).await?;
    while let Some(page) = pages.next(&**store).await? {
        for (name, entry) in &page {
            progress(&name.key);
            report.add(&name.key, export_session(store, home, name, entry).await);
        }
    }
    Ok(report)
}

async fn export_session(
    store: &AnyStore,
    home: &Home,
    name: &SessionName,
    entry: &DirectoryEntry,
) -> Result<(u64, u64)> {
    let key: SessionKey = name.key.parse()?;
    let agent = FileId::new(&name.agent)?;
    let entry = parsed(&key, &entry.json)?;
    let path = home.transcript(&key, &entry)?;
    let log = log_name(home, &agent, &path)?;
    let cached = cache::fetch(&**store, home, &log).await?;
    let index = SessionStore::at(home.sessions_file(&agent));
    spawn_blocking(move || index.update(|all| all.insert(&key, entry).map(drop))).await?;
    Ok((cached.lines(), cached.fetched()))
}
