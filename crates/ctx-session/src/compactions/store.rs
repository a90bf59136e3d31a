//! Storing a compaction.

use std::path::Path;

use ctx_core::{Compacted, EntryId, Error, ErrorKind, Result, Timestamp};

use super::body::CompactionBody;
use super::place::Place;
use crate::branch::Branch;
use crate::entry::TreeEntry;
use crate::load::Recipe;
use crate::log::Body;
use crate::overlay::Overlay;
use crate::paths::Home;
use crate::transcript::Transcript;

/// Stores a compaction of the transcript at `path`, and returns its id. It is on disk when this
/// returns, together with the shorter forms of kept messages that came with it: see
/// [`sent_forms`](crate::sent_forms).
///
/// `at` is the leaf the compaction was planned at; the transcript's own if `None`. In a foreign file
/// that has grown since, the compaction stands where it was planned; in a session of ours it is
/// appended, which keeps what came in between.
///
/// # Errors
///
/// With nothing stored in any case: [`ErrorKind::Locked`] while another process writes to the
/// session or its overlay; [`ErrorKind::Conflict`] if another compaction was stored since `at`;
/// [`ErrorKind::InvalidInput`] if the first kept entry is not on the branch to `at`;
/// [`ErrorKind::NotFound`] if there is no file, no entry `at`, or nothing to compact;
/// [`ErrorKind::Io`].
pub fn store_compaction(
    home: &Home,
    path: &Path,
    at: Option<&EntryId>,
    compacted: &Compacted,
    now: Timestamp,
) -> Result<EntryId> {
    let check = |transcript: &Transcript| plan_of(transcript, path, at, compacted).map(drop);
    let (place, transcript) = Place::open(home, path, check)?;
    store_in(place, &transcript, path, at, compacted, now)
}

impl Overlay {
    /// [`store_compaction`], for who has the overlay open: others, in the same process too, get
    /// [`ErrorKind::Locked`] until it is [released](Overlay::release).
    ///
    /// # Errors
    ///
    /// As [`store_compaction`], with nothing stored; [`ErrorKind::Locked`] only if the overlay was
    /// not written to yet and somebody else holds it.
    pub fn store_compaction(
        &self,
        at: Option<&EntryId>,
        compacted: &Compacted,
        now: Timestamp,
    ) -> Result<EntryId> {
        let _decided = self.decide();
        let path = self.source();
        let check = |transcript: &Transcript| plan_of(transcript, path, at, compacted).map(drop);
        let (place, transcript) = Place::held(self, check)?;
        store_in(place, &transcript, path, at, compacted, now)
    }
}

pub(super) fn store_in(
    place: Place<'_>,
    transcript: &Transcript,
    path: &Path,
    at: Option<&EntryId>,
    compacted: &Compacted,
    now: Timestamp,
) -> Result<EntryId> {
    let (planned, kept) = plan_of(transcript, path, at, compacted)?;
    let anchor = match &place {
        Place::Ours(_) => leaf_after(transcript, path, &planned)?,
        Place::Beside(_) | Place::Held(_) => planned,
    };
    let body = CompactionBody::new(compacted, transcript.first_line_hash(kept));
    place.append(&body, &anchor, now).map_err(|e| not_stored(e, body.kind()))
}

/// The leaf a compaction was planned at, and the index of what it keeps from, if the transcript is
/// still one that it was planned for.
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

/// What is left when storing failed: everything that was there.
pub(super) fn not_stored(error: Error, what: &'static str) -> Error {
    match error.hint_text() {
        Some(_) => error.with("not stored", what),
        None => error
            .with("not stored", what)
            .hint("the session is as it was before; try again once the cause is gone"),
    }
}

/// The leaf the compaction was planned at. No compaction may have been stored after it.
fn planned_at(transcript: &Transcript, path: &Path, at: Option<&EntryId>) -> Result<EntryId> {
    let leaf = transcript.leaf().ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "there is nothing to compact")
            .with("path", path.display())
            .hint("name the entry to compact up to: the session's leaf is before its first entry")
    });
    let Some(at) = at else { return leaf.cloned() };
    let index = transcript.index_of(at).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "the entry the compaction was planned at is not there")
            .with("entry", at)
            .with("path", path.display())
            .hint("the file was rewritten meanwhile: open it again and plan anew")
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
            .hint("open it again together with its overlay, and plan anew"));
    }
    Ok(at.clone())
}

/// Where the branch of an entry goes on to: the leaf, if the entry is on the way to it, else the
/// last that an overlay added to the entry.
fn newest(transcript: &Transcript, index: usize) -> EntryId {
    let id = |index: usize| transcript.entries.get(index).map(|entry| entry.id.clone());
    let to_leaf = transcript.path(None).unwrap_or_default();
    if to_leaf.binary_search(&index).is_ok()
        && let Some(leaf) = transcript.leaf()
    {
        return leaf.clone();
    }
    let added = (index + 1..)
        .take_while(|&next| transcript.entries.get(next).is_some_and(TreeEntry::is_overlay));
    added.last().or(Some(index)).and_then(id).unwrap_or_default()
}

/// The index of the first kept entry, which must be on the branch: else all of it would be hidden.
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

/// The leaf of a session of ours, to which the compaction is appended.
fn leaf_after(transcript: &Transcript, path: &Path, planned: &EntryId) -> Result<EntryId> {
    let index = transcript.index_of(planned);
    let to_leaf = transcript.path(None)?;
    match transcript.leaf() {
        Some(leaf) if index.is_some_and(|index| to_leaf.binary_search(&index).is_ok()) => {
            Ok(leaf.clone())
        }
        _ => Err(Error::new(ErrorKind::InvalidInput, "the compaction is of another branch")
            .with("planned at", planned)
            .with("path", path.display())
            .hint(
                "move the session's leaf to that branch first: entries are appended to the leaf",
            )),
    }
}

impl Transcript {
    /// The entry that a first kept entry's id names: that of a message, or the one that holds the
    /// history it is part of.
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
                (entry.recipe == Recipe::CodexCompacted).then_some(index)
            }
        }
    }
}
