//! The compactions of a branch, as they are stored.

use std::sync::Arc;

use ctx_core::{Entry, EntryId, Error, ErrorKind, RawJson, Result, Role, Timestamp, Tokens};
use ctx_dialect::json::Object;
use serde::Serialize;

use super::body::{MARK, Mark};
use crate::branch::Branch;
use crate::entry::TreeEntry;
use crate::load::{Part, Recipe};
use crate::log::PI_VERSION;
use crate::transcript::Transcript;

/// Who made a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum CompactedBy {
    /// The agent whose transcript it is.
    Agent,
    /// An extension of that agent.
    Extension,
    /// ctx: it stands in the overlay, or bears the mark of ctx.
    Ctx,
}

impl CompactedBy {
    /// The name, as it is written in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Extension => "extension",
            Self::Ctx => "ctx",
        }
    }
}

/// What a summary stands for: the messages that the compaction took out of the context, without
/// those that earlier compactions in force had taken out already.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Covered {
    /// The first of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first: Option<EntryId>,
    /// The last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<EntryId>,
    /// How many there are. Lines of one answer that were written one by one count as one.
    pub messages: usize,
}

/// A compaction of a branch.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StoredCompaction {
    /// Its entry.
    pub id: EntryId,
    /// When it was stored, where the transcript says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<Timestamp>,
    /// The summary; empty where history was dropped, or replaced by messages.
    pub summary: String,
    /// The first entry that is kept as it is; absent where nothing before the compaction is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_kept_entry_id: Option<EntryId>,
    /// Tokens of the context before, where recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<Tokens>,
    /// Tokens of the context after, where recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_after: Option<Tokens>,
    /// What the method has to say about itself: of ctx's own, the receipt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub details: Option<RawJson>,
    /// Who made it.
    pub by: CompactedBy,
    /// Whether it was undone on this branch.
    pub undone: bool,
    /// The entry that undid it; undoing that one brings the compaction back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undone_by: Option<EntryId>,
    /// What it stands for.
    pub covered: Covered,
    /// The file, beside the session, that holds what it stands for, where the session was rewritten.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub archived: Option<String>,
}

impl Transcript {
    /// The compactions on the branch to `leaf`, or to the transcript's leaf, oldest first: those of
    /// ctx and those of the agent itself, undone ones included. Summaries of a PonyBunny file, whose
    /// messages are gone, are no entries of their own: they are in [`Transcript::context`].
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if there is no entry of that id, and what reading an entry may give.
    pub fn compaction_list(&self, leaf: Option<&EntryId>) -> Result<Vec<StoredCompaction>> {
        let branch = Branch::of(self, self.path(leaf)?);
        let said = Said::on(self, &branch);
        let mut found = Vec::new();
        let mut covered_to = 0;
        for (place, &index) in branch.path.iter().enumerate() {
            let Some(entry) = self.entries.get(index).filter(|entry| entry.is_compaction()) else {
                continue;
            };
            let first_kept = branch.first_kept(self, place).place;
            let undone_by = branch.undone.get(&index).and_then(|&by| self.entries.get(by));
            let mut compaction = self.stored_compaction(entry)?;
            compaction.covered = said.covered(covered_to, first_kept);
            compaction.undone_by = undone_by.map(|entry| entry.id.clone());
            compaction.undone = undone_by.is_some();
            // A boundary of the agent's own is no message that would be kept.
            let kept = branch.path.get(first_kept).filter(|_| first_kept < place);
            let kept = kept.and_then(|&kept| self.entries.get(kept));
            let names_message = entry.recipe == Recipe::PiCompaction;
            let kept = kept.filter(|_| names_message).map(|entry| entry.id.clone());
            compaction.first_kept_entry_id = kept;
            if !compaction.undone {
                covered_to = first_kept;
            }
            found.push(compaction);
        }
        Ok(found)
    }

    /// The messages that a compaction on the branch to `leaf`, or to the transcript's leaf, took out
    /// of the context: the originals behind its summary.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if the branch has no such compaction.
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
            return Err(Error::new(ErrorKind::NotFound, "no such compaction on the branch")
                .with("compaction", compaction)
                .with("path", self.source.name())
                .hint("name one of those in the session's list of compactions"));
        };
        let before = branch.compactions.iter().rev().find(|&&at| at < place);
        let from = before.map_or(0, |&at| branch.first_kept(self, at).place);
        let to = branch.first_kept(self, place).place;
        let covered = branch.path.get(from..to).unwrap_or_default();
        let said = covered.iter().copied().filter(|&index| self.is_said(index));
        Ok(self.items(said).into_iter().map(|item| item.entry).collect())
    }

    /// Whether the entry is a message of the conversation that a model saw.
    pub(crate) fn is_said(&self, index: usize) -> bool {
        let role = self.entries.get(index).and_then(TreeEntry::role);
        self.is_sent(index) && role != Some(&Role::CompactionSummary)
    }

    /// Whether the file is a session of ours.
    #[must_use]
    pub fn is_ours(&self) -> bool {
        let header = self.header().raw.as_deref().and_then(|raw| Object::parse(raw).ok());
        self.header().version == Some(PI_VERSION)
            && header.is_some_and(|header| header.integer(MARK) == Some(1))
    }

    /// Who made the compaction at `index`.
    pub(crate) fn compacted_by(&self, index: usize) -> Result<CompactedBy> {
        let Some(entry) = self.entries.get(index) else { return Ok(CompactedBy::Agent) };
        let text = self.text(entry)?;
        Ok(made_by(entry, &Object::parse(&text).unwrap_or_default()))
    }

    /// The file that holds what the compaction at `index` stands for, if the session was rewritten.
    pub(crate) fn archived_by(&self, index: usize) -> Result<Option<String>> {
        let Some(entry) = self.entries.get(index) else { return Ok(None) };
        let text = self.text(entry)?;
        let mark = Object::parse(&text).ok().and_then(|object| Mark::of(&object));
        Ok(mark.and_then(|mark| mark.archived))
    }

    /// What the entry itself says.
    fn stored_compaction(&self, entry: &TreeEntry) -> Result<StoredCompaction> {
        let text = self.text(entry)?;
        let object = Object::parse(&text).unwrap_or_default();
        let summary = match entry.recipe {
            Recipe::Nothing => String::new(),
            _ => Part::of(entry).parse(self.source_of(entry), &text)?.plain_text(),
        };
        let tokens = |key| object.count(key).map(Tokens::saturating_from);
        let tokens_before = match entry.recipe {
            Recipe::AnthropicSummary => self.tokens_at_boundary(entry)?,
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
            covered: Covered::default(),
            archived: Mark::of(&object).and_then(|mark| mark.archived),
        })
    }

    /// What Claude Code measured before a compaction: it says so on the line before the summary.
    fn tokens_at_boundary(&self, entry: &TreeEntry) -> Result<Option<Tokens>> {
        let boundary = entry.first_kept().and_then(|index| self.entries.get(index));
        let Some(boundary) = boundary else { return Ok(None) };
        let text = self.text(boundary)?;
        let object = Object::parse(&text).unwrap_or_default();
        let measured = object.object("compactMetadata").and_then(|m| m.count("preTokens"));
        Ok(measured.map(Tokens::saturating_from))
    }
}

fn made_by(entry: &TreeEntry, object: &Object<'_>) -> CompactedBy {
    if entry.is_overlay() || object.object(MARK).is_some() {
        CompactedBy::Ctx
    } else if object.is_true("fromHook") {
        CompactedBy::Extension
    } else {
        CompactedBy::Agent
    }
}

/// The messages of a branch.
struct Said<'t> {
    ids: Vec<&'t EntryId>,
    /// For each place of the path, how many messages begin before it.
    before: Vec<usize>,
}

impl<'t> Said<'t> {
    fn on(transcript: &'t Transcript, branch: &Branch) -> Self {
        let mut ids = Vec::new();
        let mut before = Vec::with_capacity(branch.path.len() + 1);
        for &index in &branch.path {
            before.push(ids.len());
            let entry = transcript.entries.get(index).filter(|entry| entry.head.is_none());
            if let Some(entry) = entry.filter(|_| transcript.is_said(index)) {
                ids.push(&entry.id);
            }
        }
        before.push(ids.len());
        Self { ids, before }
    }

    fn covered(&self, from: usize, to: usize) -> Covered {
        let count = |place: usize| self.before.get(place).copied().unwrap_or(self.ids.len());
        let ids = self.ids.get(count(from)..count(to)).unwrap_or_default();
        Covered {
            first: ids.first().map(|&id| id.clone()),
            last: ids.last().map(|&id| id.clone()),
            messages: ids.len(),
        }
    }
}
