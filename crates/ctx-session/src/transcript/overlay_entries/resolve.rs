//! Checking the references of an overlay's entries.

use std::collections::HashMap;

use ctx_core::{ContentHash, EntryId};

use super::attach::Ids;
use super::lines::{OverlayEffect, note};
use crate::entry::{Audience, Detail, EntryKind, MessageEncoding};
use crate::read::{ProblemKind, Problems, shorten_id};
use crate::schema::Forgotten;
use crate::transcript::{Ancestry, Transcript};

/// Resolves the effects of overlay entries, given with the index and the line of each entry.
pub(super) fn resolve(
    transcript: &mut Transcript,
    ids: &Ids,
    effect: Vec<(u32, u64, OverlayEffect)>,
    problems: &mut Problems,
) {
    let compactions =
        effect.iter().any(|(.., effect)| matches!(effect, OverlayEffect::Compaction { .. }));
    let mut check = Check {
        ancestry: compactions.then(|| Ancestry::of(transcript)),
        transcript,
        ids,
        hashes: HashMap::new(),
    };
    let mut details = Vec::with_capacity(effect.len());
    let mut forgotten = Vec::new();
    for (index, line, effect) in effect {
        let detail = match effect {
            OverlayEffect::Compaction { first_kept, hash } => {
                check.compaction(index, line, first_kept.as_ref(), hash, problems)
            }
            OverlayEffect::Undo { target } => check.undo(index, line, &target, problems),
            OverlayEffect::Edit { target } => {
                Some(Detail::Edit { target: check.before(index, &target) })
            }
            OverlayEffect::Forgets(entries) => {
                forgotten.extend(entries);
                None
            }
            OverlayEffect::Nothing => None,
        };
        details.push((index, detail));
    }
    for (index, detail) in details {
        if let Some(entry) = transcript.entries.get_mut(index as usize) {
            entry.detail = detail.map(Box::new);
        }
    }
    // Last, because the first kept entry of a compaction may be forgotten.
    transcript.forget(&forgotten);
}

struct Check<'t> {
    transcript: &'t Transcript,
    ids: &'t Ids,
    ancestry: Option<Ancestry>,
    /// Content hashes of first kept entries.
    hashes: HashMap<u32, Option<ContentHash>>,
}

impl Check<'_> {
    /// Resolves a compaction. If it was stored with the hash of its first kept entry, and that
    /// entry is now missing, the file was rewritten and the compaction is ignored: its summary
    /// would not match the messages that it hides.
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
            let what = "the file was rewritten since this compaction: skipped";
            note(problems, line, what);
            return None;
        }
        if found.is_none() {
            let entry = self.transcript.entries.get(index as usize).map(|entry| entry.id.clone());
            let named = id.map_or("none", |id| shorten_id(id));
            let text = format!(
                "first kept entry {named} does not precede the compaction: nothing is kept"
            );
            problems.note_entry(0, entry, ProblemKind::BrokenCompaction, text);
        }
        let (first_kept, skip) = found.unzip();
        Some(Detail::Compaction { first_kept, skip: skip.flatten() })
    }

    /// Finds the first kept entry and, if it contains a whole history, how many of the history's
    /// messages are not kept.
    fn first_kept(&self, id: &str) -> Option<(u32, Option<u32>)> {
        if let Some(index) = self.ids.find(self.transcript, id) {
            return Some((index, None));
        }
        let (history, part) = id.rsplit_once('.')?;
        let index = self.transcript.index.get(history).copied()?;
        let entry = self.transcript.entries.get(index as usize)?;
        let part = part.parse().ok()?;
        (entry.encoding == MessageEncoding::CodexCompacted).then_some((index, Some(part)))
    }

    fn hash(&mut self, index: u32) -> Option<ContentHash> {
        let transcript = self.transcript;
        *self.hashes.entry(index).or_insert_with(|| transcript.first_line_hash(index as usize))
    }

    /// Finds the entry that the one at `index` refers to. As in a ctx session, it must be earlier.
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
            _ => note(problems, line, &format!("undo of an unknown entry {}", shorten_id(target))),
        }
        Some(Detail::Undo { target: found })
    }
}

impl Transcript {
    /// Returns the hash of an entry's own content, without the further lines of its message.
    pub(crate) fn first_line_hash(&self, index: usize) -> Option<ContentHash> {
        let entry = self.entries.get(index).filter(|e| e.encoding != MessageEncoding::Nothing)?;
        let message = crate::entry::MessagePart::of(entry).load(self.source_of(entry)).ok()?;
        Some(ContentHash::of(&message))
    }

    /// Hides forgotten messages that the file still contains: their entries then have no message.
    fn forget(&mut self, forgotten: &[Forgotten]) {
        let mut heads = Vec::new();
        for one in forgotten {
            let Some(index) = self.index_of(&one.id) else { continue };
            if one.hash.is_some_and(|hash| self.first_line_hash(index) != Some(hash)) {
                continue;
            }
            let head = self.entries.get(index).and_then(|entry| entry.head);
            heads.push(head.map_or(index, |head| head as usize));
        }
        heads.sort_unstable();
        for index in 0..self.entries.len() {
            let Some(entry) = self.entries.get_mut(index) else { continue };
            let head = entry.head.map_or(index, |head| head as usize);
            if heads.binary_search(&head).is_ok() && !entry.overlay {
                entry.encoding = MessageEncoding::Nothing;
                entry.audience = Audience::Nobody;
            }
        }
    }
}
