//! `knowledge.jsonl`: one line per version of a fact. A later line with the same id wins.
//!
//! Lines are appended under a lock that is released when its process ends, and synced before the
//! call returns. A line that a crash left unfinished was never acknowledged: it is skipped, and
//! removed by the next rewrite.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use ctx_core::Result;

use super::Fact;
use crate::archive::{LineReader, LinesFile, ReadPosition};
use crate::disk::FileLock;

/// A longer line is not a fact: content and context are bounded.
const LINE_MAX: usize = 64 * 1024;

/// The result of a read.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Whether the file was replaced, so that all known facts must be dropped.
    pub(super) is_replaced: bool,
    /// The facts, in the order of their lines.
    pub(super) facts: Vec<Fact>,
}

/// The file, and how far it was read.
#[derive(Debug)]
pub(super) struct KnowledgeFile {
    file: LinesFile,
    mark: ReadPosition,
    lines: usize,
    damaged: usize,
    /// Valid JSON lines that this version does not know as facts. A rewrite preserves them.
    foreign: Vec<String>,
}

/// The right to write. Holds no lock if the store has no file.
#[derive(Debug)]
pub(crate) struct Lock(Option<FileLock>);

impl KnowledgeFile {
    /// An empty path means a store without a file.
    pub(super) fn new(path: PathBuf) -> Self {
        let (file, mark) = (LinesFile::new(path, "the facts"), ReadPosition::default());
        Self { file, mark, lines: 0, damaged: 0, foreign: Vec::new() }
    }

    pub(super) fn is_kept(&self) -> bool {
        !self.path().as_os_str().is_empty()
    }

    pub(super) fn path(&self) -> &Path {
        &self.file.path
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
        Ok(Lock(self.is_kept().then(|| self.file.lock()).transpose()?))
    }

    /// Reads what was appended since the last read, or everything if the file was replaced.
    pub(super) fn read(&mut self) -> Result<News> {
        let mut news = News::default();
        let file = if self.is_kept() { self.file.open()? } else { None };
        let is_same = |file: &File| self.file.is_same(file, &self.mark);
        if !file.as_ref().map(is_same).transpose()?.unwrap_or_default() {
            news.is_replaced = self.mark.read_to > 0;
            *self = Self::new(std::mem::take(&mut self.file.path));
        }
        let Some(file) = file else { return Ok(news) };
        let failed = |e| self.file.failed("cannot read", e);
        let mut at = self.mark.read_to;
        let mut reader = &file;
        reader.seek(SeekFrom::Start(at)).map_err(failed)?;
        let mut lines = LineReader::new(reader, at);
        // A last line without a line break is being written.
        while let Some(line) = lines.next().map_err(failed)?.filter(|line| line.terminated) {
            let bytes = line.bytes;
            at = line.offset + bytes.len() as u64 + 1;
            match serde_json::from_slice::<Fact>(bytes) {
                Ok(fact) if bytes.len() < LINE_MAX => news.facts.push(fact),
                _ if bytes.iter().all(u8::is_ascii_whitespace) => {}
                _ => match record(bytes) {
                    Some(record) => self.foreign.push(record.to_owned()),
                    None => self.damaged += 1,
                },
            }
        }
        self.lines += news.facts.len();
        self.mark_at(&file, at)?;
        Ok(news)
    }

    fn mark_at(&mut self, file: &File, read_to: u64) -> Result<()> {
        if read_to != self.mark.read_to {
            self.mark = self.file.mark(file, read_to, self.file.generation())?;
        }
        Ok(())
    }

    /// Appends facts and flushes them to disk. The file must have been read under the same lock.
    pub(super) fn append(&mut self, lock: &Lock, facts: &[Fact]) -> Result<()> {
        let Lock(Some(lock)) = lock else { return Ok(()) };
        let text = self.written(facts.iter())?;
        let end = self.file.open()?.map_or(Ok(0), |file| Ok(file.metadata()?.len()));
        let end = end.map_err(|e| self.file.failed("cannot read", e))?;
        // An unfinished line of a crash must not merge with the first new line.
        let bridge: &[u8] = if end > self.mark.read_to { b"\n" } else { b"" };
        let (start, file) = self.file.append(lock, end, bridge, &text)?;
        self.damaged += bridge.len();
        self.lines += facts.len();
        self.mark_at(&file, start + text.len() as u64)
    }

    /// Replaces the file by these facts and by the preserved lines that pass `keep`. Readers see
    /// the old file or the new one, also after a crash.
    pub(super) fn rewrite<'a>(
        &mut self,
        lock: &Lock,
        facts: impl Iterator<Item = &'a Fact> + Clone,
        keep: impl Fn(&str) -> bool,
    ) -> Result<()> {
        let Lock(Some(lock)) = lock else { return Ok(()) };
        let mut foreign = self.foreign.clone();
        foreign.retain(|line| keep(line));
        let mut text: Vec<u8> =
            foreign.iter().flat_map(|line| [line, "\n"].concat().into_bytes()).collect();
        text.extend(self.written(facts.clone())?);
        self.file.replace(lock, |out| out.write_all(&text))?;
        (self.lines, self.damaged, self.foreign) = (facts.count(), 0, foreign);
        self.mark = ReadPosition::default();
        match self.file.open()? {
            Some(file) => self.mark_at(&file, text.len() as u64),
            None => Ok(()),
        }
    }

    /// Removes the temporary file of a rewrite that was killed.
    pub(super) fn sweep(&self, lock: &Lock) {
        if let Lock(Some(lock)) = lock {
            self.file.sweep(lock);
        }
    }

    fn written<'a>(&self, facts: impl Iterator<Item = &'a Fact>) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        for fact in facts {
            serde_json::to_writer(&mut text, fact)
                .map_err(|e| self.file.failed("cannot write to", e.into()))?;
            text.push(b'\n');
        }
        Ok(text)
    }
}

/// Returns a line that is JSON, but no fact of this version.
fn record(line: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(line).ok()?.trim();
    let is_record = text.len() < LINE_MAX
        && text.starts_with('{')
        && serde_json::from_str::<&serde_json::value::RawValue>(text).is_ok();
    is_record.then_some(text)
}
