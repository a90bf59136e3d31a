//! A session's file as a cache of its log.
//!
//! The file has the lines of the log, byte for byte, each with a newline. Beside it, in
//! `<file>.generation`, is the number of the generation that it caches.

use std::collections::HashSet;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_disk as disk;
use ctx_session::SessionLock;
use ctx_store::{Lease, Line, LogHead, LogName, SharedStore};
use serde::Deserialize;

use crate::sync::spawn_blocking;

/// The size of one answer of the store, in bytes.
const PAGE: usize = 8 << 20;

/// The part of a log that the store and the file have in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CachedLog {
    pub(crate) name: LogName,
    head: LogHead,
    /// The bytes of the file up to the end of the log.
    bytes: u64,
}

impl CachedLog {
    /// A log that does not exist yet.
    pub(crate) fn new(name: LogName) -> Self {
        Self { name, head: LogHead::NEW, bytes: 0 }
    }

    /// Returns the number of lines in the store.
    pub(crate) fn lines(&self) -> u64 {
        self.head.lines
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
        if lines.is_empty() {
            return Ok(());
        }
        self.head = store.append(lease, &self.name, self.head, &lines).await?;
        self.bytes = bytes;
        Ok(())
    }
}

/// A file, as it was read.
struct CachedFile {
    generation: u64,
    text: Vec<u8>,
    /// The end of each complete line.
    ends: Vec<usize>,
}

/// Makes the file equal to its log, and returns the log. Lines that the log lacks are moved to
/// `<file>.unstored-<n>`. A file without a log is new to the store, and stays as it is.
pub(crate) async fn fetch(
    store: &dyn SharedStore,
    name: &LogName,
    path: &Path,
) -> Result<CachedLog> {
    let Some(head) = store.head(name).await? else {
        return Ok(CachedLog::new(name.clone()));
    };
    let (cached, common) = common(store, name, path, head).await?;
    let kept = cached.end_of(common);
    let (length, is_older) = (cached.text.len(), cached.generation != head.generation);
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
    let bytes = text.len() as u64;
    if kept != length || text.len() != kept || is_older {
        let file = path.to_owned();
        let unstored = (kept < length).then_some(kept as u64);
        spawn_blocking(move || write(&file, &text, unstored, head.generation)).await?;
    }
    Ok(CachedLog { name: name.clone(), head, bytes })
}

/// Returns the log of a file, if one of them is the beginning of the other. The file stays as it is.
///
/// # Errors
///
/// [`ErrorKind::Conflict`] if both have lines that the other lacks.
pub(crate) async fn beginning(
    store: &dyn SharedStore,
    name: &LogName,
    path: &Path,
) -> Result<CachedLog> {
    let Some(head) = store.head(name).await? else {
        return Ok(CachedLog::new(name.clone()));
    };
    let (cached, common) = common(store, name, path, head).await?;
    if common < head.lines && common < cached.ends.len() as u64 {
        return Err(Error::new(ErrorKind::Conflict, "the store has other lines of this session")
            .with("path", path.display())
            .hint("it went on elsewhere; `ctx store export` writes the store's sessions"));
    }
    Ok(CachedLog { name: name.clone(), head, bytes: cached.end_of(common) as u64 })
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
        let generation = match disk::read_to_string(generation_file(path)) {
            Ok(number) => number.trim().parse().unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => LogHead::NEW.generation,
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { generation, text, ends })
    }
}

/// Replaces a file. What it has from `unstored` on is kept beside it.
fn write(path: &Path, text: &[u8], unstored: Option<u64>, generation: u64) -> Result<()> {
    let _lock = SessionLock::of(path)?;
    disk::create_private_dir(disk::parent(path))?;
    if let Some(start) = unstored {
        keep_unstored(path, start)?;
    }
    disk::write_atomic(path, text)?;
    if generation != LogHead::NEW.generation {
        disk::write_atomic(&generation_file(path), generation.to_string().as_bytes())?;
    }
    Ok(())
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
