//! The messages of a branch with the compactions that ctx stored, for replays.

use ctx_core::{Compacted, EntryId, Result, Tokens};
use ctx_dialect::json::Object;

use super::list::CompactionAuthor;
use crate::schema::CompactionExtra;
use crate::transcript::{Branch, BranchMessage, Transcript};

/// One message of a branch, and the compactions that take effect right before it.
#[derive(Clone, Debug)]
pub struct ReplayMessage {
    /// The message.
    pub item: BranchMessage,
    /// The compactions with their entries, oldest first.
    pub compactions: Vec<(EntryId, Compacted)>,
}

/// Every message of a branch, with the compactions that ctx stored on it.
#[derive(Clone, Debug, Default)]
pub struct ReplayBranch {
    /// The messages, oldest first.
    pub items: Vec<ReplayMessage>,
    /// The compactions after the last message.
    pub trailing: Vec<(EntryId, Compacted)>,
}

impl Transcript {
    /// Like [`Transcript::messages_to`], with the compactions that take effect right before each
    /// message. They are the compactions that ctx stored, in the overlay or in a ctx session,
    /// without undone ones. Messages that the agent's own compactions removed are included.
    ///
    /// The first kept entry of each compaction is a message of the branch: the first kept message,
    /// or the next message after the compaction if it keeps none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`](ctx_core::ErrorKind::NotFound) for an unknown entry id, and errors
    /// from reading a compaction.
    pub fn messages_with_compactions(&self, leaf: Option<&EntryId>) -> Result<ReplayBranch> {
        let branch = Branch::of(self, self.path_of_message(leaf)?);
        let indices = branch.path.iter().copied();
        let messages = self.messages_of(indices.filter(|&i| self.is_conversation_message(i)));
        let mut stored = Vec::new();
        for &place in &branch.compactions {
            let Some(&index) = branch.path.get(place) else { continue };
            if self.compacted_by(index)? == CompactionAuthor::Ctx {
                let kept = branch.path.get(branch.first_kept(self, place).place);
                // Messages are sorted by their first entries.
                let kept = kept.map(|kept| messages.partition_point(|(first, _)| first < kept));
                let kept = kept.and_then(|at| self.entries.get(messages.get(at)?.0));
                stored.push((index, kept.map(|entry| entry.id.clone())));
            }
        }
        let mut replay = ReplayBranch::default();
        let mut stored = stored.into_iter().peekable();
        for (index, more) in messages {
            let mut compactions = Vec::new();
            while let Some((stored, kept)) = stored.next_if(|(stored, _)| *stored < index) {
                compactions.extend(self.compacted(stored, kept)?);
            }
            let Some(item) = self.item(index, more) else { continue };
            replay.items.push(ReplayMessage { item, compactions });
        }
        for (stored, kept) in stored {
            replay.trailing.extend(self.compacted(stored, kept)?);
        }
        Ok(replay)
    }

    /// Returns a stored compaction as it was passed to `store_compaction`, but with
    /// `first_kept`, if given.
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
        let extra = CompactionExtra::of(&object).unwrap_or_default();
        let compacted = Compacted {
            summary: object.owned("summary").unwrap_or_default(),
            first_kept_entry_id: first_kept.or_else(recorded).unwrap_or_default(),
            tokens_before: tokens("tokensBefore").unwrap_or_default(),
            tokens_after: tokens("tokensAfter"),
            // Details nested too deeply to parse are omitted; no receipt is that deep.
            details: object.get("details").and_then(|raw| serde_json::from_str(raw.get()).ok()),
            staying: extra.staying,
            projections: extra.projections,
        };
        Ok(Some((entry.id.clone(), compacted)))
    }
}
