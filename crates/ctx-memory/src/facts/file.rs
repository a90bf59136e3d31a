//! `knowledge.jsonl`: one line per version of a fact. A later line with the same id wins.
//!
//! Lines are appended under a lock that is released when its process ends, and synced before the
//! call returns. A line that a crash left unfinished was never acknowledged: it is skipped, and
//! removed by the next rewrite.

use ctx_core::text::Slice;
use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use ctx_core::{Error, Result};

use super::Fact;
use crate::archive::LineReader;
use crate::disk::{self, FileLock};

/// A longer line is not a fact: content and context are bounded.
const LINE_MAX: usize = 64 * 1024;

/// Number of bytes before the read position that are compared, to notice a replaced file.
const TAIL: usize = 256;

/// How long to wait while another process holds the lock. It is held for milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// The result of a read.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Whether the file was replaced, so that all known facts must be dropped.
    pub(super) anew: bool,
    /// The facts, in the order of their lines.
    pub(super) facts: Vec<Fact>,
}

/// The file, and how far it was read.
#[derive(Debug)]
pub(super) struct KnowledgeFile {
    path: PathBuf,
    read_to: u64,
    tail: Vec<u8>,
    lines: usize,
    damaged: usize,
    /// Valid JSON lines that this version does not know as facts. A rewrite preserves them.
    foreign: Vec<String>,
}

/// The right to write. Holds no lock if the store has no file.
#[derive(Debug)]
pub(crate) struct Lock(#[expect(dead_code, reason = "held, not used")] Option<FileLock>);

impl KnowledgeFile {
    /// An empty path means a store without a file.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, read_to: 0, tail: Vec::new(), lines: 0, damaged: 0, foreign: Vec::new() }
    }

    pub(super) fn is_kept(&self) -> bool {
        !self.path.as_os_str().is_empty()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The number of lines that hold a fact.
    pub(super) fn lines(&self) -> usize {
        self.lines
    }

    /// The number of lines that could not be read.
    pub(super) fn damaged(&self) -> usize {
        self.damaged
    }

    /// Takes the lock, waiting up to the limit while another process holds it.
    pub(super) fn lock(&self) -> Result<Lock> {
        if !self.is_kept() {
            return Ok(Lock(None));
        }
        disk::create_private_dir(disk::parent(&self.path))?;
        Ok(Lock(Some(FileLock::with_timeout(&self.path, PATIENCE)?)))
    }

    /// Reads what was appended since the last read, or everything if the file was replaced.
    pub(super) fn read(&mut self) -> Result<News> {
        if !self.is_kept() {
            return Ok(News::default());
        }
        let file = match disk::open(&self.path) {
            Ok(file) => file,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                let anew = self.read_to > 0;
                *self = Self::new(std::mem::take(&mut self.path));
                return Ok(News { anew, facts: Vec::new() });
            }
            Err(e) => return Err(disk::io_error("cannot open the facts", &self.path, e)),
        };
        self.read_from(&file).map_err(|e| disk::io_error("cannot read the facts", &self.path, e))
    }

    fn read_from(&mut self, file: &File) -> io::Result<News> {
        let mut news = News::default();
        if self.read_to > 0 && !self.is_same(file)? {
            news.anew = true;
            *self = Self::new(std::mem::take(&mut self.path));
        }
        if file.metadata()?.len() == self.read_to {
            return Ok(news);
        }
        let mut reader = file;
        reader.seek(SeekFrom::Start(self.read_to))?;
        let mut lines = LineReader::new(reader, self.read_to);
        // A last line without a line break is being written.
        while let Some(line) = lines.next()?.filter(|line| line.terminated) {
            let bytes = line.bytes;
            self.read_to = line.offset + bytes.len() as u64 + 1;
            self.keep_tail(bytes);
            match serde_json::from_slice::<Fact>(bytes) {
                Ok(fact) if bytes.len() < LINE_MAX => {
                    self.lines += 1;
                    news.facts.push(fact);
                }
                _ if bytes.iter().all(u8::is_ascii_whitespace) => {}
                _ => self.note_unknown_line(bytes),
            }
        }
        Ok(news)
    }

    fn note_unknown_line(&mut self, line: &[u8]) {
        let text = std::str::from_utf8(line).map(str::trim).unwrap_or_default();
        let is_record = text.len() < LINE_MAX
            && text.starts_with('{')
            && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
        if is_record {
            self.foreign.push(text.to_owned());
        } else {
            self.damaged += 1;
        }
    }

    /// Remembers the end of the last line that was read or written.
    fn keep_tail(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        self.tail.clear();
        self.tail.extend_from_slice(line.slice(line.len().saturating_sub(TAIL)..));
        self.tail.push(b'\n');
    }

    /// Whether the bytes before the read position are unchanged.
    fn is_same(&self, file: &File) -> io::Result<bool> {
        let length = self.tail.len() as u64;
        let Some(from) = self.read_to.checked_sub(length) else { return Ok(false) };
        Ok(disk::read_at(file, from, length)? == self.tail)
    }

    /// Appends facts and flushes them to disk. The file must have been read under the same lock.
    pub(super) fn append(&mut self, _lock: &Lock, facts: &[Fact]) -> Result<()> {
        if !self.is_kept() {
            return Ok(());
        }
        let mut text = Vec::new();
        let mut last = 0;
        for fact in facts {
            last = text.len();
            write_line(&mut text, fact).map_err(|e| self.failed(e.into()))?;
        }
        let is_new = !self.path.exists();
        let file = disk::private().append(true).create(true).open(&self.path);
        let mut file = file.map_err(|e| self.failed(e))?;
        let end = file.metadata().map_err(|e| self.failed(e))?.len();
        // An unfinished line of a crash must not merge with the first new line.
        let bridge: &[u8] = if end > self.read_to { b"\n" } else { b"" };
        let mut write = || {
            file.write_all(bridge)?;
            file.write_all(&text)?;
            file.sync_data()
        };
        if let Err(e) = write() {
            // Best effort: a torn line that remains is skipped.
            let _ = file.set_len(end);
            return Err(self.failed(e));
        }
        if is_new {
            disk::sync_dir(disk::parent(&self.path))?;
        }
        self.damaged += bridge.len();
        self.read_to = end + bridge.len() as u64 + text.len() as u64;
        self.lines += facts.len();
        self.keep_tail(text.slice(last..));
        Ok(())
    }

    /// Replaces the file by these facts and by the preserved lines that pass `keep`. Readers see
    /// the old file or the new one, also after a crash.
    pub(super) fn rewrite<'a>(
        &mut self,
        _lock: &Lock,
        facts: impl Iterator<Item = &'a Fact>,
        keep: impl Fn(&str) -> bool,
    ) -> Result<()> {
        if !self.is_kept() {
            return Ok(());
        }
        let mut foreign = self.foreign.clone();
        foreign.retain(|line| keep(line));
        let mut text = Vec::new();
        for line in &foreign {
            text.extend_from_slice(line.as_bytes());
            text.push(b'\n');
        }
        let (mut lines, mut last) = (0, 0);
        for fact in facts {
            last = text.len();
            lines += 1;
            write_line(&mut text, fact).map_err(|e| self.failed(e.into()))?;
        }
        disk::replace(&self.path, |out| out.write_all(&text))?;
        (self.lines, self.damaged, self.foreign) = (lines, 0, foreign);
        self.read_to = text.len() as u64;
        self.keep_tail(text.slice(last..));
        Ok(())
    }

    /// Removes the temporary file of a rewrite that was killed.
    pub(super) fn sweep(&self, _lock: &Lock) {
        let _ = std::fs::remove_file(disk::temporary(&self.path));
    }

    fn failed(&self, error: io::Error) -> Error {
        disk::io_error("cannot write the facts", &self.path, error)
    }
}

fn write_line(out: &mut Vec<u8>, fact: &Fact) -> serde_json::Result<()> {
    serde_json::to_writer(&mut *out, fact)?;
    out.push(b'\n');
    Ok(())
}
