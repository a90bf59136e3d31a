//! Compactions that the provider makes itself. ctx keeps the messages that they stand for.
//!
//! ```text
//! request -> provider -> answer with a compaction -> the history saved, the compaction audited
//! later request with the compaction -> a note after it, and the tools that search the saved history
//! ```

use std::sync::Arc;

use bytes::Bytes;
use ctx_core::{Compacted, EntryId, Message, Result, Role, TokenLedger};
use ctx_dialect::wire::{Protocol, Request, compaction_in};
use ctx_trace::CompactionRecord;
use memchr::memmem;
use tokio::sync::OwnedSemaphorePermit;

use super::Proxy;
use super::body::RequestBody;
use super::client_compaction::{RestoredItems, SavedItems, WholeBody};
use super::client_request::ClientRequest;
use super::client_summaries::SummarisedHistory;
use super::config::RetrievalBy;
use super::conversation::Conversation;
use super::prepare::with_stored;
use super::retrieval::{EXPAND, RECALL};
use super::summary_record::record_compaction;

/// The summary in the record of a compaction that only the provider can read.
const OPAQUE: &str = "[ctx: the provider's compaction is encrypted: it cannot be audited]";

/// A request whose answer may have a compaction of the provider.
pub(super) struct CompactibleRequest {
    proxy: Arc<Proxy>,
    client_request: Arc<ClientRequest>,
    body: Bytes,
    /// The reservation of the body's memory.
    _space: Arc<Vec<OwnedSemaphorePermit>>,
}

/// The messages that a provider's compaction in a request covers.
#[derive(Clone, Debug)]
pub(super) struct CompactedOriginals {
    /// The index of the unit with the compaction.
    pub(super) at: usize,
    items: Arc<RestoredItems>,
}

impl CompactibleRequest {
    /// Returns a request that asks the provider for a compaction, now or when it is long.
    pub(super) fn of(
        proxy: &Arc<Proxy>,
        client_request: &Arc<ClientRequest>,
        content: &RequestBody,
    ) -> Option<Arc<Self>> {
        if !matches!(client_request.protocol(), Protocol::Messages | Protocol::Responses) {
            return None;
        }
        let body = content.bytes.clone();
        let has = |word: &str| memmem::find(&body, word.as_bytes()).is_some();
        let asks = client_request.route.is_compaction
            || has("\"compaction_trigger\"")
            || has("\"compact_")
            || client_request.protocol() == Protocol::Responses && has("\"context_management\"");
        let (proxy, client_request) = (proxy.clone(), client_request.clone());
        asks.then(|| Arc::new(Self { proxy, client_request, body, _space: content.space() }))
    }

    /// Saves the history that a compaction covers, and audits the compaction if it can be read.
    /// Returns the record of it, if the conversation is known.
    pub(super) async fn keep(
        self: &Arc<Self>,
        content: String,
        conversation: Option<&Conversation>,
    ) -> Option<CompactionRecord> {
        let session = match conversation {
            Some(conversation) => {
                let state = conversation.state.lock().await;
                let ledger = state.session.as_ref().map(|session| session.ledger.clone());
                Some(conversation.id.clone()).zip(ledger)
            }
            None => None,
        };
        self.keeping(move |this| this.save(&content, session)).await
    }

    /// Saves the history that a compaction by ctx covers, which is audited already.
    pub(super) async fn keep_own(self: &Arc<Self>, content: String, conversation: String) {
        let save = move |this: &Self| {
            let history = this.history(&content, Some(conversation))?;
            let save = |(id, saved): (String, _)| this.proxy.originals.save_provider(&id, &saved);
            history.map(save).transpose().map(|_| None)
        };
        self.keeping(save).await;
    }

    /// Saves a history on a blocking thread. A failure is a warning.
    async fn keeping(
        self: &Arc<Self>,
        save: impl FnOnce(&Self) -> Result<Option<CompactionRecord>> + Send + 'static,
    ) -> Option<CompactionRecord> {
        let this = self.clone();
        let keeping = tokio::task::spawn_blocking(move || {
            save(&this).unwrap_or_else(|error| {
                let why = "the messages that a compaction covers are not saved";
                this.proxy.warn(&format!("{why}: {error}"));
                None
            })
        });
        keeping.await.unwrap_or_default()
    }

    fn save(
        &self,
        content: &str,
        session: Option<(String, TokenLedger)>,
    ) -> Result<Option<CompactionRecord>> {
        let (originals, protocol) = (&self.proxy.originals, self.client_request.protocol());
        let conversation = session.as_ref().map(|(conversation, _)| conversation.clone());
        let Some((id, saved)) = self.history(content, conversation)? else { return Ok(None) };
        let is_kept = self.proxy.settings.config.retrieval != RetrievalBy::Off
            && !self.client_request.route.is_bedrock;
        if is_kept {
            // Also if the audit fails, for example of a history that is too long.
            originals.save_provider(&id, &saved)?;
        }
        let Some((conversation, ledger)) = session else { return Ok(None) };
        let entries = originals.saved.with_parents(&id, saved.clone()).entries();
        let history = SummarisedHistory::new(conversation, ledger, entries);
        if protocol == Protocol::Messages {
            let audited = history.audit(&self.proxy, &[].into(), content);
            let Some((lost, record)) = audited else { return Ok(None) };
            if is_kept && !lost.is_empty() {
                originals.save_provider(&id, &SavedItems { lost: Some(lost), ..saved })?;
            }
            return Ok(Some(record));
        }
        let compacted = Compacted {
            summary: OPAQUE.to_owned(),
            first_kept_entry_id: EntryId::from("provider"),
            tokens_before: history.tokens()?,
            tokens_after: None,
            details: None,
            staying: Vec::new(),
            projections: Vec::new(),
        };
        Ok(Some(record_compaction(&self.proxy, history.conversation(), None, &compacted)))
    }

    /// Returns the id of a compaction of the request, and the history: since the last compaction
    /// whose originals are saved.
    fn history(
        &self,
        content: &str,
        session: Option<String>,
    ) -> Result<Option<(String, SavedItems)>> {
        let (originals, protocol) = (&self.proxy.originals, self.client_request.protocol());
        let owner = &self.client_request.owner();
        let body = with_stored(&self.proxy, &self.client_request, self.body.clone())?;
        let text = String::from_utf8_lossy(&body);
        let Some(mut saved) = WholeBody::of(originals, protocol, &text, owner, true).to_save else {
            return Ok(None);
        };
        let known = saved.items.iter().enumerate().rev().find_map(|(at, item)| {
            let id = originals.provider_id(protocol, &compaction_in(protocol, item.get())?, owner);
            originals.has(&id).then_some((at, id))
        });
        if let Some((at, id)) = known {
            saved.items.drain(..at);
            saved.parent = Some(id);
        }
        if protocol == Protocol::Responses {
            saved.items.retain(|item| compaction_in(protocol, item.get()).is_none());
        }
        saved.session = session;
        Ok(Some((originals.provider_id(protocol, content, owner), saved)))
    }
}

impl CompactedOriginals {
    /// Returns the originals of the last compaction in a request, if ctx saw it made for this client.
    pub(super) fn of(
        proxy: &Proxy,
        client_request: &ClientRequest,
        request: &Request<'_>,
    ) -> Option<Self> {
        let protocol = request.protocol;
        let units = request.units.iter().enumerate().rev();
        let (at, content) = units.filter_map(|(at, unit)| Some((at, unit.compaction()?))).next()?;
        let id = proxy.originals.provider_id(protocol, &content, &client_request.owner());
        Some(Self { at, items: proxy.originals.restore_provider(&id)? })
    }

    /// Returns them with their ids, oldest first.
    pub(super) fn messages(&self) -> impl Iterator<Item = (String, Message)> {
        self.items.messages()
    }

    /// Returns the message that tells the model of them, with what the compaction lost, after it.
    pub(super) fn note(&self) -> Message {
        let mut note = format!(
            "[ctx: the earlier messages of this conversation were compacted; {RECALL} finds them by \
             their words, and {EXPAND} with their id returns all of one]"
        );
        if let Some(lost) = &self.items.lost {
            note.extend(["\n\n", lost]);
        }
        Message::text(Role::User, note)
    }
}

/// Whether a body may have a compaction, whose originals have to be read.
pub(super) fn may_be_in(body: &[u8]) -> bool {
    memmem::find(body, b"compaction").is_some()
}
