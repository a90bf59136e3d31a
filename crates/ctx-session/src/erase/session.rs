//! Sessions of ours without what is erased.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use ctx_core::{EntryId, Error, ErrorKind, RawJson, Result};
use ctx_dialect::json::{Object, array, quote};

use super::summary::{json, mark_without, summary};
use super::texts::holds;
use super::{Cited, Erased, Erasing, files_of};
use crate::compactions::{MARK, Mark, clear_stale, is_foreign};
use crate::disk;
use crate::entry::{Detail, EntryKind, TreeEntry};
use crate::log::{LogOptions, SessionLog};
use crate::projections::PROJECTIONS_TYPE;
use crate::repair::{Edits, line};
use crate::transcript::Transcript;

/// Erases messages from a session of ours and from those that were archived beside it when it was
/// rewritten, with the lines of summaries that were drawn from them. `None` if the file is not ours.
/// With `dry_run` nothing is written.
///
/// What hung on an erased message hangs on what that one hung on. Lines that cannot be read go as
/// well where the file is written anew: they may hold a part of what is to be erased. The session
/// comes first and what was archived last, as the older file tells a second run what is to be erased.
///
/// # Errors
///
/// [`ErrorKind::Locked`] while another process writes to the session, [`ErrorKind::NotFound`],
/// [`ErrorKind::Conflict`] if another program changes it meanwhile, [`ErrorKind::Io`]. Each file is
/// as it was, or as it is to be.
pub fn erase_from_session(
    path: &Path,
    erasing: &Erasing<'_>,
    dry_run: bool,
) -> Result<Option<Vec<Erased>>> {
    if !Transcript::open(path)?.is_ours() {
        return Ok(None);
    }
    let log = match SessionLog::open(path, LogOptions::default()) {
        Err(error) if is_foreign(error.kind()) => return Ok(None),
        opened => opened?,
    };
    if !dry_run {
        clear_stale(path);
    }
    let mut erased = Vec::new();
    let written_by_us = std::fs::metadata(path).is_ok_and(|found| found.len() == log.bytes());
    if !written_by_us {
        return Err(Error::new(ErrorKind::Conflict, "another program changed the file")
            .with("path", path.display())
            .hint("try again; let no other program write to it meanwhile"));
    }
    for file in files_of(path) {
        let is_archive = file != path;
        if is_archive && erasing.all {
            erased.push(whole(&file, dry_run)?);
            continue;
        }
        // What is beside a session and is none is not touched; the session itself was just read.
        let Ok(transcript) = Transcript::open(&file) else { continue };
        let Some((bytes, found)) = rewritten(&transcript, erasing)? else { continue };
        if !dry_run {
            disk::replace(&file, |out| out.write_all(&bytes))?;
        }
        erased.push(Erased { path: file, ..found });
    }
    Ok(Some(erased))
}

/// Takes a whole archived session away.
fn whole(file: &Path, dry_run: bool) -> Result<Erased> {
    let messages = Transcript::open(file).map_or(0, |archived| archived.all_messages().len());
    if !dry_run {
        std::fs::remove_file(file)
            .map_err(|e| disk::io_error("cannot remove the archived session", file, e))?;
        disk::sync_dir(disk::parent(file))?;
    }
    Ok(Erased { path: PathBuf::from(file), messages, ..Erased::default() })
}

/// The file without what is erased; `None` if there is nothing of it in it.
fn rewritten(transcript: &Transcript, erasing: &Erasing<'_>) -> Result<Option<(Vec<u8>, Erased)>> {
    let cut = Cut::of(transcript, erasing)?;
    let mut erased = cut.erased.clone();
    let mut bytes = Vec::new();
    line(&mut bytes, transcript.header().raw.as_deref().unwrap_or_default())?;
    let mut last = None;
    for (index, entry) in transcript.entries.iter().enumerate() {
        if !cut.is_gone(index) {
            line(&mut bytes, &cut.line(index, entry, &mut erased)?)?;
            last = Some(entry);
        }
    }
    transcript.settle_leaf(cut.stays(transcript.leaf_index()), last, &mut bytes)?;
    if erased.is_nothing() {
        return Ok(None);
    }
    if !erasing.all {
        check(transcript, &bytes, &cut)?;
    }
    Ok(Some((bytes, erased)))
}

/// What goes of a session.
struct Cut<'t> {
    transcript: &'t Transcript,
    erasing: &'t Erasing<'t>,
    cited: Cited<'t>,
    gone: Vec<bool>,
    erased: Erased,
}

impl<'t> Cut<'t> {
    fn of(transcript: &'t Transcript, erasing: &'t Erasing<'t>) -> Result<Self> {
        let cited = Cited::of(erasing.entries);
        let gone = vec![false; transcript.entries.len()];
        let mut cut = Self { transcript, erasing, cited, gone, erased: Erased::default() };
        for (index, entry) in transcript.entries.iter().enumerate() {
            let goes = cut.goes(index, entry)?;
            if goes && entry.is_message() {
                cut.erased.messages += 1;
            } else if goes {
                cut.erased.others += 1;
            }
            if let Some(gone) = cut.gone.get_mut(index) {
                *gone = goes;
            }
        }
        for &span in &transcript.lost {
            let lost = transcript.source.read(span)?;
            if erasing.all || (erasing.holds)(&String::from_utf8_lossy(&lost)) {
                cut.erased.others += 1;
            }
        }
        cut.erased.undo_ended = cut.undo_ended();
        Ok(cut)
    }

    fn goes(&self, index: usize, entry: &TreeEntry) -> Result<bool> {
        if self.erasing.all {
            return Ok(true);
        }
        if entry.is_message() {
            let head = entry.head.and_then(|head| self.transcript.entries.get(head as usize));
            return Ok(
                self.erasing.takes(&entry.id) || head.is_some_and(|h| self.erasing.takes(&h.id))
            );
        }
        if let Some(Detail::Edit { target: Some(target) }) = entry.detail.as_deref()
            && self.is_gone(*target as usize)
        {
            return Ok(true);
        }
        // What counts for the tree stays; what of it tells too much is taken out of it.
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
        let of_gone = target.is_some_and(|target| target < index && self.is_gone(target));
        Ok(of_gone || holds(&text, self.erasing.holds))
    }

    fn is_gone(&self, index: usize) -> bool {
        self.gone.get(index).copied().unwrap_or_default()
    }

    /// The entry, or the nearest one before it on its branch that stays.
    fn stays(&self, mut index: Option<usize>) -> Option<usize> {
        while let Some(at) = index.filter(|&at| self.is_gone(at)) {
            index = self.transcript.entries.get(at).and_then(TreeEntry::parent);
        }
        index
    }

    fn id(&self, index: usize) -> Option<&EntryId> {
        self.transcript.entries.get(index).map(|entry| &entry.id)
    }

    /// Compactions with a message that goes somewhere before them.
    fn undo_ended(&self) -> Vec<EntryId> {
        let mut after_gone = vec![false; self.gone.len()];
        let mut ended = Vec::new();
        for (index, entry) in self.transcript.entries.iter().enumerate() {
            let before = entry.parent().is_some_and(|parent| after_gone.get(parent) == Some(&true));
            if before && entry.is_compaction() && !self.is_gone(index) {
                ended.push(entry.id.clone());
            }
            if let Some(after) = after_gone.get_mut(index) {
                *after = before || (self.is_gone(index) && entry.is_message());
            }
        }
        ended
    }

    /// A line that stays, without what it says of what goes.
    fn line(&self, index: usize, entry: &TreeEntry, erased: &mut Erased) -> Result<String> {
        let text = self.transcript.text(entry)?;
        let Ok(object) = Object::parse(&text) else { return Ok(text) };
        let mut edits = Edits::new(&text, &object);
        let parent = entry.parent();
        if self.stays(parent) != parent {
            let parent = self.stays(parent).and_then(|parent| self.id(parent));
            edits.set("parentId", parent.map_or("null".to_owned(), |id| quote(id)));
        }
        match (&entry.kind, entry.detail.as_deref()) {
            (EntryKind::Leaf, Some(Detail::Leaf { target: Some(target) }))
                if self.is_gone(*target as usize) =>
            {
                let target = self.stays(Some(*target as usize)).and_then(|target| self.id(target));
                edits.set("targetId", target.map_or("null".to_owned(), |id| quote(id)));
            }
            (EntryKind::Compaction | EntryKind::BranchSummary, _) => {
                self.summary(index, entry, &object, &mut edits, erased)?;
            }
            (EntryKind::Custom, _)
                if object.text("customType").as_deref() == Some(PROJECTIONS_TYPE) =>
            {
                let data = object.get("data").map_or("[]", |data| data.get());
                let forms: Vec<RawJson> = serde_json::from_str(data).unwrap_or_default();
                let (kept, gone) = self.erasing.forms(&forms);
                if gone > 0 {
                    erased.forms += gone;
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
        erased.summary_lines += summary(self.erasing, &self.cited, object, edits);
        let mut mark = Mark::of(object).unwrap_or_default();
        let before = mark.clone();
        erased.forms += mark_without(self.erasing, &mut mark)?;
        if let Some(first) = entry.first_kept().filter(|&first| self.is_gone(first)) {
            let kept = self.next_kept(index, first);
            let id = kept.and_then(|kept| self.id(kept)).unwrap_or(&entry.id);
            edits.set("firstKeptEntryId", quote(id));
            mark.first_kept_hash = kept.and_then(|kept| self.transcript.first_line_hash(kept));
        }
        if mark != before {
            edits.set(MARK, json(&mark)?);
        }
        Ok(())
    }

    /// Of the entries from `first` to `compaction` on its branch, the first that stays.
    fn next_kept(&self, compaction: usize, first: usize) -> Option<usize> {
        let mut at = self.transcript.entries.get(compaction).and_then(TreeEntry::parent);
        let mut kept = None;
        while let Some(index) = at.filter(|&index| index > first) {
            if !self.is_gone(index) {
                kept = Some(index);
            }
            at = self.transcript.entries.get(index).and_then(TreeEntry::parent);
        }
        kept
    }
}

/// Refuses a new file that says anything else but without what was erased.
fn check(before: &Transcript, bytes: &[u8], cut: &Cut<'_>) -> Result<()> {
    let gone: HashSet<&EntryId> =
        (0..cut.gone.len()).filter(|&at| cut.is_gone(at)).filter_map(|at| cut.id(at)).collect();
    let said = |transcript: &Transcript| -> Result<Vec<_>> {
        let all = transcript.all_messages().into_iter().filter(|e| !gone.contains(e.id()));
        all.map(|entry| Ok((entry.id().clone(), entry.hash()?))).collect()
    };
    let seen = |transcript: &Transcript| -> Result<Vec<EntryId>> {
        let entries = transcript.context(None)?.entries.into_iter();
        Ok(entries.map(|entry| entry.id().clone()).filter(|id| !gone.contains(id)).collect())
    };
    let after = Transcript::from_bytes(bytes.to_vec())?;
    let stays = !gone.iter().any(|id| after.index_of(id).is_some());
    if stays && said(&after)? == said(before)? && seen(&after)? == seen(before)? {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Corrupt, "the session would read differently without what is erased")
        .with("path", before.file().unwrap_or(Path::new("")).display())
        .hint("it is left as it is; `ctx check` may tell what is unusual in it"))
}
