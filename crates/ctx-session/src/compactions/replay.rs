//! A line of messages with the compactions that ctx stored, for replays.

use ctx_core::{Compacted, EntryId, Result, Tokens};
use ctx_dialect::json::Object;

use super::body::Mark;
use super::list::CompactedBy;
use crate::branch::Branch;
use crate::context::LineItem;
use crate::transcript::Transcript;

/// One message of a line, and the compactions that take effect right before it.
#[derive(Clone, Debug)]
pub struct ReplayItem {
    /// The message.
    pub item: LineItem,
    /// Entries of compactions and what they say, oldest first.
    pub compactions: Vec<(EntryId, Compacted)>,
}

/// Every message of a branch, with the compactions that ctx stored on it.
#[derive(Clone, Debug, Default)]
pub struct ReplayLine {
    /// The messages, oldest first.
    pub items: Vec<ReplayItem>,
    /// The compactions after the last message.
    pub trailing: Vec<(EntryId, Compacted)>,
}

impl Transcript {
    /// [`Transcript::line_to`], and with each message the compactions that take effect right before
    /// it: those that ctx stored, beside the file or in a session of ours, without undone ones. What
    /// the agent's own compactions left out is part of the line.
    ///
    /// Each names as its first kept entry a message of the line: where it keeps nothing, the one
    /// that comes next.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](ctx_core::ErrorKind::NotFound) if there is no entry of that id, and
    /// what reading a compaction may give.
    pub fn line_with_compactions(&self, leaf: Option<&EntryId>) -> Result<ReplayLine> {
        let branch = Branch::of(self, self.path_of_message(leaf)?);
        let said = branch.path.iter().copied().filter(|&index| self.is_said(index));
        let messages = self.messages_of(said);
        let mut stored = Vec::new();
        for &place in &branch.compactions {
            let Some(&index) = branch.path.get(place) else { continue };
            if self.compacted_by(index)? == CompactedBy::Ctx {
                let kept = branch.path.get(branch.first_kept(self, place).place);
                // Messages are in the order of their first entries.
                let kept = kept.map(|kept| messages.partition_point(|(first, _)| first < kept));
                let kept = kept.and_then(|at| self.entries.get(messages.get(at)?.0));
                stored.push((index, kept.map(|entry| entry.id.clone())));
            }
        }
        let mut line = ReplayLine::default();
        let mut stored = stored.into_iter().peekable();
        for (index, more) in messages {
            let mut compactions = Vec::new();
            while let Some((stored, kept)) = stored.next_if(|(stored, _)| *stored < index) {
                compactions.extend(self.compacted(stored, kept)?);
            }
            let Some(item) = self.item(index, more) else { continue };
            line.items.push(ReplayItem { item, compactions });
        }
        for (stored, kept) in stored {
            line.trailing.extend(self.compacted(stored, kept)?);
        }
        Ok(line)
    }

    /// A stored compaction as it was handed in, but for its first kept entry.
    fn compacted(
        &self,
        index: usize,
        first_kept: Option<EntryId>,
    ) -> Result<Option<(EntryId, Compacted)>> {
        let Some(entry) = self.entries.get(index) else { return Ok(None) };
        let text = self.text(entry)?;
        let object = Object::parse(&text).unwrap_or_default();
        let tokens = |key| object.count(key).map(Tokens::saturating_from);
        let recorded = || object.id("firstKeptEntryId").map(|id| EntryId::from(&*id));
        let mark = Mark::of(&object).unwrap_or_default();
        let compacted = Compacted {
            summary: object.owned("summary").unwrap_or_default(),
            first_kept_entry_id: first_kept.or_else(recorded).unwrap_or_default(),
            tokens_before: tokens("tokensBefore").unwrap_or_default(),
            tokens_after: tokens("tokensAfter"),
            // Deeper than any receipt is what cannot be a value in memory; it stays in the file.
            details: object.get("details").and_then(|raw| serde_json::from_str(raw.get()).ok()),
            staying: mark.staying,
            projections: mark.projections,
        };
        Ok(Some((entry.id.clone(), compacted)))
    }
}
