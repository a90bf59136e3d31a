//! Undoing a compaction.

use std::path::Path;

use ctx_core::{EntryId, Error, ErrorKind, Result, Timestamp};

use super::list::CompactionAuthor;
use super::store::not_stored;
use super::target::StorageTarget;
use crate::entry::Detail;
use crate::paths::Home;
use crate::schema::NewEntry;
use crate::transcript::{Branch, Transcript};

/// The result of an undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UndoResult {
    /// The entry of the undo. To redo, undo this entry.
    pub id: EntryId,
    /// The entry that was undone: a compaction, or an undo.
    pub target: EntryId,
    /// Whether this restored a compaction.
    pub redone: bool,
}

/// Undoes a compaction. The branch, later turns included, then reads as if the compaction did not
/// exist, and its projections no longer apply. Returns `None` if there is nothing to undo.
///
/// `which` names a compaction on the branch to the leaf, by ctx or by the agent itself, or an
/// earlier undo, which is then undone. Default: the newest compaction in force that ctx stored.
///
/// # Errors
///
/// Nothing is stored on any error: [`ErrorKind::Locked`] while another process writes to the
/// session or its overlay; [`ErrorKind::NotFound`] if the entry is not on the branch;
/// [`ErrorKind::InvalidInput`] if it is neither a compaction nor an undo; [`ErrorKind::Io`].
pub fn undo_compaction(
    home: &Home,
    path: &Path,
    which: Option<&EntryId>,
    now: Timestamp,
) -> Result<Option<UndoResult>> {
    // Checked first, so that no file is created if there is nothing to undo.
    let transcript = crate::overlay::open(home, path)?;
    if target(&transcript, path, which)?.is_none() {
        return Ok(None);
    }
    let (place, transcript) = StorageTarget::open(home, path, |_| Ok(()))?;
    undo_in(place, &transcript, path, which, now)
}

pub(super) fn undo_in(
    place: StorageTarget,
    transcript: &Transcript,
    path: &Path,
    which: Option<&EntryId>,
    now: Timestamp,
) -> Result<Option<UndoResult>> {
    let Some(target) = target(transcript, path, which)? else { return Ok(None) };
    let Some(leaf) = transcript.leaf() else { return Ok(None) };
    let entry = transcript.entries.get(target);
    let redone = restores_compaction(transcript, target);
    let target = entry.map(|entry| entry.id.clone()).unwrap_or_default();
    let id =
        place.append(&NewEntry::undo(&target), leaf, now).map_err(|e| not_stored(e, "undo"))?;
    Ok(Some(UndoResult { id, target, redone }))
}

/// Whether undoing the entry at `index` restores a compaction: true if a chain of an odd number of
/// undos leads from it to a compaction.
fn restores_compaction(transcript: &Transcript, mut index: usize) -> bool {
    let mut undoes = false;
    // The target of an undo always precedes it, so this terminates.
    while let Some(Detail::Undo { target: Some(target) }) =
        transcript.entries.get(index).and_then(|entry| entry.detail.as_deref())
        && (*target as usize) < index
    {
        undoes = !undoes;
        index = *target as usize;
    }
    undoes
}

/// Returns the index of the entry to undo, if it is in force.
fn target(transcript: &Transcript, path: &Path, which: Option<&EntryId>) -> Result<Option<usize>> {
    let branch = Branch::of(transcript, transcript.path(None)?);
    let Some(which) = which else {
        let newest = branch.compactions.iter().rev().map(|&place| branch.path[place]);
        for index in newest {
            if transcript.compacted_by(index)? == CompactionAuthor::Ctx {
                return not_archived(transcript, path, index);
            }
        }
        return Ok(None);
    };
    let found = transcript.index_of(which).filter(|index| branch.path.binary_search(index).is_ok());
    let index = found.ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "unknown entry on the branch to the session's leaf")
            .with("entry", which)
            .with("path", path.display())
            .hint("specify one of the session's compactions, or an undo of one")
    })?;
    match transcript.entries.get(index).and_then(|entry| entry.detail.as_deref()) {
        Some(Detail::Compaction { .. }) if !branch.undone.contains_key(&index) => {
            return not_archived(transcript, path, index);
        }
        Some(Detail::Compaction { .. } | Detail::Undo { .. }) => {}
        _ => {
            return Err(Error::new(ErrorKind::InvalidInput, "not a compaction")
                .with("entry", which)
                .with("path", path.display())
                .hint("specify one of the session's compactions, or an undo of one"));
        }
    }
    Ok(Some(index).filter(|index| !branch.undone.contains_key(index)))
}

/// Fails if the compaction's messages were removed from the session: undoing it would leave a
/// context that never existed.
fn not_archived(transcript: &Transcript, path: &Path, index: usize) -> Result<Option<usize>> {
    let Some(archived) = transcript.compaction_extra(index)?.archived else {
        return Ok(Some(index));
    };
    Err(Error::new(
        ErrorKind::InvalidInput,
        "cannot undo the compaction: its messages were archived",
    )
    .with("path", path.display())
    .with("archived in", &archived)
    .hint(format!("continue from {archived}, which contains the original session")))
}
