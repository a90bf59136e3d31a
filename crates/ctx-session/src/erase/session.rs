//! Erasing messages from ctx sessions.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use ctx_core::{EntryId, Error, ErrorKind, RawJson, Result};
use ctx_dialect::json::{Object, array, quote};

use super::texts::{erase_from_extra, holds, summary};
use super::{CitedEntries, EraseCriteria, Erased, session_files};
use crate::compactions::clear_stale;
use crate::disk;
use crate::entry::{Detail, EntryKind, TreeEntry};
use crate::log::{LogOptions, SessionLog, is_foreign};
use crate::schema::{CTX_FIELD, CompactionExtra, Edits, PROJECTIONS_TYPE, json, write_json_line};
use crate::transcript::Transcript;

/// Erases messages, and summary lines derived from them, from a ctx session and its archived files.
/// Returns `None` if the file is not a ctx session. With `dry_run` nothing is written.
///
/// Children of an erased message become children of its parent. When a file is rewritten, its
/// unreadable lines are removed too, because they may contain erased content. The session is
/// written first and the oldest archive last: after a crash, the older files still contain the
/// messages, so a second run finds them.
///
/// # Errors
///
/// [`ErrorKind::Locked`] while another process writes to the session, [`ErrorKind::NotFound`],
/// [`ErrorKind::Conflict`] if another program changes it meanwhile, [`ErrorKind::Io`]. Each file is
/// either unchanged or complete.
pub fn erase_in_session(
    path: &Path,
    criteria: &EraseCriteria<'_>,
    dry_run: bool,
) -> Result<Option<Vec<Erased>>> {
    if !Transcript::open(path)?.is_ctx_session() {
        return Ok(None);
    }
    let log = match SessionLog::open(path, LogOptions::default()) {
        Err(error) if is_foreign(&error) => return Ok(None),
        opened => opened?,
    };
    if !dry_run {
        clear_stale(path);
    }
    let mut erased = Vec::new();
    log.check_unchanged()?;
    for file in session_files(path) {
        let is_archive = file != path;
        if is_archive && criteria.all {
            erased.push(whole(&file, dry_run)?);
            continue;
        }
        // Skips files with an archive's name that are not sessions; the session was just read.
        let Ok(transcript) = Transcript::open(&file) else { continue };
        let Some((bytes, found)) = rewritten(&transcript, criteria)? else { continue };
        if !dry_run {
            disk::replace(&file, |out| out.write_all(&bytes))?;
            remove_unstored(&file)?;
        }
        erased.push(Erased { path: file, ..found });
    }
    Ok(Some(erased))
}

/// Removes lines that were never part of the session in a shared store: they may contain what is
/// erased.
fn remove_unstored(path: &Path) -> Result<()> {
    for (suffix, file) in disk::list_beside(path) {
        if suffix.starts_with(".unstored-") {
            disk::remove(&file, "cannot remove unstored lines")?;
        }
    }
    Ok(())
}

/// Removes a whole archived session.
fn whole(file: &Path, dry_run: bool) -> Result<Erased> {
    let messages = Transcript::open(file).map_or(0, |archived| archived.all_messages().len());
    if !dry_run {
        std::fs::remove_file(file)
            .map_err(|e| disk::io_error("cannot remove the archived session", file, e))?;
        disk::sync_dir(disk::parent(file))?;
    }
    Ok(Erased { path: PathBuf::from(file), messages, ..Erased::default() })
}

/// Returns the file without the erased content; `None` if it contains none.
fn rewritten(
    transcript: &Transcript,
    criteria: &EraseCriteria<'_>,
) -> Result<Option<(Vec<u8>, Erased)>> {
    let cut = ErasedEntries::of(transcript, criteria)?;
    let mut erased = cut.erased.clone();
    let mut bytes = Vec::new();
    write_json_line(&mut bytes, transcript.header.raw.as_deref().unwrap_or_default())?;
    let mut last = None;
    for (index, entry) in transcript.entries.iter().enumerate() {
        if !cut.is_erased(index) {
            write_json_line(&mut bytes, &cut.line(index, entry, &mut erased)?)?;
            last = Some(entry);
        }
    }
    transcript.write_leaf_entry(cut.nearest_kept(transcript.leaf_index()), last, &mut bytes)?;
    if erased.is_nothing() {
        return Ok(None);
    }
    if !criteria.all {
        check(transcript, &bytes, &cut)?;
    }
    Ok(Some((bytes, erased)))
}

/// The entries that are erased from a session.
struct ErasedEntries<'t> {
    transcript: &'t Transcript,
    criteria: &'t EraseCriteria<'t>,
    cited: CitedEntries<'t>,
    gone: Vec<bool>,
    erased: Erased,
}

impl<'t> ErasedEntries<'t> {
    fn of(transcript: &'t Transcript, criteria: &'t EraseCriteria<'t>) -> Result<Self> {
        let cited = CitedEntries::of(criteria.entries);
        let gone = vec![false; transcript.entries.len()];
        let mut cut = Self { transcript, criteria, cited, gone, erased: Erased::default() };
        for (index, entry) in transcript.entries.iter().enumerate() {
            let erase = cut.should_erase(index, entry)?;
            if erase && entry.is_message() {
                cut.erased.messages += 1;
            } else if erase {
                cut.erased.others += 1;
            }
            if let Some(gone) = cut.gone.get_mut(index) {
                *gone = erase;
            }
        }
        for &span in &transcript.lost {
            let lost = transcript.source.read(span)?;
            if criteria.all || (criteria.holds)(&String::from_utf8_lossy(&lost)) {
                cut.erased.others += 1;
            }
        }
        cut.erased.undo_ended = cut.undo_ended();
        Ok(cut)
    }

    fn should_erase(&self, index: usize, entry: &TreeEntry) -> Result<bool> {
        if self.criteria.all {
            return Ok(true);
        }
        if entry.is_message() {
            let head = entry.head.and_then(|head| self.transcript.entries.get(head as usize));
            return Ok(self.criteria.covers(&entry.id)
                || head.is_some_and(|h| self.criteria.covers(&h.id)));
        }
        if let Some(Detail::Edit { target: Some(target) }) = entry.detail.as_deref()
            && self.is_erased(*target as usize)
        {
            return Ok(true);
        }
        // Entries that define the tree stay; only the erased content in them is removed.
        let is_tree = matches!(
            entry.kind,
            EntryKind::Leaf
                | EntryKind::Compaction
                | EntryKind::ModelChange
                | EntryKind::ThinkingLevelChange
                | EntryKind::Usage
        );
        let undoes = matches!(entry.detail.as_deref(), Some(Detail::Undo { .. }));
        if entry.is_compaction() || is_tree || undoes {
            return Ok(false);
        }
        let text = self.transcript.text(entry)?;
        let object = Object::parse(&text).unwrap_or_default();
        if object.text("customType").as_deref() == Some(PROJECTIONS_TYPE) {
            return Ok(false);
        }
        let target = match entry.kind {
            EntryKind::Label => object.id("targetId").and_then(|id| self.transcript.index_of(&id)),
            _ => None,
        };
        let of_gone = target.is_some_and(|target| target < index && self.is_erased(target));
        Ok(of_gone || holds(&text, self.criteria.holds))
    }

    fn is_erased(&self, index: usize) -> bool {
        self.gone.get(index).copied().unwrap_or_default()
    }

    /// Returns the entry, or its nearest ancestor that stays.
    fn nearest_kept(&self, mut index: Option<usize>) -> Option<usize> {
        while let Some(at) = index.filter(|&at| self.is_erased(at)) {
            index = self.transcript.entries.get(at).and_then(TreeEntry::parent);
        }
        index
    }

    fn id(&self, index: usize) -> Option<&EntryId> {
        self.transcript.entries.get(index).map(|entry| &entry.id)
    }

    /// Returns the compactions that come after an erased message.
    fn undo_ended(&self) -> Vec<EntryId> {
        let mut after_gone = vec![false; self.gone.len()];
        let mut ended = Vec::new();
        for (index, entry) in self.transcript.entries.iter().enumerate() {
            let before = entry.parent().is_some_and(|parent| after_gone.get(parent) == Some(&true));
            if before && entry.is_compaction() && !self.is_erased(index) {
                ended.push(entry.id.clone());
            }
            if let Some(after) = after_gone.get_mut(index) {
                *after = before || (self.is_erased(index) && entry.is_message());
            }
        }
        ended
    }

    /// Returns a line that stays, without the erased content.
    fn line(&self, index: usize, entry: &TreeEntry, erased: &mut Erased) -> Result<String> {
        let text = self.transcript.text(entry)?;
        let Ok(object) = Object::parse(&text) else { return Ok(text) };
        let mut edits = Edits::new(&text, &object);
        let parent = entry.parent();
        if self.nearest_kept(parent) != parent {
            let parent = self.nearest_kept(parent).and_then(|parent| self.id(parent));
            edits.set("parentId", parent.map_or("null".to_owned(), |id| quote(id)));
        }
        match (&entry.kind, entry.detail.as_deref()) {
            (EntryKind::Leaf, Some(Detail::Leaf { target: Some(target) }))
                if self.is_erased(*target as usize) =>
            {
                let target =
                    self.nearest_kept(Some(*target as usize)).and_then(|target| self.id(target));
                edits.set("targetId", target.map_or("null".to_owned(), |id| quote(id)));
            }
            (EntryKind::Compaction | EntryKind::BranchSummary, _) => {
                self.summary(index, entry, &object, &mut edits, erased)?;
            }
            (EntryKind::Custom, _)
                if object.text("customType").as_deref() == Some(PROJECTIONS_TYPE) =>
            {
                let (kept, gone) = self.criteria.forms(&object);
                erased.forms += gone;
                if gone > 0 {
                    edits.set("data", array(kept.iter().map(RawJson::as_str)));
                }
            }
            _ => {}
        }
        Ok(edits.apply())
    }

    fn summary(
        &self,
        index: usize,
        entry: &TreeEntry,
        object: &Object<'_>,
        edits: &mut Edits<'_>,
        erased: &mut Erased,
    ) -> Result<()> {
        erased.summary_lines += summary(self.criteria, &self.cited, object, edits);
        let mut extra = CompactionExtra::of(object).unwrap_or_default();
        let before = extra.clone();
        erased.forms += erase_from_extra(self.criteria, &mut extra);
        if let Some(first) = entry.first_kept().filter(|&first| self.is_erased(first)) {
            let kept = self.next_kept(index, first);
            let id = kept.and_then(|kept| self.id(kept)).unwrap_or(&entry.id);
            edits.set("firstKeptEntryId", quote(id));
            extra.first_kept_hash = kept.and_then(|kept| self.transcript.first_line_hash(kept));
        }
        if extra != before {
            edits.set(CTX_FIELD, json(&extra)?);
        }
        Ok(())
    }

    /// Returns the first entry that stays after `first` on the branch to `compaction`.
    fn next_kept(&self, compaction: usize, first: usize) -> Option<usize> {
        let mut at = self.transcript.entries.get(compaction).and_then(TreeEntry::parent);
        let mut kept = None;
        while let Some(index) = at.filter(|&index| index > first) {
            if !self.is_erased(index) {
                kept = Some(index);
            }
            at = self.transcript.entries.get(index).and_then(TreeEntry::parent);
        }
        kept
    }
}

/// Refuses a new file that differs from the old one by more than the erased content.
fn check(before: &Transcript, bytes: &[u8], cut: &ErasedEntries<'_>) -> Result<()> {
    let gone: HashSet<&EntryId> =
        (0..cut.gone.len()).filter(|&at| cut.is_erased(at)).filter_map(|at| cut.id(at)).collect();
    let messages = |transcript: &Transcript| -> Result<Vec<_>> {
        let all = transcript.all_messages().into_iter().filter(|e| !gone.contains(e.id()));
        all.map(|entry| Ok((entry.id().clone(), entry.hash()?))).collect()
    };
    let context = |transcript: &Transcript| -> Result<Vec<EntryId>> {
        let entries = transcript.context(None)?.entries.into_iter();
        Ok(entries.map(|entry| entry.id().clone()).filter(|id| !gone.contains(id)).collect())
    };
    let after = Transcript::from_bytes(bytes.to_vec())?;
    let is_erased = !gone.iter().any(|id| after.index_of(id).is_some());
    if is_erased && messages(&after)? == messages(before)? && context(&after)? == context(before)? {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Corrupt, "the session would change by more than the erased content")
        .with("path", before.file().unwrap_or(Path::new("")).display())
        .hint("the session is unchanged; `ctx check` may show the cause"))
}
