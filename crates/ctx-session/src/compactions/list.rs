//! Listing the compactions of a branch.

use ctx_core::text::Slice;
use std::sync::Arc;

use ctx_core::{Entry, EntryId, Error, ErrorKind, RawJson, Result, Timestamp, Tokens};
use ctx_dialect::json::Object;
use serde::Serialize;

use crate::entry::{MessageEncoding, MessagePart, TreeEntry};
use crate::schema::{CTX_FIELD, CompactionExtra};
use crate::transcript::{Branch, Transcript};

/// The author of a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CompactionAuthor {
    /// The agent that wrote the transcript.
    Agent,
    /// An extension of that agent.
    Extension,
    /// ctx: the entry is in the overlay, or has the field `ctx`.
    Ctx,
}

impl CompactionAuthor {
    /// Returns the name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Extension => "extension",
            Self::Ctx => "ctx",
        }
    }
}

/// The messages that a summary replaces: the compaction removed them from the context. Messages
/// removed by earlier compactions in force are not included.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CoveredMessages {
    /// The first message.
    pub first: Option<EntryId>,
    /// The last message.
    pub last: Option<EntryId>,
    /// The number of messages. An answer that spans several lines counts as one.
    pub messages: usize,
}

/// A compaction of a branch.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredCompaction {
    /// The id of its entry.
    pub id: EntryId,
    /// When it was stored, if the transcript records it.
    pub timestamp: Option<Timestamp>,
    /// The summary; empty if history was dropped, or replaced by messages.
    pub summary: String,
    /// The first entry that is kept as recorded; absent if nothing before the compaction is kept.
    pub first_kept_entry_id: Option<EntryId>,
    /// Tokens of the context before the compaction, if recorded.
    pub tokens_before: Option<Tokens>,
    /// Tokens of the context after the compaction, if recorded.
    pub tokens_after: Option<Tokens>,
    /// Details of the compaction method; for ctx, the receipt.
    pub details: Option<RawJson>,
    /// The author.
    pub by: CompactionAuthor,
    /// Whether it was undone on this branch.
    pub undone: bool,
    /// The entry that undid it; undoing that entry redoes the compaction.
    pub undone_by: Option<EntryId>,
    /// The messages that it replaces.
    pub covered: CoveredMessages,
    /// The archived file beside the session with these messages, if the session was rewritten.
    pub archived: Option<String>,
}

impl Transcript {
    /// Returns the compactions on the branch to `leaf`, or to the transcript's leaf, oldest first:
    /// ctx's and the agent's own, including undone ones. The summaries of a PonyBunny file are not
    /// entries, so they are not listed; [`Transcript::context`] returns them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] for an unknown entry id, and errors from reading an entry.
    pub fn compaction_list(&self, leaf: Option<&EntryId>) -> Result<Vec<StoredCompaction>> {
        let branch = Branch::of(self, self.path(leaf)?);
        let messages = BranchMessages::on(self, &branch);
        let mut found = Vec::new();
        let mut covered_to = 0;
        for (place, &index) in branch.path.iter().enumerate() {
            let Some(entry) = self.entries.get(index).filter(|entry| entry.is_compaction()) else {
                continue;
            };
            let first_kept = branch.first_kept(self, place).place;
            let undone_by = branch.undone.get(&index).and_then(|&by| self.entries.get(by));
            let mut compaction = self.stored_compaction(entry)?;
            compaction.covered = messages.covered(covered_to, first_kept);
            compaction.undone_by = undone_by.map(|entry| entry.id.clone());
            compaction.undone = undone_by.is_some();
            // The agent's own boundary entry is not a message to keep.
            let kept = branch.path.get(first_kept).filter(|_| first_kept < place);
            let kept = kept.and_then(|&kept| self.entries.get(kept));
            let names_message = entry.encoding == MessageEncoding::PiCompaction;
            let kept = kept.filter(|_| names_message).map(|entry| entry.id.clone());
            compaction.first_kept_entry_id = kept;
            if !compaction.undone {
                covered_to = first_kept;
            }
            found.push(compaction);
        }
        Ok(found)
    }

    /// Returns the messages that a compaction removed from the context, which its summary replaces.
    /// The compaction must be on the branch to `leaf`, or to the transcript's leaf.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if the compaction is not on the branch.
    pub fn covered_by(
        &self,
        compaction: &EntryId,
        leaf: Option<&EntryId>,
    ) -> Result<Vec<Arc<Entry>>> {
        let branch = Branch::of(self, self.path(leaf)?);
        let place =
            self.index_of(compaction).and_then(|index| branch.path.binary_search(&index).ok());
        let place = place.filter(|&place| {
            let entry = branch.path.get(place).and_then(|&index| self.entries.get(index));
            entry.is_some_and(TreeEntry::is_compaction)
        });
        let Some(place) = place else {
            return Err(Error::new(ErrorKind::NotFound, "unknown compaction on the branch")
                .with("compaction", compaction)
                .with("path", self.source.name())
                .hint("specify one from the session's list of compactions"));
        };
        let before = branch.compactions.iter().rev().find(|&&at| at < place);
        let from = before.map_or(0, |&at| branch.first_kept(self, at).place);
        let to = branch.first_kept(self, place).place;
        let covered = branch.path.slice(from.min(to)..to);
        let indices = covered.iter().copied().filter(|&index| self.is_conversation_message(index));
        Ok(self.items(indices).into_iter().map(|item| item.entry).collect())
    }

    /// Returns the author of the compaction at `index`.
    pub(crate) fn compacted_by(&self, index: usize) -> Result<CompactionAuthor> {
        let Some(entry) = self.entries.get(index) else { return Ok(CompactionAuthor::Agent) };
        let text = self.text(entry)?;
        Ok(made_by(entry, &Object::parse(&text).unwrap_or_default()))
    }

    /// Returns ctx's data for the compaction at `index`; empty if none is stored.
    pub(crate) fn compaction_extra(&self, index: usize) -> Result<CompactionExtra> {
        let Some(entry) = self.entries.get(index) else { return Ok(CompactionExtra::default()) };
        let text = self.text(entry)?;
        let extra = Object::parse(&text).ok().and_then(|object| CompactionExtra::of(&object));
        Ok(extra.unwrap_or_default())
    }

    /// Reads a compaction from its entry, without the fields that depend on the branch.
    fn stored_compaction(&self, entry: &TreeEntry) -> Result<StoredCompaction> {
        let text = self.text(entry)?;
        let object = Object::parse(&text).unwrap_or_default();
        let summary = match entry.encoding {
            MessageEncoding::Nothing => String::new(),
            _ => MessagePart::of(entry).parse(self.source_of(entry), &text)?.plain_text(),
        };
        let tokens = |key| object.count(key).map(Tokens::saturating_from);
        let tokens_before = match entry.encoding {
            MessageEncoding::AnthropicSummary => self.tokens_at_boundary(entry)?,
            _ => tokens("tokensBefore"),
        };
        Ok(StoredCompaction {
            id: entry.id.clone(),
            timestamp: entry.timestamp,
            summary,
            first_kept_entry_id: None,
            tokens_before,
            tokens_after: tokens("tokensAfter"),
            details: object.get("details").map(RawJson::from),
            by: made_by(entry, &object),
            undone: false,
            undone_by: None,
            covered: CoveredMessages::default(),
            archived: CompactionExtra::of(&object).and_then(|extra| extra.archived),
        })
    }

    /// Returns the tokens before a compaction, which Claude Code records on the line before the
    /// summary.
    fn tokens_at_boundary(&self, entry: &TreeEntry) -> Result<Option<Tokens>> {
        let boundary = entry.first_kept().and_then(|index| self.entries.get(index));
        let Some(boundary) = boundary else { return Ok(None) };
        let text = self.text(boundary)?;
        let object = Object::parse(&text).unwrap_or_default();
        let measured = object.object("compactMetadata").and_then(|m| m.count("preTokens"));
        Ok(measured.map(Tokens::saturating_from))
    }
}

fn made_by(entry: &TreeEntry, object: &Object<'_>) -> CompactionAuthor {
    if entry.overlay || object.object(CTX_FIELD).is_some() {
        CompactionAuthor::Ctx
    } else if object.is_true("fromHook") {
        CompactionAuthor::Extension
    } else {
        CompactionAuthor::Agent
    }
}

/// The messages of a branch.
struct BranchMessages<'t> {
    ids: Vec<&'t EntryId>,
    /// For each position on the path, the number of messages that begin before it.
    before: Vec<usize>,
}

impl<'t> BranchMessages<'t> {
    fn on(transcript: &'t Transcript, branch: &Branch) -> Self {
        let mut ids = Vec::new();
        let mut before = Vec::with_capacity(branch.path.len() + 1);
        for &index in &branch.path {
            before.push(ids.len());
            let entry = transcript.entries.get(index).filter(|entry| entry.head.is_none());
            if let Some(entry) = entry.filter(|_| transcript.is_conversation_message(index)) {
                ids.push(&entry.id);
            }
        }
        before.push(ids.len());
        Self { ids, before }
    }

    /// Returns the messages between two positions on the path; none if an overlay names them in
    /// reverse order.
    fn covered(&self, from: usize, to: usize) -> CoveredMessages {
        let count = |place: usize| self.before.get(place).copied().unwrap_or(self.ids.len());
        let ids = self.ids.slice(count(from.min(to))..count(to));
        CoveredMessages {
            first: ids.first().map(|&id| id.clone()),
            last: ids.last().map(|&id| id.clone()),
            messages: ids.len(),
        }
    }
}
