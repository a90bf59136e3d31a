//! Storing a compaction.

use std::path::Path;

use ctx_core::{Compacted, EntryId, Error, ErrorKind, Result, Timestamp};

use super::target::StorageTarget;
use crate::entry::MessageEncoding;
use crate::paths::Home;
use crate::schema::compaction_entry;
use crate::transcript::{Branch, Transcript};

/// Stores a compaction of the transcript at `path`, and returns its id. When this returns, the
/// compaction is on disk, and with it the projections of kept messages: see
/// [`Transcript::projections`].
///
/// `at` is the leaf at which the compaction was planned; default: the transcript's leaf. In another
/// program's file that has grown since, the compaction is placed where it was planned; in a ctx
/// session it is appended, and the entries in between are kept.
///
/// # Errors
///
/// Nothing is stored on any error: [`ErrorKind::Locked`] while another process writes to the
/// session or its overlay; [`ErrorKind::Conflict`] if another compaction was stored since `at`;
/// [`ErrorKind::InvalidInput`] if the first kept entry is not on the branch to `at`;
/// [`ErrorKind::NotFound`] if the file or the entry `at` is missing, or there is nothing to
/// compact; [`ErrorKind::Io`].
pub fn store_compaction(
    home: &Home,
    path: &Path,
    at: Option<&EntryId>,
    compacted: &Compacted,
    now: Timestamp,
) -> Result<EntryId> {
    let check = |transcript: &Transcript| plan_of(transcript, path, at, compacted).map(drop);
    let (place, transcript) = StorageTarget::open(home, path, check)?;
    store_in(place, &transcript, path, at, compacted, now)
}

pub(super) fn store_in(
    place: StorageTarget,
    transcript: &Transcript,
    path: &Path,
    at: Option<&EntryId>,
    compacted: &Compacted,
    now: Timestamp,
) -> Result<EntryId> {
    let (planned, kept) = plan_of(transcript, path, at, compacted)?;
    let anchor = match &place {
        StorageTarget::Session(_) => leaf_after(transcript, path, &planned)?,
        StorageTarget::Overlay(_) => planned,
    };
    let entry = compaction_entry(compacted, transcript.first_line_hash(kept))?;
    place.append(&entry, &anchor, now).map_err(|e| not_stored(e, "compaction"))
}

/// Returns the leaf at which a compaction was planned, and the index of the first kept entry, if
/// the plan still applies to the transcript.
fn plan_of(
    transcript: &Transcript,
    path: &Path,
    at: Option<&EntryId>,
    compacted: &Compacted,
) -> Result<(EntryId, usize)> {
    let planned = planned_at(transcript, path, at)?;
    let kept = kept_from(transcript, path, &planned, &compacted.first_kept_entry_id)?;
    Ok((planned, kept))
}

/// Adds to an error the name of the unstored item, and a hint that the session is unchanged.
pub(super) fn not_stored(error: Error, what: &'static str) -> Error {
    error.with("not stored", what).hint_or("the session is unchanged; fix the cause and try again")
}

/// Returns the leaf at which the compaction was planned. Fails if a compaction was stored after it.
fn planned_at(transcript: &Transcript, path: &Path, at: Option<&EntryId>) -> Result<EntryId> {
    let leaf = transcript.leaf().ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "nothing to compact").with("path", path.display()).hint(
            "specify the entry to compact up to: the session's leaf is before its first entry",
        )
    });
    let Some(at) = at else { return leaf.cloned() };
    let index = transcript.index_of(at).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "the entry at which the compaction was planned is missing")
            .with("entry", at)
            .with("path", path.display())
            .hint("the file was rewritten meanwhile: open it again and plan again")
    })?;
    let branch = Branch::of(transcript, transcript.path(Some(&newest(transcript, index)))?);
    if let Some(newer) = branch.compactions.iter().rev().map(|&place| branch.path[place]).next()
        && newer > index
    {
        let id = transcript.entries.get(newer).map_or("", |entry| &*entry.id);
        return Err(Error::new(ErrorKind::Conflict, "the session was compacted meanwhile")
            .with("planned at", at)
            .with("compaction", id)
            .with("path", path.display())
            .hint("open it again together with its overlay, and plan again"));
    }
    Ok(at.clone())
}

/// Returns the end of an entry's branch: the leaf, if the entry is an ancestor of it, otherwise the
/// last overlay entry attached to the entry.
fn newest(transcript: &Transcript, index: usize) -> EntryId {
    let id = |index: usize| transcript.entries.get(index).map(|entry| entry.id.clone());
    let to_leaf = transcript.path(None).unwrap_or_default();
    if to_leaf.binary_search(&index).is_ok()
        && let Some(leaf) = transcript.leaf()
    {
        return leaf.clone();
    }
    let added = (index + 1..)
        .take_while(|&next| transcript.entries.get(next).is_some_and(|entry| entry.overlay));
    added.last().or(Some(index)).and_then(id).unwrap_or_default()
}

/// Returns the index of the first kept entry. It must be on the branch; otherwise the compaction
/// would hide every message.
fn kept_from(
    transcript: &Transcript,
    path: &Path,
    planned: &EntryId,
    first_kept: &EntryId,
) -> Result<usize> {
    let branch = transcript.path(Some(planned))?;
    let found = transcript.first_kept_named(first_kept);
    found.filter(|index| branch.binary_search(index).is_ok()).ok_or_else(|| {
        Error::new(ErrorKind::InvalidInput, "the first kept entry is not on the branch")
            .with("firstKeptEntryId", first_kept)
            .with("planned at", planned)
            .with("path", path.display())
            .hint("plan the compaction on the context of this session")
    })
}

/// Returns the leaf of a ctx session, to which the compaction is appended.
fn leaf_after(transcript: &Transcript, path: &Path, planned: &EntryId) -> Result<EntryId> {
    let index = transcript.index_of(planned);
    let to_leaf = transcript.path(None)?;
    match transcript.leaf() {
        Some(leaf) if index.is_some_and(|index| to_leaf.binary_search(&index).is_ok()) => {
            Ok(leaf.clone())
        }
        _ => Err(Error::new(ErrorKind::InvalidInput, "the compaction belongs to another branch")
            .with("planned at", planned)
            .with("path", path.display())
            .hint(
                "move the session's leaf to that branch first: entries are appended to the leaf",
            )),
    }
}

impl Transcript {
    /// Returns the index of the entry that the id of a first kept entry names. The id of a message
    /// in a Codex history, `<entry>.<part>`, names the entry that contains the history.
    fn first_kept_named(&self, id: &str) -> Option<usize> {
        let own = |index: &usize| self.entries.get(*index).is_some_and(|entry| *entry.id == *id);
        match self.index_of(id) {
            Some(index) if own(&index) => Some(index),
            Some(newest) => (0..self.entries.len()).find(own).or(Some(newest)),
            None => {
                let (history, part) = id.rsplit_once('.')?;
                part.parse::<u32>().ok()?;
                let index = self.index_of(history)?;
                let entry = self.entries.get(index)?;
                (entry.encoding == MessageEncoding::CodexCompacted).then_some(index)
            }
        }
    }
}
