//! Making the index say what the folder says.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ctx_core::{Error, ErrorKind, Result};
use foldhash::HashSet;
use serde::Serialize;

use super::chunk::chunks;
use super::hash::FileHash;
use super::index::{PATIENCE, Workspace};
use super::list::{self, FileRow, Kind};
use super::plan::{Mode, Plan};
use super::read::{Content, Text, hash, read};
use super::rows::Rows;
use super::settings::Cut;
use super::walk::{Candidate, Skipped, Walked, walk};
use crate::disk::{self, FileLock};
use crate::index::{Batch, DiskIndex, Piece, Written, key_of};
use crate::text::Terms;

/// So much text goes to the disk at once. What was written stays if the next batch is interrupted.
const BATCH: u64 = 32 << 20;

/// So much is read within a turn, however long that takes.
const READ_AT_LEAST: u64 = 1 << 20;

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
    /// Whether there was no time to look for all files: there may be others, that are not counted.
    pub cut_short: bool,
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
    mode: Mode,
    /// Files are not looked for any longer.
    walk_until: Option<Instant>,
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
        let effort =
            Effort { most: u64::MAX, patience: PATIENCE, mode: Mode::Checking, walk_until: None };
        self.run(&effort, &mut progress)
    }

    /// The same within a turn, that waits for at most `most` bytes, and not much longer than `within`
    /// for files to be found and as long again for them to be read. The rest is left for later; so is
    /// all of it where another process updates the index already.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update).
    pub fn refresh(&self, most: u64, within: Duration) -> Result<IndexReport> {
        let mode = match self.is_unsound.swap(false, Ordering::Relaxed) {
            true => Mode::Checking,
            false => Mode::Trusting,
        };
        let walk_until = Instant::now().checked_add(within);
        let effort = Effort { most, patience: Duration::ZERO, mode, walk_until };
        let mut begin = None;
        self.run(&effort, &mut |progress| {
            let begin = begin.get_or_insert_with(Instant::now);
            match progress.done > READ_AT_LEAST && begin.elapsed() > within {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })
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
        let walked =
            walk(&self.folder, self.stores(), self.settings.largest_file, effort.walk_until);
        report.skipped = walked.skipped;
        report.cut_short = walked.is_cut_short;
        let mut plan = Plan::new(listed, &walked, effort.most, effort.mode);
        if effort.mode == Mode::Trusting {
            plan.settle(|row| self.holds_same(row));
        }
        let (mut before, mut index) = (HashMap::new(), None);
        if effort.mode == Mode::Checking || !plan.to_read.is_empty() || plan.removed > 0 {
            let (removed, is_changed) = (plan.removed, plan.is_changed);
            let rows = plan.into_rows();
            before = rows.iter().map(|row| (row.path.clone(), row.hash)).collect();
            let Checked { index: disk, present, rows } = self.checked(rows, &walked, effort)?;
            let is_changed = is_changed || rows.len() < before.len();
            let anew = Plan::new(rows, &walked, effort.most, effort.mode);
            plan = Plan { removed, is_changed, ..anew };
            index = Some((disk, present));
        }
        let mut work = Work::new(self, plan, before, report, progress);
        if let Some((index, present)) = index {
            work.write(&index, &present)?;
        }
        work.finish()
    }

    /// Whether a file holds what it did, or still cannot be read.
    fn holds_same(&self, row: &FileRow) -> bool {
        let now = hash(&self.folder, &row.path, self.settings.largest_file);
        now.map_or(row.is_unreadable(), |now| !row.is_unreadable() && now == row.hash)
    }

    /// The index, the keys that are in it, and the rows whose chunks are. One that is damaged is made
    /// anew, and so is one that holds more of what is gone than of what is there: but that only where
    /// all that is there can be read now.
    fn checked(&self, listed: Vec<FileRow>, walked: &Walked, effort: &Effort) -> Result<Checked> {
        let rows = Rows::new(listed, self.settings.cut());
        if let Some((index, snapshot)) = self.opened(&rows)? {
            let (pieces, gone) = snapshot.pieces();
            let can_read_all = !walked.is_cut_short && walked.bytes() <= effort.most;
            if gone * 2 <= pieces || !can_read_all {
                let present = snapshot.keys();
                let rows = rows.indexed(&present);
                return Ok(Checked { index, present, rows });
            }
        }
        let index = DiskIndex::create(&self.lexical())?;
        Ok(Checked { index, present: HashSet::default(), rows: Vec::new() })
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
    /// What files held that were listed.
    before: HashMap<String, FileHash>,
    cut: Cut,
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
        before: HashMap<String, FileHash>,
        mut report: IndexReport,
        progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    ) -> Self {
        report.unchanged = plan.kept.iter().filter(|row| row.kind.is_text()).count();
        report.removed = plan.removed;
        report.left = plan.left;
        let all = plan.to_read.iter().map(|(candidate, _)| candidate.bytes).sum();
        Self {
            workspace,
            rows: plan.kept,
            before,
            cut: workspace.settings.cut(),
            to_read: plan.to_read.into_iter(),
            is_changed: plan.is_changed,
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
                    if let Some(row) =
                        known.filter(|row| row.hash == text.hash && row.kind.is_text())
                    {
                        self.is_changed |= row.stamp != candidate.stamp;
                        self.report.unchanged += 1;
                        self.rows.push(FileRow { stamp: candidate.stamp, ..row });
                        continue;
                    }
                    return Some(Fresh { candidate, text });
                }
                Content::Binary(hash) => self.put_aside(candidate, known, Kind::Binary, hash),
                Content::Large => {
                    self.is_changed |= known.is_some();
                    self.report.skipped.large += 1;
                }
                Content::Unreadable => {
                    self.put_aside(candidate, known, Kind::Unreadable, FileHash::of(&[]));
                }
            }
        }
    }

    /// Lists a file that has no text.
    fn put_aside(&mut self, found: Candidate, known: Option<FileRow>, kind: Kind, hash: FileHash) {
        let Candidate { path, bytes, stamp } = found;
        let row = FileRow { path, bytes, stamp, hash, kind, chunks: Vec::new() };
        self.is_changed |= known.as_ref() != Some(&row);
        self.report.removed += usize::from(known.is_some_and(|known| known.kind.is_text()));
        self.rows.push(row);
    }

    /// Writes what is new to the index, batch by batch, and the list after each.
    fn write(&mut self, index: &DiskIndex, present: &HashSet<u64>) -> Result<()> {
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
            batch.iter().for_each(|row| self.count(row));
            self.rows.append(&mut batch);
            self.save()?;
            next = self.next();
        }
        Ok(())
    }

    fn count(&mut self, row: &FileRow) {
        let before = self.before.get(&row.path);
        if before == Some(&row.hash) {
            // The index was made anew.
            self.report.unchanged += 1;
            return;
        }
        match before {
            Some(_) => self.report.changed += 1,
            None => self.report.added += 1,
        }
        self.report.bytes += row.bytes;
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
            let key = key_of(text.hash.chunk(&self.cut, &path, nth));
            // A file that came back, as it was.
            if !present.contains(&key) {
                Piece::each(&mut self.scanner, key, &path, chunk.text, sink)?;
            }
        }
        let chunks = made.iter().map(|chunk| chunk.lines).collect();
        Ok(FileRow { path, bytes, stamp, hash: text.hash, kind: Kind::Text, chunks })
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
        let of = |kind| self.rows.iter().filter(|row| row.kind == kind).count();
        self.report.skipped.binary = of(Kind::Binary);
        self.report.skipped.unreadable += of(Kind::Unreadable);
        self.report.files = of(Kind::Text);
        self.report.chunks = self.rows.iter().map(|row| row.chunks.len()).sum();
        Ok(self.report)
    }
}
