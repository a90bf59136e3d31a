//! Builds the view from the file, and stores a compaction in the file.

use std::path::PathBuf;
use std::sync::Arc;

use ctx_core::{
    Compacted, ContextView, Entry, Error, ErrorKind, NodeState, Result, Timestamp, TokenLedger,
    Tokens,
};
use ctx_session::Home;

use super::Session;
use crate::sync::spawn_blocking;

/// Builds a view of the session at `path` from the file, with the projections that were sent.
pub(crate) async fn rebuild_view(
    home: Home,
    path: PathBuf,
    ledger: TokenLedger,
) -> Result<ContextView> {
    spawn_blocking(move || {
        let transcript = ctx_session::open(&home, &path)?;
        let forms = transcript.projections(None)?;
        let entries = transcript.context(None)?.entries;
        let entries = loaded(&entries, &ledger)?;
        let mut view = ContextView::new(ledger).with_projections(forms);
        for entry in entries {
            view.append(entry)?;
        }
        Ok(view)
    })
    .await
}

/// Loads the messages of the entries, newest first, as every request reads them. About two windows
/// of them are loaded: a session may have any size.
fn loaded(entries: &[Arc<Entry>], ledger: &TokenLedger) -> Result<Vec<Arc<Entry>>> {
    let most = ledger.window() + ledger.window();
    let mut sum = Tokens::ZERO;
    let mut held = Vec::with_capacity(entries.len());
    for entry in entries.iter().rev() {
        if entry.is_in_memory() || sum > most {
            held.push(entry.clone());
            continue;
        }
        let mut message = (*entry.message()?).clone();
        if message.meta.timestamp.is_none() {
            message.meta.timestamp = entry.timestamp();
        }
        sum += ledger.counter().message(&message);
        held.push(Arc::new(Entry::in_memory(entry.id().clone(), message)));
    }
    held.reverse();
    Ok(held)
}

/// The messages that a compaction may remove.
pub(crate) struct CompactedRange(Vec<(Arc<Entry>, bool)>);

impl CompactedRange {
    /// Lists the messages in the current request.
    pub(crate) fn of(view: &ContextView) -> Self {
        let nodes = view.dropped().iter().chain(view.nodes());
        let is_stored = |node: &ctx_core::Node| {
            node.state() != NodeState::Inserted && node.source_tokens > Tokens::ZERO
        };
        Self(nodes.map(|node| (node.entry().clone(), is_stored(node))).collect())
    }

    /// Returns the entries that a compaction removes. Sets the first kept entry to an entry of the
    /// file, as an engine may name its own message.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Contract`] if the entry is missing.
    fn removed(&self, compacted: &mut Compacted) -> Result<Vec<Arc<Entry>>> {
        let first = &compacted.first_kept_entry_id;
        let at = self.0.iter().position(|(entry, _)| entry.id() == first);
        let kept = at.and_then(|at| self.0[at..].iter().position(|(_, stored)| *stored));
        let (Some(at), Some(kept)) = (at, kept) else {
            return Err(Error::new(
                ErrorKind::Contract,
                "the first kept entry of the compaction is unknown",
            )
            .with("firstKeptEntryId", first)
            .hint("the engine must name an entry of the view that it was given"));
        };
        compacted.first_kept_entry_id = self.0[at + kept].0.id().clone();
        let stored = self.0[..at].iter().filter(|(_, stored)| *stored);
        let taken = stored.filter(|(entry, _)| !compacted.staying.contains(entry.id()));
        Ok(taken.map(|(entry, _)| entry.clone()).collect())
    }
}

impl Session {
    /// Returns the view, built from the file if missing.
    pub(crate) async fn take_view(&mut self, home: &Home) -> Result<ContextView> {
        if let Some(view) = self.view.take() {
            return Ok(view);
        }
        let setup = self.setup()?;
        let view = rebuild_view(home.clone(), self.path.clone(), setup.ledger.clone()).await?;
        // Projections sent before do not count as new edits.
        self.counted = view.edits().len();
        Ok(view)
    }

    /// Stores a compaction: durably in the file, with the removed messages in the archive. The view
    /// is rebuilt for the next request.
    pub(crate) async fn store(
        &mut self,
        mut compacted: Compacted,
        range: &CompactedRange,
        now: Timestamp,
    ) -> Result<()> {
        if compacted.summary.trim().is_empty() {
            return Err(Error::new(ErrorKind::Contract, "missing summary of a compaction")
                .hint("the engine must give a summary of the messages that it removes"));
        }
        let removed = range.removed(&mut compacted)?;
        self.view = None;
        self.log().append_compaction(&compacted, now)?;
        self.compactions += 1;
        self.commit().await?;
        self.archive(&removed).await;
        Ok(())
    }

    /// Archives messages, and those that a previous process may have failed to archive. Messages
    /// that are archived already are not changed.
    pub(super) async fn archive(&mut self, removed: &[Arc<Entry>]) {
        let late = std::mem::take(&mut self.to_archive);
        let Some(setup) = &mut self.setup else { return };
        for removed in [&*late, removed].into_iter().filter(|removed| !removed.is_empty()) {
            setup.memory.archive_compacted(removed).await;
        }
    }
}
