//! What an overlay's entries say of others, held against what is there.

use std::collections::HashMap;

use ctx_core::{ContentHash, EntryId};

use super::hang::Ids;
use super::read::{Says, note};
use crate::builder::short;
use crate::entry::{Detail, EntryKind};
use crate::load::Recipe;
use crate::problem::{ProblemKind, Problems};
use crate::transcript::Transcript;
use crate::tree::Ancestry;

/// Fills in what the entries of an overlay mean, each given with its index and its line.
pub(super) fn settle(
    transcript: &mut Transcript,
    ids: &Ids,
    says: Vec<(u32, u64, Says)>,
    problems: &mut Problems,
) {
    let compactions = says.iter().any(|(.., says)| matches!(says, Says::Compaction { .. }));
    let mut check = Check {
        ancestry: compactions.then(|| Ancestry::of(transcript)),
        transcript,
        ids,
        hashes: HashMap::new(),
    };
    let mut details = Vec::with_capacity(says.len());
    let mut forgotten = Vec::new();
    for (index, line, says) in says {
        let detail = match says {
            Says::Compaction { first_kept, hash } => {
                check.compaction(index, line, first_kept.as_ref(), hash, problems)
            }
            Says::Undo { target } => check.undo(index, line, &target, problems),
            Says::Edit { target } => Some(Detail::Edit { target: check.before(index, &target) }),
            Says::Forgets(entries) => {
                forgotten.extend(entries);
                None
            }
            Says::Nothing => None,
        };
        details.push((index, detail));
    }
    for (index, detail) in details {
        if let Some(entry) = transcript.entries.get_mut(index as usize) {
            entry.detail = detail.map(Box::new);
        }
    }
    // Last: a compaction may keep from what was forgotten.
    transcript.forget(&forgotten);
}

struct Check<'t> {
    transcript: &'t Transcript,
    ids: &'t Ids,
    ancestry: Option<Ancestry>,
    /// Of entries that compactions keep from.
    hashes: HashMap<u32, Option<ContentHash>>,
}

impl Check<'_> {
    /// What a compaction means. Where it was stored with the hash of what it keeps from, and that
    /// is not there any more, the file is another one, and it means nothing: what it sums up is not
    /// what it would hide.
    fn compaction(
        &mut self,
        index: u32,
        line: u64,
        id: Option<&EntryId>,
        hash: Option<ContentHash>,
        problems: &mut Problems,
    ) -> Option<Detail> {
        let on_branch = |kept: u32| {
            let ancestry = self.ancestry.as_ref();
            kept != index && ancestry.is_some_and(|a| a.is_ancestor(kept as usize, index as usize))
        };
        let found = id.and_then(|id| self.first_kept(id)).filter(|(kept, _)| on_branch(*kept));
        let same = match (hash, found) {
            (None, _) => true,
            (Some(hash), Some((kept, _))) => self.hash(kept) == Some(hash),
            (Some(_), None) => false,
        };
        if !same {
            let what = "the file was rewritten since this compaction: left out";
            note(problems, line, what);
            return None;
        }
        if found.is_none() {
            let entry = self.transcript.entries.get(index as usize).map(|entry| entry.id.clone());
            let named = id.map_or("none", |id| short(id));
            let text = format!("first kept entry {named} is not before it: nothing is kept");
            problems.note_entry(0, entry, ProblemKind::BrokenCompaction, text);
        }
        let (first_kept, skip) = found.unzip();
        Some(Detail::Compaction { first_kept, skip: skip.flatten() })
    }

    /// The entry that is kept from, and how much of it is not where it holds a whole history.
    fn first_kept(&self, id: &str) -> Option<(u32, Option<u32>)> {
        if let Some(index) = self.ids.find(self.transcript, id) {
            return Some((index, None));
        }
        let (history, part) = id.rsplit_once('.')?;
        let index = self.transcript.index.get(history).copied()?;
        let entry = self.transcript.entries.get(index as usize)?;
        let part = part.parse().ok()?;
        (entry.recipe == Recipe::CodexCompacted).then_some((index, Some(part)))
    }

    fn hash(&mut self, index: u32) -> Option<ContentHash> {
        let transcript = self.transcript;
        *self.hashes.entry(index).or_insert_with(|| transcript.first_line_hash(index as usize))
    }

    /// The entry that one at `index` says something of. What comes later cannot be meant, as it
    /// cannot in a session of ours.
    fn before(&self, index: u32, target: &EntryId) -> Option<u32> {
        self.ids.find(self.transcript, target).filter(|&target| target < index)
    }

    fn undo(
        &self,
        index: u32,
        line: u64,
        target: &EntryId,
        problems: &mut Problems,
    ) -> Option<Detail> {
        let found = self.before(index, target);
        let kind = found.and_then(|index| self.transcript.entries.get(index as usize));
        match kind.map(|entry| &entry.kind) {
            Some(EntryKind::Compaction | EntryKind::Custom) => {}
            _ => note(problems, line, &format!("undoes {}, which is not there", short(target))),
        }
        Some(Detail::Undo { target: found })
    }
}

impl Transcript {
    /// The hash of what an entry holds by itself: other lines of its message may still come.
    pub(crate) fn first_line_hash(&self, index: usize) -> Option<ContentHash> {
        let entry = self.entries.get(index).filter(|e| e.recipe != Recipe::Nothing)?;
        let message = crate::load::Part::of(entry).load(self.source_of(entry)).ok()?;
        Some(ContentHash::of(&message))
    }
}
