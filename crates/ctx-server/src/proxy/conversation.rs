//! A proxied conversation.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use ctx_core::{EntryId, Result, Tokens};
use ctx_hosted::{AssembledRequest, HostedSession, UnitDigest, UnitSource};
use ctx_layers::compaction;
use ctx_trace::{Preview, Record};
use foldhash::quality::RandomState;

use super::background::BackgroundCompaction;
use super::cache_break::CachedRequest;
use super::config::RetrievalBy;
use super::cut_store::CutStore;
use super::learned_window::LearnedWindow;
use super::retrieval::{AnsweredCalls, PostponedCalls};
use super::store::{SavedConversation, StoredLine, StoredMessage};
use super::summary_models::SummaryModelSlot;
use super::units::KnownMessage;

/// A conversation. Its requests are prepared one at a time, without waiting for pending answers.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) id: String,
    /// The hash of the client's key, since a request of this server.
    pub(super) key: OnceLock<String>,
    /// The hash of the history of its first request; `None` for a conversation from disk.
    first: Option<UnitDigest>,
    /// Its messages, used to match requests.
    known: Mutex<Vec<KnownMessage>>,
    /// The provider's count since the last prepared request, and the estimate for the same request.
    reported: Mutex<Option<(u64, u64)>>,
    /// The last answered request, which the provider may have cached.
    cached: Mutex<Option<Arc<CachedRequest>>>,
    /// Whether a request was answered after a refusal, in its smaller form, since the last check.
    recovered: AtomicBool,
    /// Whether the last request had ctx's tools.
    retrieves: AtomicBool,
    /// Calls of ctx's tools that came with calls of the client's tools.
    pub(super) postponed: PostponedCalls,
    pub(super) background: Arc<BackgroundCompaction>,
    /// The size of the last request body; the memory use is proportional to it.
    bytes: AtomicUsize,
    /// The number of its lines in the store, as far as this server knows them.
    lines: AtomicU64,
    /// The time of the last use, on a clock that counts uses.
    used: AtomicU64,
    pub(super) state: tokio::sync::Mutex<ConversationState>,
}

/// The state for preparing requests.
#[derive(Default)]
pub(super) struct ConversationState {
    pub(super) session: Option<HostedSession>,
    /// The settings of compactions in the background, if they are made there.
    pub(super) compaction: Option<compaction::Config>,
    /// The state from a file or another conversation, until the session is open.
    pub(super) saved: SavedConversation,
    /// The number of the next request.
    pub(super) number: u64,
    pub(super) summaries: SummaryModelSlot,
    /// The sizes of system prompt and tools.
    fixed: HashMap<&'static str, (UnitDigest, Tokens)>,
    pub(super) begins: HashMap<EntryId, Preview, RandomState>,
    pub(super) model: Option<String>,
    pub(super) learned: LearnedWindow,
    /// The window reported by the server, and the number of queries.
    pub(super) reported_window: Option<Tokens>,
    pub(super) window_queries: u32,
    stored_compaction: Option<EntryId>,
    stored_report: Option<(u64, u64)>,
    /// Messages missing from the file: the first index, and the number of messages in the file.
    unstored: Option<(usize, usize)>,
    /// Whether the file is incomplete, so that everything must be written again.
    is_incomplete: bool,
}

ctx_core::partial_debug!(ConversationState, it, number = it.number);

impl Conversation {
    /// Creates a conversation from saved state, which is empty for a new one.
    pub(super) fn new(id: String, mut saved: SavedConversation, number: u64) -> Self {
        let state = ConversationState {
            number,
            stored_compaction: saved.in_force.as_ref().map(|kept| kept.first_kept.clone()),
            stored_report: saved.reported,
            ..ConversationState::default()
        };
        Self {
            id,
            key: OnceLock::new(),
            first: None,
            known: Mutex::new(saved.known.clone()),
            reported: Mutex::new(None),
            cached: Mutex::new(None),
            recovered: AtomicBool::new(false),
            retrieves: AtomicBool::new(false),
            postponed: PostponedCalls::new(std::mem::take(&mut saved.postponed)),
            background: Arc::default(),
            bytes: AtomicUsize::new(0),
            lines: AtomicU64::new(saved.lines),
            used: AtomicU64::new(0),
            state: tokio::sync::Mutex::new(ConversationState { saved, ..state }),
        }
    }

    /// Returns it with the hash of its first request.
    pub(super) fn with_first(self, first: UnitDigest) -> Self {
        Self { first: Some(first), ..self }
    }

    /// Whether its first request has this hash, and is not prepared yet.
    pub(super) fn waits_for(&self, first: UnitDigest) -> bool {
        self.first == Some(first) && self.known().is_empty()
    }

    /// Returns its messages.
    pub(super) fn known(&self) -> MutexGuard<'_, Vec<KnownMessage>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the provider's count; the next request uses it.
    pub(super) fn report(&self, counted: u64, estimated: u64) {
        *self.reported.lock().unwrap_or_else(PoisonError::into_inner) = Some((counted, estimated));
    }

    pub(super) fn take_report(&self) -> Option<(u64, u64)> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Records an answered request.
    pub(super) fn answered(&self, request: Arc<CachedRequest>) {
        *self.cached.lock().unwrap_or_else(PoisonError::into_inner) = Some(request);
    }

    pub(super) fn cached(&self) -> Option<Arc<CachedRequest>> {
        self.cached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Whether the next request may have ctx's tools: they are added where the cache breaks anyway.
    pub(super) fn may_retrieve(&self, by: RetrievalBy, next: &Record) -> bool {
        by == RetrievalBy::Tool
            || self.retrieves.load(Ordering::Relaxed)
            || self.cached().is_none()
            || next.prefix_break.is_some()
    }

    pub(super) fn set_retrieves(&self, retrieves: bool) {
        self.retrieves.store(retrieves, Ordering::Relaxed);
    }

    /// Records that a smaller form was accepted.
    pub(super) fn recovered(&self) {
        self.recovered.store(true, Ordering::Relaxed);
    }

    pub(super) fn take_recovered(&self) -> bool {
        self.recovered.swap(false, Ordering::Relaxed)
    }

    pub(super) fn touch(&self, clock: u64) {
        self.used.store(clock, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    pub(super) fn set_bytes(&self, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether its cuts are stored.
    pub(super) fn is_stored(&self) -> bool {
        self.lines() > 0
    }

    /// Returns the number of its lines in the store, as far as this server knows them.
    pub(super) fn lines(&self) -> u64 {
        self.lines.load(Ordering::Relaxed)
    }

    /// Returns the approximate memory use: the parsed messages, and the data derived from them.
    pub(super) fn weight(&self) -> usize {
        const OF_ONE: usize = 64 << 10;
        OF_ONE + 2 * self.bytes.load(Ordering::Relaxed)
    }

    /// Updates the list of messages by which the conversation is found.
    pub(super) fn update_known(&self, state: &mut ConversationState) {
        let Some(session) = &state.session else { return };
        let now: Vec<KnownMessage> = session.history.items().iter().filter_map(known).collect();
        let mut before = self.known();
        let same = before.iter().zip(&now);
        let from = same.take_while(|(a, b)| (&a.id, a.hash) == (&b.id, b.hash)).count();
        let (earlier, had) = state.unstored.unwrap_or((from, before.len()));
        state.unstored = Some((from.min(earlier), had));
        *before = now;
    }

    /// Saves the changes of a request, if anything was cut.
    ///
    /// # Errors
    ///
    /// Those of [`CutStore::append`]. Everything is written again with the next change.
    pub(super) async fn save(
        &self,
        state: &mut ConversationState,
        assembled: &AssembledRequest,
        store: Option<&CutStore>,
    ) -> Result<()> {
        let (from, had) = state.unstored.take().unwrap_or_default();
        let Some(store) = store else { return Ok(()) };
        let mut lines = state.lines(self.is_stored(), &self.known(), from, had, assembled);
        if lines.is_empty() {
            return Ok(());
        }
        if !self.is_stored() || state.is_incomplete {
            let postponed = self.postponed.all().into_iter();
            lines.extend(
                postponed.map(|(beside, answered)| StoredLine::Postponed(beside, answered)),
            );
        }
        state.is_incomplete = true;
        if let Some(lines) = store.append(&self.id, self.lines(), lines).await? {
            self.lines.store(lines, Ordering::Relaxed);
            state.is_incomplete = false;
        }
        Ok(())
    }

    /// Saves postponed calls. They fit after what other replicas have saved meanwhile; the next
    /// request reads that.
    ///
    /// # Errors
    ///
    /// Those of [`CutStore::append_anywhere`].
    pub(super) async fn save_postponed(
        &self,
        store: &CutStore,
        beside: String,
        answered: AnsweredCalls,
    ) -> Result<()> {
        let mut state = self.state.lock().await;
        let mut lines = Vec::new();
        if !self.is_stored() {
            let items = self.known().iter().map(StoredMessage::of).collect();
            lines.push(StoredLine::Messages { from: 0, items });
        }
        lines.push(StoredLine::Postponed(beside, answered));
        let after = self.lines() + lines.len() as u64;
        if state.append_anywhere(&self.id, store, lines).await? {
            self.lines.store(after, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl ConversationState {
    /// Returns the size of a text that every request contains. It is cached, as it rarely changes.
    pub(super) fn size_of(
        &mut self,
        name: &'static str,
        text: Option<&str>,
        count: impl Fn(&str) -> Tokens,
    ) -> Tokens {
        let Some(text) = text.filter(|text| !text.is_empty()) else { return Tokens::ZERO };
        let digest = ctx_hosted::digest(text);
        match self.fixed.get(name) {
            Some((known, tokens)) if *known == digest => *tokens,
            _ => {
                let tokens = count(text);
                self.fixed.insert(name, (digest, tokens));
                tokens
            }
        }
    }

    /// Returns the initial state for a similar conversation, or for this one when it is reopened.
    pub(super) fn inherit(&self) -> SavedConversation {
        match &self.session {
            Some(session) => SavedConversation {
                projections: session.projections.values().cloned().collect(),
                in_force: session.in_force.clone(),
                reported: session.reported,
                next_id: session.history.next_id(),
                ..SavedConversation::default()
            },
            None => SavedConversation { known: Vec::new(), lines: 0, ..self.saved.clone() },
        }
    }

    /// Saves that no compaction is in force any more.
    ///
    /// # Errors
    ///
    /// Those of [`CutStore::append_anywhere`].
    pub(super) async fn save_undone(&mut self, id: &str, store: &CutStore) -> Result<()> {
        self.stored_compaction = None;
        self.append_anywhere(id, store, vec![StoredLine::Compaction(None)]).await.map(drop)
    }

    /// Appends lines that fit anywhere, and returns whether they are stored. If they are not,
    /// everything is written again with the next change.
    async fn append_anywhere(
        &mut self,
        id: &str,
        store: &CutStore,
        lines: Vec<StoredLine>,
    ) -> Result<bool> {
        let stored = store.append_anywhere(id, lines).await;
        self.is_incomplete |= !matches!(stored, Ok(true));
        stored
    }

    /// Returns the lines to write for a request.
    fn lines(
        &mut self,
        is_stored: bool,
        now: &[KnownMessage],
        from: usize,
        before: usize,
        assembled: &AssembledRequest,
    ) -> Vec<StoredLine> {
        let mut lines = Vec::new();
        let Some(session) = &self.session else { return lines };
        if !is_stored && session.projections.is_empty() && session.in_force.is_none() {
            return lines;
        }
        let is_continued = is_stored && !self.is_incomplete;
        let from = if is_continued { from } else { 0 };
        if from < now.len() || from < before {
            let items = now[from..].iter().map(StoredMessage::of).collect();
            lines.push(StoredLine::Messages { from, items });
        }
        let boxed = |form: &ctx_core::Projection| StoredLine::Projection(Box::new(form.clone()));
        match is_continued {
            true => lines.extend(assembled.projections.iter().map(boxed)),
            false => lines.extend(session.projections.values().map(boxed)),
        }
        let in_force = session.in_force.as_ref();
        let first_kept = in_force.map(|in_force| in_force.first_kept.clone());
        if first_kept != self.stored_compaction || self.is_incomplete {
            lines.push(StoredLine::Compaction(in_force.cloned().map(Box::new)));
            self.stored_compaction = first_kept;
        }
        // It changes with every answer, so it is written only with other lines.
        if !lines.is_empty()
            && session.reported != self.stored_report
            && let Some((reported, estimated)) = session.reported
        {
            lines.push(StoredLine::Reported(reported, estimated));
            self.stored_report = session.reported;
        }
        lines
    }
}

fn known(item: &ctx_hosted::HistoryItem) -> Option<KnownMessage> {
    let digest = match &item.source {
        UnitSource::Digest(digest) => Some(*digest),
        _ => None,
    };
    let is_instruction = item.entry.outline().ok()?.role == ctx_core::Role::System;
    Some(KnownMessage {
        id: item.entry.id().clone(),
        digest,
        hash: item.entry.hash().ok()?,
        is_instruction,
    })
}
