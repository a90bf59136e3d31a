//! Making the index say what the folder says.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};
use foldhash::HashSet;
use serde::Serialize;

use super::chunk::chunks;
use super::index::Workspace;
use super::list::{self, FileRow};
use super::plan::Plan;
use super::read::{Content, Text, read};
use super::walk::{Candidate, Skipped, walk};
use crate::disk::{self, FileLock};
use crate::index::{Batch, DiskIndex, Piece, Written, key_of};
use crate::text::Terms;

/// So much text goes to the disk at once. What was written stays if the next batch is interrupted.
const BATCH: u64 = 32 << 20;

/// How long one waits for another process that updates the same index.
const PATIENCE: Duration = Duration::from_secs(10);

/// An index is made anew when more than half of its pieces are of files that are gone, and these are
/// more than so many.
const MOST_GONE: usize = 4_096;

/// What an update did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IndexReport {
    /// The folder.
    pub folder: PathBuf,
    /// Where its index is.
    pub index: PathBuf,
    /// Files with text that are indexed now.
    pub files: usize,
    /// The chunks they are cut into.
    pub chunks: usize,
    /// Files that were not there before.
    pub added: usize,
    /// Files that held something else.
    pub changed: usize,
    /// Files that are gone, or hold no text any more.
    pub removed: usize,
    /// Files that are as they were.
    pub unchanged: usize,
    /// The bytes of the files that were added or changed.
    pub bytes: u64,
    /// Files that are still to be read: the update was ended, or was not to take long.
    pub left: usize,
    /// What is not indexed, and why.
    pub skipped: Skipped,
}

/// How far an update is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes that were read.
    pub done: u64,
    /// Bytes that are to be read.
    pub all: u64,
}

/// How an update is made.
struct Effort {
    /// No more than so many bytes are read.
    most: u64,
    patience: Duration,
    /// Whether every file that is listed is looked for in the index.
    checks: bool,
}

impl Workspace {
    /// Brings the index up to date. Files that are as they were are not read. `progress` is called as
    /// files are read, and may end it: what is indexed by then stays.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] where another process does the same and takes long; [`ErrorKind::Io`]
    /// where the index cannot be written.
    pub fn update(
        &self,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<IndexReport> {
        let effort = Effort { most: u64::MAX, patience: PATIENCE, checks: true };
        self.run(&effort, &mut progress)
    }

    /// The same within a turn: where another process updates it already, or where more than `most`
    /// bytes would have to be read, the rest is left for later.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update).
    pub fn refresh(&self, most: u64) -> Result<IndexReport> {
        let checks = self.is_unsound.swap(false, Ordering::Relaxed);
        let effort = Effort { most, patience: Duration::ZERO, checks };
        self.run(&effort, &mut |_| ControlFlow::Continue(()))
    }

    fn run(
        &self,
        effort: &Effort,
        progress: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<IndexReport> {
        disk::create_private_dir(&self.store)?;
        let _lock = FileLock::within(&self.list(), effort.patience)?;
        let listed = list::read(&self.list(), &self.header())?;
        let mut report = IndexReport {
            folder: self.folder.clone(),
            index: self.store.clone(),
            ..IndexReport::default()
        };
        let mut skipped = Skipped::default();
        let found = walk(&self.folder, &self.store, self.settings.largest_file, &mut skipped);
        report.skipped = skipped;
        let mut plan = Plan::new(listed, &found, effort.most);
        let mut index = None;
        if effort.checks || !plan.to_read.is_empty() || plan.removed > 0 {
            let removed = plan.removed;
            let Checked { index: disk, present, rows } = self.checked(plan.into_rows())?;
            plan = Plan { removed, ..Plan::new(rows, &found, effort.most) };
            index = Some((disk, present));
        }
        let mut work = Work::new(self, plan, report, progress);
        if let Some((index, present)) = index {
            work.write(&index, &present)?;
        }
        work.finish()
    }

    /// The index, the keys that are in it, and the rows whose chunks are. One that holds little else
    /// but what is gone is made anew.
    fn checked(&self, files: Vec<FileRow>) -> Result<Checked> {
        let (index, snapshot, files) = self.sound(files)?;
        let (pieces, gone) = snapshot.pieces();
        if gone > MOST_GONE && gone * 2 > pieces {
            drop(snapshot);
            let index = DiskIndex::create(&self.lexical())?;
            return Ok(Checked { index, present: HashSet::default(), rows: Vec::new() });
        }
        Ok(Checked { index, present: snapshot.keys(), rows: files })
    }
}

/// The index, and what of the list is in it.
struct Checked {
    index: DiskIndex,
    /// The keys that are in it, of files that are gone as well.
    present: HashSet<u64>,
    rows: Vec<FileRow>,
}

/// A file that holds something new.
struct Fresh {
    candidate: Candidate,
    text: Text,
}

/// The doing of it.
struct Work<'a> {
    workspace: &'a Workspace,
    rows: Vec<FileRow>,
    to_read: std::vec::IntoIter<(Candidate, Option<FileRow>)>,
    report: IndexReport,
    at: Progress,
    progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    /// Whether the list on disk is another.
    is_changed: bool,
    is_ended: bool,
    scanner: Terms,
}

impl<'a> Work<'a> {
    fn new(
        workspace: &'a Workspace,
        plan: Plan,
        mut report: IndexReport,
        progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Self {
        report.unchanged = plan.kept.iter().filter(|row| !row.binary).count();
        report.removed = plan.removed;
        report.left = plan.left;
        let all = plan.to_read.iter().map(|(candidate, _)| candidate.bytes).sum();
        Self {
            workspace,
            rows: plan.kept,
            to_read: plan.to_read.into_iter(),
            is_changed: plan.removed > 0,
            report,
            at: Progress { done: 0, all },
            progress,
            is_ended: false,
            scanner: Terms::default(),
        }
    }

    /// The next file that holds something new. What is read on the way and is as it was, or is no
    /// text, is settled.
    fn next(&mut self) -> Option<Fresh> {
        loop {
            if self.is_ended || (self.progress)(self.at).is_break() {
                self.is_ended = true;
                return None;
            }
            let (candidate, known) = self.to_read.next()?;
            self.at.done = self.at.done.saturating_add(candidate.bytes);
            let workspace = self.workspace;
            let content = read(&workspace.folder, &candidate.path, workspace.settings.largest_file);
            match content {
                Content::Text(text) => {
                    if let Some(row) = known.filter(|row| row.hash == text.hash && !row.binary) {
                        self.is_changed |= row.stamp != candidate.stamp;
                        self.report.unchanged += 1;
                        self.rows.push(FileRow { stamp: candidate.stamp, ..row });
                        continue;
                    }
                    self.report.bytes += candidate.bytes;
                    return Some(Fresh { candidate, text });
                }
                Content::Binary(hash) => {
                    let Candidate { path, bytes, stamp } = candidate;
                    let row = FileRow { path, bytes, stamp, hash, binary: true, chunks: vec![] };
                    self.is_changed |= known.as_ref() != Some(&row);
                    self.report.removed += usize::from(known.is_some_and(|known| !known.binary));
                    self.rows.push(row);
                }
                Content::Large => {
                    self.is_changed |= known.is_some();
                    self.report.skipped.large += 1;
                }
                Content::Unreadable => {
                    self.is_changed |= known.is_some();
                    self.report.skipped.unreadable += 1;
                }
            }
        }
    }

    /// Writes what is new to the index, batch by batch, and the list after each.
    fn write(&mut self, index: &DiskIndex, present: &HashSet<u64>) -> Result<()> {
        let listed: HashSet<String> = self
            .to_read
            .as_slice()
            .iter()
            .filter_map(|(c, row)| row.as_ref().map(|_| c.path.clone()))
            .collect();
        let size = if self.at.all > 1 << 20 { Batch::Large } else { Batch::Small };
        let mut next = self.next();
        while let Some(first) = next {
            let seen = index.version()?;
            let mut batch = Vec::new();
            let written = index.write(size, seen, |sink| {
                let (mut fresh, mut bytes) = (Some(first), 0);
                while let Some(file) = fresh.take() {
                    bytes += file.candidate.bytes;
                    batch.push(self.put(file, present, sink)?);
                    if bytes < BATCH {
                        fresh = self.next();
                    }
                }
                Ok(())
            })?;
            if written != Written::Committed {
                return Err(Error::new(ErrorKind::Locked, "another process writes to the index")
                    .with("path", self.workspace.store.display())
                    .retryable()
                    .hint("wait until it is done"));
            }
            for row in &batch {
                match listed.contains(&row.path) {
                    true => self.report.changed += 1,
                    false => self.report.added += 1,
                }
            }
            self.rows.append(&mut batch);
            self.save()?;
            next = self.next();
        }
        Ok(())
    }

    /// Puts a file's chunks into the index.
    fn put(
        &mut self,
        fresh: Fresh,
        present: &HashSet<u64>,
        sink: &mut dyn FnMut(Piece) -> Result<()>,
    ) -> Result<FileRow> {
        let Fresh { candidate, text } = fresh;
        let settings = &self.workspace.settings;
        let made = chunks(&text.text, settings.chunk, &settings.counter);
        let Candidate { path, bytes, stamp } = candidate;
        for (chunk, nth) in made.iter().zip(0u32..) {
            let key = key_of(text.hash.chunk(&path, nth));
            // A file that came back, as it was.
            if !present.contains(&key) {
                Piece::each(&mut self.scanner, key, &path, chunk.text, sink)?;
            }
        }
        let chunks = made.iter().map(|chunk| chunk.lines).collect();
        Ok(FileRow { path, bytes, stamp, hash: text.hash, binary: false, chunks })
    }

    fn save(&mut self) -> Result<()> {
        self.rows.sort_by(|a, b| a.path.cmp(&b.path));
        self.is_changed = false;
        list::write(&self.workspace.list(), &self.workspace.header(), &self.rows)
    }

    fn finish(mut self) -> Result<IndexReport> {
        // Where nothing is new, some may still have to be settled.
        while self.next().is_some() {}
        for (_, row) in self.to_read.by_ref() {
            self.report.left += 1;
            self.rows.extend(row);
        }
        if self.is_changed || !self.workspace.list().is_file() {
            self.save()?;
        }
        self.report.skipped.binary = self.rows.iter().filter(|row| row.binary).count();
        self.report.files = self.rows.len() - self.report.skipped.binary;
        self.report.chunks = self.rows.iter().map(|row| row.chunks.len()).sum();
        Ok(self.report)
    }
}
