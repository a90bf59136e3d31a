//! A session's file as a cache of its log.
//!
//! The file has the lines of the log, byte for byte, each with a newline. Beside it, in
//! `<file>.generation`, is the number of the generation that it caches. It stays when the file of a
//! removed log is deleted.
//!
//! A file of another generation may have text that was erased elsewhere, and so may the files beside
//! it (copies of unstored lines, archives, retired files) and those that were derived from it. All of
//! them are deleted then.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_disk as disk;
use ctx_session::{Home, SessionLock};
use ctx_store::{Lease, Line, LogHead, LogName, SharedStore};
use serde::Deserialize;

use crate::derived::delete_derived;
use crate::journal;
use crate::log_path;
use crate::sync::{read_number, spawn_blocking, write_number};

/// The size of one answer of the store, in bytes.
const PAGE: usize = 8 << 20;

/// The part of a log that the store and the file have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CachedLog {
    pub(crate) name: LogName,
    head: LogHead,
    /// The bytes of the file up to the end of the log.
    bytes: u64,
    /// The number of lines that were read from the store.
    fetched: u64,
    /// Whether the file has lines that were acknowledged while the store was away.
    is_journaled: bool,
}

impl CachedLog {
    /// A log that does not exist yet.
    pub(crate) fn new(name: LogName) -> Self {
        Self { name, head: LogHead::NEW, bytes: 0, fetched: 0, is_journaled: false }
    }

    /// Whether the file has lines that were acknowledged while the store was away.
    pub(crate) fn is_journaled(&self) -> bool {
        self.is_journaled
    }

    /// Acknowledges the complete lines of the file, which the store lacks.
    pub(crate) async fn journal(&mut self, path: &Path) -> Result<()> {
        let (from, file) = (self.bytes, path.to_owned());
        spawn_blocking(move || {
            let end = from + tail(&file, from)?.len() as u64;
            let failed = |error| disk::io_error("cannot sync the session", &file, error);
            disk::open(&file).and_then(|file| file.sync_all()).map_err(failed)?;
            journal::begin(&file, end)
        })
        .await?;
        self.is_journaled = true;
        Ok(())
    }

    /// Finds the end of the log again, after appends whose outcome is not known.
    pub(crate) async fn find_end(&mut self, store: &dyn SharedStore, path: &Path) -> Result<()> {
        let is_journaled = self.is_journaled;
        *self = Self { is_journaled, ..beginning(store, &self.name, path).await? };
        Ok(())
    }

    /// Returns the number of lines in the store.
    pub(crate) fn lines(&self) -> u64 {
        self.head.lines
    }

    /// Returns the number of lines that were read from the store.
    pub(crate) fn fetched(&self) -> u64 {
        self.fetched
    }

    /// Whether its lines were removed.
    pub(crate) fn is_removed(&self) -> bool {
        is_removed(self.head)
    }

    /// Replaces all lines of the log by those of the file, if it has any.
    pub(crate) async fn replace(
        &mut self,
        store: &dyn SharedStore,
        lease: &Lease,
        path: &Path,
    ) -> Result<()> {
        if self.head.lines == 0 {
            return Ok(());
        }
        let file = path.to_owned();
        let (lines, bytes) = spawn_blocking(move || {
            let text = tail(&file, 0)?;
            Ok((numbered(&text, 0), text.len() as u64))
        })
        .await?;
        self.head = store.replace(lease, &self.name, self.head, &lines).await?;
        self.bytes = bytes;
        let (file, generation) = (path.to_owned(), self.head.generation);
        spawn_blocking(move || write_generation(&file, generation)).await
    }

    /// Appends the lines to the log that the file has and the log lacks.
    pub(crate) async fn commit(
        &mut self,
        store: &dyn SharedStore,
        lease: &Lease,
        path: &Path,
    ) -> Result<()> {
        let (from, first, file) = (self.bytes, self.head.lines, path.to_owned());
        let (lines, bytes) = spawn_blocking(move || {
            let text = tail(&file, from)?;
            let lines = numbered(&text, first);
            Ok((lines, from + text.len() as u64))
        })
        .await?;
        if !lines.is_empty() {
            self.head = store.append(lease, &self.name, self.head, &lines).await?;
            self.bytes = bytes;
        }
        if self.is_journaled {
            let file = path.to_owned();
            spawn_blocking(move || journal::end(&file)).await?;
            self.is_journaled = false;
        }
        Ok(())
    }
}

/// Whether the lines of a log were removed.
fn is_removed(head: LogHead) -> bool {
    head.lines == 0 && head.generation != LogHead::NEW.generation
}

/// What happens to the lines of a file that its log lacks.
enum Surplus {
    /// There are none.
    None,
    /// Those from this byte on are kept beside the file.
    Keep(u64),
    /// They are deleted with all that is beside the file.
    Erase,
}

/// A file, as it was read.
struct CachedFile {
    generation: u64,
    text: Vec<u8>,
    /// The end of each complete line.
    ends: Vec<usize>,
    /// The number of bytes that were acknowledged while the store was away.
    acknowledged: usize,
}

/// Makes the file equal to its log, and returns the log. Lines that the log lacks are moved to
/// `<file>.unstored-<n>`, unless the log has another generation, or they were acknowledged while the
/// store was away and no other host has written since. The file of a removed log is
/// deleted. A file without a log is new to the store, and stays as it is.
pub(crate) async fn fetch(
    store: &dyn SharedStore,
    home: &Home,
    name: &LogName,
) -> Result<CachedLog> {
    let mut head = store.head(name).await?;
    loop {
        let Some(known) = head else { return Ok(CachedLog::new(name.clone())) };
        let (log, is_written) = fetch_to(store, home, name, known).await?;
        if !is_written {
            return Ok(log);
        }
        // If this host slept meanwhile, it may have written what was erased from the store, and may
        // have applied that erasure before.
        head = store.head(name).await?;
        if head.is_none_or(|head| head.generation == known.generation) {
            return Ok(log);
        }
    }
}

/// Makes the file equal to its log up to `head`, and returns whether it was not before.
async fn fetch_to(
    store: &dyn SharedStore,
    home: &Home,
    name: &LogName,
    head: LogHead,
) -> Result<(CachedLog, bool)> {
    let path = &*log_path(home, name)?;
    let (cached, common) = common(store, name, path, head).await?;
    let stored = cached.end_of(common);
    let (length, is_other) = (cached.text.len(), cached.generation != head.generation);
    let is_journaled = !is_other && common == head.lines && cached.has_acknowledged(stored);
    let kept = if is_journaled { cached.acknowledged } else { stored };
    let before = if is_other { cached.text.clone() } else { Vec::new() };
    let mut text = cached.text;
    text.truncate(kept);
    let mut lines = common;
    while lines < head.lines {
        let page = store.read(name, lines, PAGE).await?;
        if page.is_empty() {
            return Err(Error::new(ErrorKind::Corrupt, "lines are missing in the shared store")
                .with("log", format_args!("{}/{}", name.agent, name.file))
                .with("line", lines)
                .hint("`ctx store check` examines the store"));
        }
        lines += page.len() as u64;
        for line in page {
            text.extend(line.bytes);
            text.push(b'\n');
        }
    }
    let bytes = if is_journaled { stored } else { text.len() } as u64;
    let is_written = kept != length || text.len() != kept || is_other;
    if is_written {
        let file = path.to_owned();
        let surplus = match kept < length {
            _ if is_other => Surplus::Erase,
            true => Surplus::Keep(kept as u64),
            false => Surplus::None,
        };
        let (home, log) = (home.clone(), name.clone());
        spawn_blocking(move || {
            if is_other {
                delete_derived(&home, &log, &file, &before, &text)?;
            }
            write(&file, &text, &surplus, head.generation)
        })
        .await?;
    }
    let (name, fetched) = (name.clone(), lines - common);
    Ok((CachedLog { name, head, bytes, fetched, is_journaled }, is_written))
}

/// Makes the files of this host equal to a log that has this generation since it was replaced or
/// removed. Does nothing if they are, or if there are none. Returns whether the log was removed.
pub(crate) async fn apply_erasure(
    store: &dyn SharedStore,
    home: &Home,
    name: &LogName,
    generation: u64,
) -> Result<bool> {
    let path = log_path(home, name)?;
    let file = path.clone();
    let (is_due, has_file) = spawn_blocking(move || {
        let has_file = file.is_file();
        let has_any = has_file || !erasable(&file).is_empty();
        Ok((has_any && read_generation(&file)? != generation, has_file))
    })
    .await?;
    if !is_due {
        return Ok(false);
    }
    if has_file {
        return Ok(fetch(store, home, name).await?.is_removed());
    }
    let Some(head) = store.head(name).await? else { return Ok(false) };
    let (home, log) = (home.clone(), name.clone());
    spawn_blocking(move || {
        delete_derived(&home, &log, &path, b"", b"")?;
        write(&path, b"", &Surplus::Erase, head.generation)
    })
    .await?;
    Ok(is_removed(head))
}

/// Deletes a file that caches a log, and its number.
pub(crate) fn delete(path: &Path) -> Result<()> {
    disk::remove(path, "cannot delete a cached session")?;
    write_generation(path, LogHead::NEW.generation)
}

/// Returns a number that changes with the content of a file; `None` if it is missing.
pub(crate) fn fingerprint(path: &Path) -> Result<Option<u64>> {
    match disk::read(path) {
        Ok(text) => {
            let mut hasher = DefaultHasher::new();
            text.hash(&mut hasher);
            Ok(Some(hasher.finish()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(disk::io_error("cannot read the session", path, error)),
    }
}

/// Makes the next [`fetch`] read the whole log.
pub(crate) fn distrust(path: &Path) -> Result<()> {
    if path.is_file() { write_number(&generation_file(path), 0) } else { Ok(()) }
}

/// Returns the log of a file, if one of them is the beginning of the other. The file stays as it is.
///
/// # Errors
///
/// [`ErrorKind::Conflict`] if both have lines that the other lacks, or text was erased from the log.
pub(crate) async fn beginning(
    store: &dyn SharedStore,
    name: &LogName,
    path: &Path,
) -> Result<CachedLog> {
    let Some(head) = store.head(name).await? else {
        return Ok(CachedLog::new(name.clone()));
    };
    let (cached, common) = common(store, name, path, head).await?;
    if cached.generation != head.generation {
        return Err(Error::new(
            ErrorKind::Conflict,
            "text of this session was erased in the store",
        )
        .with("path", path.display())
        .hint("delete the file, or bring it up to date with `ctx store export`"));
    }
    if common < head.lines && common < cached.ends.len() as u64 {
        return Err(Error::new(ErrorKind::Conflict, "the store has other lines of this session")
            .with("path", path.display())
            .hint("it went on elsewhere; `ctx store export` writes the store's sessions"));
    }
    let bytes = cached.end_of(common) as u64;
    Ok(CachedLog { bytes, head, ..CachedLog::new(name.clone()) })
}

/// Reads a file, and returns the number of lines that it has in common with its log.
async fn common(
    store: &dyn SharedStore,
    name: &LogName,
    path: &Path,
    head: LogHead,
) -> Result<(CachedFile, u64)> {
    let file = path.to_owned();
    let cached = spawn_blocking(move || CachedFile::read(&file)).await?;
    let common = head.lines.min(cached.ends.len() as u64);
    // Ids are random, and each line names the one before it: equal last lines have equal histories.
    let is_equal = common > 0
        && cached.generation == head.generation
        && has_line(store, name, &cached, common - 1).await?;
    Ok((cached, if is_equal { common } else { 0 }))
}

/// Whether a line of the file is the same in the log.
async fn has_line(
    store: &dyn SharedStore,
    name: &LogName,
    cached: &CachedFile,
    at: u64,
) -> Result<bool> {
    let own = cached.text.get(cached.end_of(at)..cached.end_of(at + 1)).unwrap_or_default();
    let stored = store.read(name, at, 1).await?;
    let stored = stored.first().map(|line| &*line.bytes);
    Ok(stored.is_some() && stored == own.strip_suffix(b"\n"))
}

impl CachedFile {
    /// Whether complete lines after the first `stored` bytes were acknowledged.
    fn has_acknowledged(&self, stored: usize) -> bool {
        self.acknowledged > stored && self.ends.binary_search(&self.acknowledged).is_ok()
    }

    /// Returns the number of bytes of the first `lines` lines.
    fn end_of(&self, lines: u64) -> usize {
        let last = usize::try_from(lines).ok().and_then(|lines| lines.checked_sub(1));
        last.and_then(|last| self.ends.get(last)).copied().unwrap_or_default()
    }

    fn read(path: &Path) -> Result<Self> {
        let failed = |error| disk::io_error("cannot read the session", path, error);
        let text = match disk::read(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(failed(error)),
        };
        let ends = text.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        let ends = ends.map(|(at, _)| at + 1).collect();
        let acknowledged = usize::try_from(journal::acknowledged(path)?).unwrap_or_default();
        Ok(Self { generation: read_generation(path)?, text, ends, acknowledged })
    }
}

/// Replaces a file, or deletes it if it becomes empty. The generation is written last: until then
/// the file counts as one of another generation.
fn write(path: &Path, text: &[u8], surplus: &Surplus, generation: u64) -> Result<()> {
    let _lock = SessionLock::of(path)?;
    disk::create_private_dir(disk::parent(path))?;
    match *surplus {
        Surplus::None => {}
        Surplus::Keep(start) => {
            keep_unstored(path, start)?;
            if journal::acknowledged(path)? > start {
                let file = path.display();
                tracing::warn!(%file, "another host wrote to a session after its journal began");
                journal::end(path)?;
            }
        }
        Surplus::Erase => {
            for file in erasable(path) {
                let path = file.display();
                tracing::warn!(%path, "deleted: text of its session was erased on another host");
                disk::remove(&file, "cannot delete a file of an erased session")?;
            }
        }
    }
    match text {
        b"" => drop(disk::remove(path, "cannot delete an erased session")?),
        text => disk::write_atomic(path, text)?,
    }
    disk::sync_dir(disk::parent(path))?;
    write_generation(path, generation)
}

/// Returns the files beside a session that may have text of it.
fn erasable(path: &Path) -> Vec<PathBuf> {
    let beside = disk::list_beside(path).into_iter();
    let may_have = |suffix: &str| !["", ".lock", ".generation"].contains(&suffix);
    let files = beside.filter(|(suffix, file)| may_have(suffix) && file.is_file());
    files.map(|(_, file)| file).collect()
}

/// Copies what follows `start` to a file of its own.
fn keep_unstored(path: &Path, start: u64) -> Result<()> {
    let mut number = 1_u32;
    loop {
        let beside = disk::beside(path, &format!(".unstored-{number}"));
        match disk::copy_new(path, start, &beside) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => number += 1,
            done => {
                let failed = |error| disk::io_error("cannot keep unstored lines", &beside, error);
                return done.map_err(failed);
            }
        }
    }
}

fn generation_file(path: &Path) -> PathBuf {
    disk::beside(path, ".generation")
}

/// Returns the generation that a file caches. A file without a number caches the first one.
fn read_generation(path: &Path) -> Result<u64> {
    read_number(&generation_file(path), LogHead::NEW.generation)
}

fn write_generation(path: &Path, generation: u64) -> Result<()> {
    let file = generation_file(path);
    match generation == LogHead::NEW.generation {
        true => disk::remove(&file, "cannot delete the session's generation").map(drop),
        false => write_number(&file, generation),
    }
}

/// Returns the bytes of a file from `from` to the end of its last complete line.
fn tail(path: &Path, from: u64) -> Result<Vec<u8>> {
    let failed = |error| disk::io_error("cannot read the session", path, error);
    let mut file = disk::open(path).map_err(failed)?;
    file.seek(SeekFrom::Start(from)).map_err(failed)?;
    let mut text = Vec::new();
    file.read_to_end(&mut text).map_err(failed)?;
    let end = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    text.truncate(end);
    Ok(text)
}

/// Returns the lines of a text, the first of which has this number in its log. A line without an
/// id of its own has its number as the id.
fn numbered(text: &[u8], first: u64) -> Vec<Line> {
    #[derive(Deserialize)]
    struct WithId {
        id: Option<String>,
    }
    let mut seen = HashSet::new();
    let lines = text.split_inclusive(|byte| *byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\n").unwrap_or(line));
    (first..)
        .zip(lines)
        .map(|(number, line)| {
            let named = serde_json::from_slice::<WithId>(line).ok().and_then(|line| line.id);
            let id = named.filter(|id| seen.insert(id.clone()));
            let id = id.unwrap_or_else(|| format!("line {number}"));
            Line { id, bytes: line.to_vec() }
        })
        .collect()
}
