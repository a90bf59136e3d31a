//! A session's file as a cache of its log.
//!
//! The file has the lines of the log, byte for byte, each with a newline. Beside it, in
//! `<file>.generation`, is the number of the generation that it caches.

use std::collections::HashSet;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_disk as disk;
use ctx_session::SessionLock;
use ctx_store::{Lease, Line, LogHead, LogName, SharedStore};
use serde::Deserialize;

use crate::EMPTY;
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
        Self { name, head: EMPTY, bytes: 0 }
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

/// The lines of a file, and whether the last one is complete.
struct CachedFile {
    generation: u64,
    /// The end of each line, in bytes.
    ends: Vec<u64>,
    length: u64,
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
    let mut missing = Vec::new();
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
        missing.extend(page.into_iter().flat_map(|line| [line.bytes, b"\n".to_vec()]).flatten());
    }
    let bytes = kept + missing.len() as u64;
    if kept != cached.length || !missing.is_empty() || cached.generation != head.generation {
        let file = path.to_owned();
        spawn_blocking(move || write(&file, kept, &missing, cached.length, head.generation))
            .await?;
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
    Ok(CachedLog { name: name.clone(), head, bytes: cached.end_of(common) })
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
        && has_line(store, name, path, &cached, common - 1).await?;
    Ok((cached, if is_equal { common } else { 0 }))
}

/// Whether a line of the file is the same in the log.
async fn has_line(
    store: &dyn SharedStore,
    name: &LogName,
    path: &Path,
    cached: &CachedFile,
    at: u64,
) -> Result<bool> {
    let start = cached.end_of(at);
    let length = cached.end_of(at + 1).saturating_sub(start);
    let file = path.to_owned();
    let own = spawn_blocking(move || {
        let open = disk::open(&file).and_then(|file| disk::read_at(&file, start, length));
        open.map_err(|error| disk::io_error("cannot read the session", &file, error))
    })
    .await?;
    let stored = store.read(name, at, 1).await?;
    let stored = stored.first().map(|line| &*line.bytes);
    Ok(stored.is_some() && stored == own.strip_suffix(b"\n"))
}

impl CachedFile {
    /// Returns the number of bytes of the first `lines` lines.
    fn end_of(&self, lines: u64) -> u64 {
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
        let ends = ends.map(|(at, _)| at as u64 + 1).collect();
        let generation = match disk::read_to_string(generation_file(path)) {
            Ok(number) => number.trim().parse().unwrap_or_default(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => EMPTY.generation,
            Err(error) => return Err(failed(error)),
        };
        Ok(Self { generation, ends, length: text.len() as u64 })
    }
}

/// Replaces a file by its first `kept` bytes and those that were missing.
fn write(path: &Path, kept: u64, missing: &[u8], length: u64, generation: u64) -> Result<()> {
    let _lock = SessionLock::of(path)?;
    let failed = |error| disk::io_error("cannot write the session", path, error);
    disk::create_private_dir(disk::parent(path))?;
    if kept < length {
        keep_unstored(path, kept).map_err(failed)?;
    }
    let mut text = Vec::new();
    if kept > 0 {
        disk::open(path).and_then(|file| file.take(kept).read_to_end(&mut text)).map_err(failed)?;
    }
    text.extend_from_slice(missing);
    disk::write_atomic(path, &text)?;
    if generation != EMPTY.generation {
        disk::write_atomic(&generation_file(path), generation.to_string().as_bytes())?;
    }
    Ok(())
}

/// Copies what follows `kept` to a file of its own.
fn keep_unstored(path: &Path, kept: u64) -> std::io::Result<()> {
    let mut from = disk::open(path)?;
    from.seek(SeekFrom::Start(kept))?;
    let mut text = Vec::new();
    from.read_to_end(&mut text)?;
    for number in 1_u32.. {
        match disk::private().write(true).create_new(true).open(unstored(path, number)) {
            Ok(mut file) => return file.write_all(&text).and_then(|()| file.sync_all()),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn unstored(path: &Path, number: u32) -> PathBuf {
    disk::beside(path, &format!(".unstored-{number}"))
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
