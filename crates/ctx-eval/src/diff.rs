//! What a compaction took out of the model's sight, and where it is now.

use std::sync::Arc;

use ctx_core::{Counter, Entry, EntryId, Result};
use ctx_layers::compaction::{Said, Survival, survivals};
use ctx_session::Transcript;
use ctx_session::compactions::StoredCompaction;
use serde::Serialize;

use crate::begins;

/// A compaction against the messages that it stands for.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// The compaction.
    pub compaction: EntryId,
    /// Its summary.
    pub summary: String,
    /// The messages that left the context, oldest first.
    pub removed: Vec<Removed>,
    /// What stood in them, most important first, and where it is now.
    pub facts: Vec<Survival>,
}

/// A message that left the context.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Removed {
    /// Its entry.
    pub entry: EntryId,
    /// Who speaks.
    pub role: String,
    /// Its tokens.
    pub tokens: u64,
    /// How it begins.
    pub begins: String,
}

impl Diff {
    /// The diff of a compaction with this summary, which stands for the `covered` messages, while
    /// the `kept` ones stay.
    #[must_use]
    pub fn new(
        compaction: EntryId,
        summary: String,
        covered: &[Arc<Entry>],
        kept: &[Arc<Entry>],
        counter: &Counter,
    ) -> Self {
        let facts = survivals(&said(covered), &said(kept), &summary);
        let removed = covered.iter().filter_map(|entry| {
            let message = entry.message().ok().filter(|message| message.in_model_context())?;
            Some(Removed {
                entry: entry.id().clone(),
                role: message.role.name().to_owned(),
                tokens: counter.message(&message).get(),
                begins: begins(&message),
            })
        });
        Self { compaction, summary, removed: removed.collect(), facts }
    }

    /// The diff of a compaction that is stored with a transcript.
    ///
    /// # Errors
    ///
    /// Where the transcript has no such compaction, and what reading it may give.
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

/// The messages that were kept when the compaction was made.
fn kept(transcript: &Transcript, compaction: &StoredCompaction) -> Result<Vec<Arc<Entry>>> {
    let line = transcript.line_to(Some(&compaction.id))?;
    let first = compaction.first_kept_entry_id.as_ref();
    let from = line.iter().position(|item| Some(item.entry.id()) == first);
    let kept = from.map(|from| &line[from..]).unwrap_or_default();
    Ok(kept.iter().map(|item| item.entry.clone()).collect())
}

fn said(entries: &[Arc<Entry>]) -> Vec<Said> {
    let said = entries.iter().filter_map(|entry| {
        let message = entry.message().ok().filter(|message| message.in_model_context())?;
        Some(Said { id: entry.id().clone(), message, pinned: false })
    });
    said.collect()
}
