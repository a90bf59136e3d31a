//! Making the view from the file, and putting a compaction into the file.

use std::path::PathBuf;
use std::sync::Arc;

use ctx_core::{Compacted, ContextView, Entry, NodeState, Result, TokenLedger, Tokens};
use ctx_session::paths::Home;

use super::{Session, blocking};
use ctx_core::{Error, ErrorKind, Timestamp};

/// A view of the session at `path` as it stands in the file, with the forms that were sent.
pub(crate) async fn rebuilt(home: Home, path: PathBuf, ledger: TokenLedger) -> Result<ContextView> {
    blocking(move || {
        let transcript = ctx_session::open(&home, &path)?;
        let forms = transcript.sent_forms(None)?;
        let entries = transcript.context(None)?.entries;
        let held = held(&entries, &ledger)?;
        let mut view = ContextView::new(ledger).with_projections(forms);
        for entry in held {
            view.append(entry)?;
        }
        Ok(view)
    })
    .await
}

/// The entries with their messages in memory, as every request asks for all of them; but no more
/// than two windows of them, from the newest on: a session may be of any size.
fn held(entries: &[Arc<Entry>], ledger: &TokenLedger) -> Result<Vec<Arc<Entry>>> {
    let most = ledger.window() + ledger.window();
    let mut sum = Tokens::ZERO;
    let mut held = Vec::with_capacity(entries.len());
    for entry in entries.iter().rev() {
        if entry.is_held() || sum > most {
            held.push(entry.clone());
            continue;
        }
        let mut message = (*entry.message()?).clone();
        if message.meta.timestamp.is_none() {
            message.meta.timestamp = entry.timestamp();
        }
        sum += ledger.counter().message(&message);
        held.push(Arc::new(Entry::held(entry.id().clone(), message)));
    }
    held.reverse();
    Ok(held)
}

/// The messages that a compaction may take out.
pub(crate) struct Leaving(Vec<(Arc<Entry>, bool)>);

impl Leaving {
    /// What is in the request now.
    pub(crate) fn of(view: &ContextView) -> Self {
        let nodes = view.left_out().iter().chain(view.nodes());
        let is_stored = |node: &ctx_core::Node| {
            node.state() != NodeState::Inserted && node.source_tokens() > Tokens::ZERO
        };
        Self(nodes.map(|node| (node.entry().clone(), is_stored(node))).collect())
    }

    /// Those that a compaction takes out. Names as the first kept entry one that is in the file: an
    /// engine may keep from a message on that is its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Contract`] if there is none.
    fn taken(&self, compacted: &mut Compacted) -> Result<Vec<Arc<Entry>>> {
        let first = &compacted.first_kept_entry_id;
        let at = self.0.iter().position(|(entry, _)| entry.id() == first);
        let kept = at.and_then(|at| self.0[at..].iter().position(|(_, stored)| *stored));
        let (Some(at), Some(kept)) = (at, kept) else {
            return Err(Error::new(
                ErrorKind::Contract,
                "a compaction keeps from an unknown entry on",
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
    /// The view, made from the file if there is none.
    pub(crate) async fn take_view(&mut self, home: &Home) -> Result<ContextView> {
        if let Some(view) = self.view.take() {
            return Ok(view);
        }
        let setting = self.setting()?;
        let view = rebuilt(home.clone(), self.path.clone(), setting.ledger.clone()).await?;
        // Forms that were sent before are no new doings of anybody.
        self.counted = view.edits().len();
        Ok(view)
    }

    /// Stores a compaction: in the file, durably, and what it takes out in the archive. The view is
    /// made anew for the next request.
    pub(crate) async fn store(
        &mut self,
        mut compacted: Compacted,
        leaving: &Leaving,
        now: Timestamp,
    ) -> Result<()> {
        if compacted.summary.trim().is_empty() {
            return Err(Error::new(ErrorKind::Contract, "a compaction without a summary")
                .hint("the engine must say what stands for the messages that it takes out"));
        }
        let taken = leaving.taken(&mut compacted)?;
        self.view = None;
        self.log().append_compaction(&compacted, now)?;
        self.compactions += 1;
        self.commit().await?;
        self.archive(&taken).await;
        Ok(())
    }

    /// Puts messages into the archive, and what whoever had the session before may have been kept from
    /// archiving. What is in the archive already stays as it is.
    pub(super) async fn archive(&mut self, taken: &[Arc<Entry>]) {
        let late = std::mem::take(&mut self.to_archive);
        let Some(setting) = &mut self.setting else { return };
        for taken in [&*late, taken].into_iter().filter(|taken| !taken.is_empty()) {
            setting.memory.archive_compacted(taken).await;
        }
    }
}
