//! The messages and facts that a compaction removed from the context, and where the facts are now.

use std::sync::Arc;

use ctx_core::{Counter, Entry, EntryId, Result};
use ctx_facts::CitedMessage;
use ctx_layers::compaction::{TracedFact, trace_facts};
use ctx_session::{StoredCompaction, Transcript};
use serde::Serialize;

use crate::preview;

/// A compaction compared with the messages it replaces.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionDiff {
    /// The compaction.
    pub compaction: EntryId,
    /// Its summary.
    pub summary: String,
    /// The messages that left the context, oldest first.
    pub removed: Vec<RemovedMessage>,
    /// The facts in them, most important first, and where each is now.
    pub facts: Vec<TracedFact>,
}

/// A message that left the context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RemovedMessage {
    /// Its entry.
    pub entry: EntryId,
    /// Its role.
    pub role: String,
    /// Its tokens.
    pub tokens: u64,
    /// Its beginning.
    pub begins: String,
}

impl CompactionDiff {
    /// Returns the diff of a compaction with this summary, which replaces the `covered` messages
    /// and keeps the `kept` ones.
    #[must_use]
    pub fn new(
        compaction: EntryId,
        summary: String,
        covered: &[Arc<Entry>],
        kept: &[Arc<Entry>],
        counter: &Counter,
    ) -> Self {
        let facts = trace_facts(&said(covered), &said(kept), &summary);
        let removed = covered.iter().filter_map(|entry| {
            let message = entry.message().ok().filter(|message| message.in_model_context())?;
            Some(RemovedMessage {
                entry: entry.id().clone(),
                role: message.role.name().to_owned(),
                tokens: counter.message(&message).get(),
                begins: preview(&message),
            })
        });
        Self { compaction, summary, removed: removed.collect(), facts }
    }

    /// Returns the diff of a compaction stored with a transcript.
    ///
    /// # Errors
    ///
    /// If the transcript has no such compaction, or cannot be read.
    pub fn of_stored(
        transcript: &Transcript,
        compaction: &StoredCompaction,
        counter: &Counter,
    ) -> Result<Self> {
        let covered = transcript.covered_by(&compaction.id, None)?;
        let kept = kept(transcript, compaction)?;
        let (id, summary) = (compaction.id.clone(), compaction.summary.clone());
        Ok(Self::new(id, summary, &covered, &kept, counter))
    }
}

/// Returns the messages that the compaction kept.
fn kept(transcript: &Transcript, compaction: &StoredCompaction) -> Result<Vec<Arc<Entry>>> {
    let line = transcript.messages_to(Some(&compaction.id))?;
    let first = compaction.first_kept_entry_id.as_ref();
    let from = line.iter().position(|item| Some(item.entry.id()) == first);
    let kept = from.map(|from| &line[from..]).unwrap_or_default();
    Ok(kept.iter().map(|item| item.entry.clone()).collect())
}

fn said(entries: &[Arc<Entry>]) -> Vec<CitedMessage> {
    entries.iter().filter_map(|entry| CitedMessage::of(entry)).collect()
}
