//! Taking a compaction back.

use std::path::Path;

use ctx_core::{EntryId, Error, ErrorKind, Result, Timestamp};

use super::list::CompactedBy;
use super::place::Place;
use super::store::not_stored;
use crate::branch::Branch;
use crate::entry::Detail;
use crate::log::NewEntry;
use crate::overlay::Overlay;
use crate::paths::Home;
use crate::transcript::Transcript;

/// What an undo did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undone {
    /// The entry that says so. To take the undo back, undo this one.
    pub id: EntryId,
    /// What it undid: a compaction, or an undo.
    pub target: EntryId,
    /// Whether a compaction is in force again by it.
    pub redone: bool,
}

/// Takes a compaction back: from here on the branch reads as if it were not there, later turns
/// included, and the forms that came with it go with it. `None` if there is nothing to undo.
///
/// `which` names a compaction on the way to the leaf, by the agent itself too; or an earlier undo,
/// which is taken back by it. If `None`, it is the newest compaction in force that ctx stored.
///
/// # Errors
///
/// With nothing stored in any case: [`ErrorKind::Locked`] while another process writes to the
/// session or its overlay; [`ErrorKind::NotFound`] if there is no such entry on the branch;
/// [`ErrorKind::InvalidInput`] if it is neither compaction nor undo; [`ErrorKind::Io`].
pub fn undo_compaction(
    home: &Home,
    path: &Path,
    which: Option<&EntryId>,
    now: Timestamp,
) -> Result<Option<Undone>> {
    // Most of the time there is something to undo; where there is not, nothing is to be created.
    let transcript = crate::open(home, path)?;
    if target(&transcript, path, which)?.is_none() {
        return Ok(None);
    }
    let (place, transcript) = Place::open(home, path, |_| Ok(()))?;
    undo_in(place, &transcript, path, which, now)
}

impl Overlay {
    /// [`undo_compaction`], for who has the overlay open.
    ///
    /// # Errors
    ///
    /// As [`undo_compaction`], with nothing stored; [`ErrorKind::Locked`] only if the overlay was
    /// not written to yet and somebody else holds it.
    pub fn undo_compaction(
        &self,
        which: Option<&EntryId>,
        now: Timestamp,
    ) -> Result<Option<Undone>> {
        let _decided = self.decide();
        let path = self.source();
        if target(&Transcript::open(path)?.with_overlay(self)?, path, which)?.is_none() {
            return Ok(None);
        }
        let (place, transcript) = Place::held(self, |_| Ok(()))?;
        undo_in(place, &transcript, path, which, now)
    }
}

pub(super) fn undo_in(
    place: Place<'_>,
    transcript: &Transcript,
    path: &Path,
    which: Option<&EntryId>,
    now: Timestamp,
) -> Result<Option<Undone>> {
    let Some(target) = target(transcript, path, which)? else { return Ok(None) };
    let Some(leaf) = transcript.leaf() else { return Ok(None) };
    let entry = transcript.entries.get(target);
    let redone = brings_back(transcript, target);
    let target = entry.map(|entry| entry.id.clone()).unwrap_or_default();
    let id =
        place.append(&NewEntry::undo(&target), leaf, now).map_err(|e| not_stored(e, "undo"))?;
    Ok(Some(Undone { id, target, redone }))
}

/// Whether taking back what stands at `index` puts a compaction in force: if that is an undo of a
/// compaction, or an undo of an undo of an undo of one.
fn brings_back(transcript: &Transcript, mut index: usize) -> bool {
    let mut undoes = false;
    // What is undone stands before what undoes it, so this ends.
    while let Some(Detail::Undo { target: Some(target) }) =
        transcript.entries.get(index).and_then(|entry| entry.detail.as_deref())
        && (*target as usize) < index
    {
        undoes = !undoes;
        index = *target as usize;
    }
    undoes
}

/// The index of what is to be undone, if it is in force.
fn target(transcript: &Transcript, path: &Path, which: Option<&EntryId>) -> Result<Option<usize>> {
    let branch = Branch::of(transcript, transcript.path(None)?);
    let Some(which) = which else {
        let newest = branch.compactions.iter().rev().map(|&place| branch.path[place]);
        for index in newest {
            if transcript.compacted_by(index)? == CompactedBy::Ctx {
                return not_archived(transcript, path, index);
            }
        }
        return Ok(None);
    };
    let found = transcript.index_of(which).filter(|index| branch.path.binary_search(index).is_ok());
    let index = found.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "no such entry on the way to the session's leaf")
            .with("entry", which)
            .with("path", path.display())
            .hint("name one of the session's compactions, or of the entries that undid one")
    })?;
    match transcript.entries.get(index).and_then(|entry| entry.detail.as_deref()) {
        Some(Detail::Compaction { .. }) if !branch.undone.contains_key(&index) => {
            return not_archived(transcript, path, index);
        }
        Some(Detail::Compaction { .. } | Detail::Undo { .. }) => {}
        _ => {
            return Err(Error::new(ErrorKind::InvalidInput, "the entry is no compaction")
                .with("entry", which)
                .with("path", path.display())
                .hint("name one of the session's compactions, or of the entries that undid one"));
        }
    }
    Ok(Some(index).filter(|index| !branch.undone.contains_key(index)))
}

/// Refuses to undo a compaction whose messages are in the session no more: what is left would be no
/// context that ever was.
fn not_archived(transcript: &Transcript, path: &Path, index: usize) -> Result<Option<usize>> {
    let Some(archived) = transcript.archived_by(index)? else { return Ok(Some(index)) };
    Err(Error::new(ErrorKind::InvalidInput, "what the compaction stands for was archived")
        .with("path", path.display())
        .with("archived in", &archived)
        .hint(format!("go on from {archived}, which holds the session as it was before")))
}
