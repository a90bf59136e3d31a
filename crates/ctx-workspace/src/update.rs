//! Updates the index from the folder.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ctx_core::{Error, ErrorKind, Result};
use foldhash::HashSet;
use serde::Serialize;

use crate::chunk::chunks;
use crate::disk::{self, FileLock};
use crate::hash::FileHash;
use crate::index::{PATIENCE, Workspace};
use crate::list::{self, FileRow, Kind};
use crate::plan::{Mode, UpdatePlan};
use crate::read::{Content, Text, hash, read};
use crate::rows::Rows;
use crate::settings::Cut;
use crate::walk::{Skipped, Walked, WalkedFile, walk};
use ctx_search::index::{Batch, DiskIndex, Piece, WriteOutcome, key_of};

/// The number of bytes of text written per batch. Written batches stay if the next one is
/// interrupted.
const BATCH: u64 = 32 << 20;

/// The minimum number of bytes that a turn reads, without a time limit.
const READ_AT_LEAST: u64 = 1 << 20;

/// The result of an update.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IndexReport {
    /// The folder.
    pub folder: PathBuf,
    /// The folder of its index.
    pub index: PathBuf,
    /// Indexed files with text.
    pub files: usize,
    /// Their chunks.
    pub chunks: usize,
    /// Files that are new.
    pub added: usize,
    /// Files whose content has changed.
    pub changed: usize,
    /// Files that no longer exist or hold no text any more.
    pub removed: usize,
    /// Files that are unchanged.
    pub unchanged: usize,
    /// The bytes of the files that were added or changed.
    pub bytes: u64,
    /// Files that still have to be read: the update was stopped, or its time was limited.
    pub left: usize,
    /// Whether the time was too short to find all files: there may be others that are not counted.
    pub cut_short: bool,
    /// What is not indexed, and why.
    pub skipped: Skipped,
}

/// The progress of an update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Bytes read so far.
    pub done: u64,
    /// Bytes to read.
    pub all: u64,
}

/// The limits of an update.
struct Effort {
    /// The maximum number of bytes to read.
    most: u64,
    patience: Duration,
    mode: Mode,
    /// The deadline for finding files.
    walk_until: Option<Instant>,
}

impl Workspace {
    /// Brings the index up to date. Unchanged files are not read. `progress` is called as files are
    /// read, and may stop the update: files indexed by then stay.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Locked`] if another process updates it for too long; [`ErrorKind::Io`] if the
    /// index cannot be written.
    pub fn update(
        &self,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<IndexReport> {
        let effort =
            Effort { most: u64::MAX, patience: PATIENCE, mode: Mode::Checking, walk_until: None };
        self.run(&effort, &mut progress)
    }

    /// Like [`update`](Self::update), within a turn: reads at most `most` bytes, and takes not much
    /// longer than `within` for finding files and as long again for reading them. The rest is left
    /// for later. If another process is updating the index, everything is left.
    ///
    /// # Errors
    ///
    /// As for [`update`](Self::update).
    pub(crate) fn refresh(&self, most: u64, within: Duration) -> Result<IndexReport> {
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
        let _lock = FileLock::with_timeout(&self.list(), effort.patience)?;
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
        let mut plan = UpdatePlan::new(listed, &walked, effort.most, effort.mode);
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
            let new_plan = UpdatePlan::new(rows, &walked, effort.most, effort.mode);
            plan = UpdatePlan { removed, is_changed, ..new_plan };
            index = Some((disk, present));
        }
        let mut work = UpdateRun::new(self, plan, before, report, progress);
        if let Some((index, present)) = index {
            work.write(&index, &present)?;
        }
        work.finish()
    }

    /// Whether a file's content is unchanged, or still unreadable.
    fn holds_same(&self, row: &FileRow) -> bool {
        let now = hash(&self.folder, &row.path, self.settings.largest_file);
        now.map_or(row.is_unreadable(), |now| !row.is_unreadable() && now == row.hash)
    }

    /// Opens the index, and returns its keys and the rows whose chunks it contains. A damaged index
    /// is rebuilt. An index with more removed than current chunks is also rebuilt, but only if all
    /// files can be read now.
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

/// The index, and the listed files that it contains.
struct Checked {
    index: DiskIndex,
    /// The keys in it, including those of removed files.
    present: HashSet<u64>,
    rows: Vec<FileRow>,
}

/// A file with new content.
struct Fresh {
    candidate: WalkedFile,
    text: Text,
}

/// A running update.
struct UpdateRun<'a> {
    workspace: &'a Workspace,
    rows: Vec<FileRow>,
    /// The hashes of the listed files.
    before: HashMap<String, FileHash>,
    cut: Cut,
    to_read: std::vec::IntoIter<(WalkedFile, Option<FileRow>)>,
    report: IndexReport,
    at: Progress,
    progress: &'a mut dyn FnMut(Progress) -> ControlFlow<()>,
    /// Whether the list on disk is outdated.
    is_changed: bool,
    is_ended: bool,
}

impl<'a> UpdateRun<'a> {
    fn new(
        workspace: &'a Workspace,
        plan: UpdatePlan,
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
        }
    }

    /// Returns the next file with new content. Files on the way that are unchanged or not text are
    /// settled.
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

    /// Lists a file without text.
    fn put_aside(&mut self, found: WalkedFile, known: Option<FileRow>, kind: Kind, hash: FileHash) {
        let WalkedFile { path, bytes, stamp } = found;
        let row = FileRow { path, bytes, stamp, hash, kind, chunks: Vec::new() };
        self.is_changed |= known.as_ref() != Some(&row);
        self.report.removed += usize::from(known.is_some_and(|known| known.kind.is_text()));
        self.rows.push(row);
    }

    /// Writes new content to the index in batches, and the list after each batch.
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
            if written != WriteOutcome::Committed {
                return Err(Error::new(
                    ErrorKind::Locked,
                    "another process is writing to the index",
                )
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
            // The index was rebuilt.
            self.report.unchanged += 1;
            return;
        }
        match before {
            Some(_) => self.report.changed += 1,
            None => self.report.added += 1,
        }
        self.report.bytes += row.bytes;
    }

    /// Writes a file's chunks to the index.
    fn put(
        &mut self,
        fresh: Fresh,
        present: &HashSet<u64>,
        sink: &mut dyn FnMut(Piece) -> Result<()>,
    ) -> Result<FileRow> {
        let Fresh { candidate, text } = fresh;
        let settings = &self.workspace.settings;
        let made = chunks(&text.text, settings.chunk, &settings.counter);
        let WalkedFile { path, bytes, stamp } = candidate;
        for (chunk, nth) in made.iter().zip(0u32..) {
            let key = key_of(text.hash.chunk(&self.cut, &path, nth));
            // A restored file may already be in the index.
            if !present.contains(&key) {
                Piece::each(key, &path, chunk.text, sink)?;
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
        // Without new content, some files may still have to be settled.
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
