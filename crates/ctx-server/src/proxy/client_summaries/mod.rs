//! Summaries that clients ask their own model for.
//!
//! ```text
//! request for a summary -> the client's model -> its summary, remembered
//!     a later request that has it -> audited once -> what it lost, put back after it
//! request for a summary -> ctx, if `server.clientCompaction` says so -> answered in its form
//! ```

mod saved;
mod written;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use ctx_core::{
    Block, ContentHash, ContextView, Entry, EntryId, Message, Result, Role, TokenLedger, Tokens,
};
use ctx_dialect::wire::{OutgoingUnit, Protocol, Request, SummaryRequest, answer_text};
use ctx_layers::compaction::{ClientSummary, History};
use ctx_session::clock;
use tokio::sync::OnceCell;

use super::Proxy;
use super::client_request::ClientRequest;
use super::config::ClientCompaction;
use super::conversation::Conversation;
use super::fingerprint::Fingerprint;
use super::prepare::{MOST_OBJECTS, has_more_objects};
use super::summary_record::record_compaction;
use crate::hosted::{HostedSession, UnitDigest, digest};
use crate::trace::CompactionRecord;

use saved::SummaryFiles;
pub(super) use written::{answer, remember, summarise, summarise_quoted};

/// Maximum number of remembered summaries.
const MOST: usize = 256;

/// Maximum size of the histories of all remembered summaries, in bytes.
const MOST_HISTORIES: usize = 128 << 20;

/// Maximum size of an answer with a summary, as streamed, and of the summary, in bytes.
const MOST_STREAMED: usize = 16 << 20;
const MOST_BYTES: usize = 256 << 10;

/// Maximum number of messages whose summary is remembered.
const MOST_BOUND: usize = 4_096;

/// Shorter summaries are not looked for in messages: they may stand there by chance.
const LEAST_CHARS: usize = 40;

/// The number of messages at the beginning of a request in which a summary is searched; in later ones
/// if they have the words of a client.
const FIRST_MESSAGES: usize = 8;

/// Maximum size of what is put back.
const LOST_TOKENS: Tokens = Tokens(600);

/// The first line of what is put back.
const NOTE: &str = "[ctx: the summary of the earlier conversation left this out]";

/// The newest message of a history that is summarised as a whole.
const ASK: &str = "Summarise the conversation.";

/// The summaries of clients.
#[derive(Debug)]
pub(super) struct ClientSummaries {
    files: SummaryFiles,
    all: Mutex<VecDeque<Arc<Remembered>>>,
    /// Which summary stands in a message, by its owner, its text, and the message with those after it:
    /// several conversations may have summaries with the same text.
    bound: Mutex<HashMap<(String, UnitDigest), Arc<Remembered>>>,
}

/// The history that a summary is of, as it was when the client asked.
#[derive(Debug)]
struct SummarisedHistory {
    /// The id of its conversation.
    conversation: String,
    ledger: TokenLedger,
    /// Its messages; one with an earlier summary is that summary, with its history as originals.
    entries: Vec<Arc<Entry>>,
    /// The approximate size of its messages in bytes.
    bytes: usize,
}

/// A summary that a client's model wrote.
#[derive(Debug)]
struct Remembered {
    owner: String,
    text: String,
    /// The text by which it is found.
    normalised: String,
    /// `None` for a summary of an earlier server, which has audited it.
    history: Option<SummarisedHistory>,
    /// What it lost, after the audit.
    lost: OnceCell<Option<String>>,
    /// The record of its compaction, until it is part of a request's record.
    record: Mutex<Option<CompactionRecord>>,
}

/// A request for a summary whose answer is pending.
#[derive(Debug)]
pub(super) struct AskedSummary {
    request: SummaryRequest,
    protocol: Protocol,
    owner: String,
    history: SummarisedHistory,
    answer: Vec<u8>,
}

impl SummarisedHistory {
    /// Returns the history of a session, in which one message may have an earlier summary.
    fn of(session: &HostedSession, earlier: &[Arc<Remembered>]) -> Result<Self> {
        let copy = session.copy_of_view()?;
        let (mut entries, mut is_found) = (Vec::new(), earlier.is_empty());
        for (at, node) in copy.nodes().iter().filter(|node| node.is_live()).enumerate() {
            let mut entry = node.entry().clone();
            // The first summary has the earlier ones among its originals.
            if !is_found {
                let message = entry.message()?;
                if may_have_summary(at, &message.plain_text())
                    && let Some(summary) = summary_in(&message, earlier)
                {
                    is_found = true;
                    entry = Arc::new(summary.entry(entry.id()));
                }
            }
            entries.push(entry);
        }
        let bytes = copy.total().get().saturating_mul(4);
        Ok(Self {
            conversation: session.id.clone(),
            ledger: session.ledger.clone(),
            entries,
            bytes: usize::try_from(bytes).unwrap_or(usize::MAX),
        })
    }

    /// Returns it for a summary of all messages but those that are kept: the newest one asks for it.
    fn to_summarise(&self, kept: &HashSet<ContentHash>) -> Result<History> {
        let mut view = ContextView::new(self.ledger.clone());
        for entry in &self.entries {
            if !kept.contains(&ContentHash::of(&*entry.message()?)) {
                view.append(entry.clone())?;
            }
        }
        view.append(Arc::new(Entry::in_memory("ctx-ask", Message::text(Role::User, ASK))))?;
        History::of(&view)
    }

    /// Returns its messages as originals of a summary in another conversation, whose ids may be equal.
    fn originals(&self) -> Vec<Arc<Entry>> {
        let renamed = self.entries.iter().filter_map(|entry| {
            let id = format!("{}:{}", self.conversation, entry.id());
            let renamed = Entry::in_memory(id, entry.message().ok()?);
            Some(Arc::new(renamed.covering(entry.originals())))
        });
        renamed.collect()
    }
}

impl Remembered {
    fn new(owner: String, text: &str, history: Option<SummarisedHistory>) -> Self {
        Self {
            owner,
            text: text.trim().to_owned(),
            normalised: normalised(text),
            history,
            lost: OnceCell::new(),
            record: Mutex::default(),
        }
    }

    /// Returns it as a compaction summary of its history.
    fn entry(&self, id: &EntryId) -> Entry {
        let lost = self.lost.get().and_then(Option::as_deref).unwrap_or_default();
        let text = format!("{}\n\n{lost}", self.text);
        let summary = Message::text(Role::CompactionSummary, text.trim_end());
        let originals = self.history.as_ref().map(SummarisedHistory::originals);
        Entry::in_memory(id.clone(), summary).covering(originals.unwrap_or_default())
    }

    /// Audits it against the messages that a request no longer has. Returns what it lost, and the
    /// record of the audit.
    fn audit(&self, proxy: &Proxy, request: &Request<'_>) -> Option<(String, CompactionRecord)> {
        let history = self.history.as_ref()?;
        let kept = request.units.iter().map(|unit| ContentHash::of(&unit.read())).collect();
        let gone = history.to_summarise(&kept).ok()?;
        let audited = ClientSummary::audit(gone, &self.text, LOST_TOKENS, clock::now())?;
        let record = record_compaction(proxy, &history.conversation, None, &audited.compacted);
        Some((audited.lost, record))
    }

    /// Sets the record, and returns the previous one.
    fn set_record(&self, record: Option<CompactionRecord>) -> Option<CompactionRecord> {
        let mut own = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut own, record)
    }
}

impl AskedSummary {
    /// Returns the request of a client for a summary, to be answered by its model. `prepared` is its
    /// conversation.
    pub(super) async fn of(
        proxy: &Proxy,
        client_request: &ClientRequest,
        request: SummaryRequest,
        prepared: Option<Arc<Conversation>>,
    ) -> Option<Self> {
        let is_quoted = request.is_quoted();
        let named = || named_conversation(proxy, client_request);
        let conversation = if is_quoted { named() } else { prepared }?;
        let owner = owner(proxy, client_request);
        let state = conversation.state.lock().await;
        let earlier = proxy.client_summaries.of(&owner);
        let mut history = SummarisedHistory::of(state.session.as_ref()?, &earlier).ok()?;
        if !is_quoted {
            // The newest message asks.
            history.entries.pop();
        }
        let protocol = client_request.protocol();
        Some(Self { request, protocol, owner, history, answer: Vec::new() })
    }

    /// Keeps a piece of the answer, up to [`MOST_STREAMED`]. An incomplete answer is not used.
    pub(super) fn push(&mut self, piece: &[u8]) {
        if self.answer.len() <= MOST_STREAMED {
            self.answer.extend_from_slice(piece);
        }
    }

    /// Remembers the summary in the answer.
    pub(super) fn end(self, proxy: &Proxy) {
        let answer = answer_text(self.protocol, &self.answer);
        let text = self.request.summary(&answer).filter(|text| text.len() <= MOST_BYTES);
        let Some(text) = text.filter(|_| self.answer.len() <= MOST_STREAMED) else { return };
        proxy.client_summaries.add(Remembered::new(self.owner, text, Some(self.history)));
    }
}

impl ClientSummaries {
    /// Reads the summaries of earlier servers from a folder.
    pub(super) fn at(folder: PathBuf) -> Self {
        let files = SummaryFiles::at(folder);
        let all = files.load().into_iter().map(Arc::new).collect();
        Self { files, all: Mutex::new(all), bound: Mutex::default() }
    }

    fn add(&self, summary: Remembered) {
        if summary.normalised.chars().nth(LEAST_CHARS - 1).is_none() {
            return;
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back(Arc::new(summary));
        let bytes = |all: &VecDeque<Arc<Remembered>>| -> usize {
            all.iter().filter_map(|summary| Some(summary.history.as_ref()?.bytes)).sum()
        };
        while all.len() > MOST || all.len() > 1 && bytes(&all) > MOST_HISTORIES {
            all.pop_front();
        }
    }

    /// Remembers a summary of ctx of the whole session.
    fn add_own(
        &self,
        owner: String,
        session: &HostedSession,
        text: &str,
        record: Option<CompactionRecord>,
    ) -> Result<()> {
        let history = Some(SummarisedHistory::of(session, &self.of(&owner))?);
        let (lost, record) = (OnceCell::new_with(Some(None)), Mutex::new(record));
        self.add(Remembered { lost, record, ..Remembered::new(owner, text, history) });
        Ok(())
    }

    /// Returns the summary that stands in these messages, as at their first use.
    fn bound(&self, owner: String, messages: &[&str], newest: &Arc<Remembered>) -> Arc<Remembered> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if bound.len() > MOST_BOUND {
            bound.clear();
        }
        let key = (owner, digest(messages.concat() + &newest.normalised));
        let known = bound.entry(key).or_insert_with(|| newest.clone());
        known.clone()
    }

    /// Returns the summaries of an owner, newest first.
    fn of(&self, owner: &str) -> Vec<Arc<Remembered>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().rev().filter(|summary| summary.owner == owner).cloned().collect()
    }
}

/// Puts back what a summary in the request lost. Returns the body, and the record of the audit if it
/// is new.
pub(super) async fn put_back(
    proxy: &Proxy,
    client_request: &ClientRequest,
    body: &Bytes,
) -> Option<(Bytes, Option<CompactionRecord>)> {
    let owner = owner(proxy, client_request);
    let known = proxy.client_summaries.of(&owner);
    let text = std::str::from_utf8(body).ok()?;
    if known.is_empty() || has_more_objects(text, MOST_OBJECTS) {
        return None;
    }
    let request = Request::parse(&client_request.route, text).ok()?;
    if request.is_continued {
        return None;
    }
    let (at, message, found) = request.units.iter().enumerate().find_map(|(at, unit)| {
        let message = may_have_summary(at, unit.raw).then(|| unit.read())?;
        let found = summary_in(&message, &known)?;
        Some((at, message, found))
    })?;
    // In a request for a summary, the answer before may only be repeated.
    if at + 2 == request.units.len() && SummaryRequest::of(&request).is_some() {
        return None;
    }
    let near: Vec<_> = request.units.iter().skip(at).take(3).map(|unit| unit.raw).collect();
    let summary = &proxy.client_summaries.bound(owner, &near, found);
    let lost = summary.lost.get_or_init(|| async {
        let (lost, record) = summary.audit(proxy, &request)?;
        summary.set_record(Some(record));
        let lost = Some(lost).filter(|lost| !lost.is_empty())?;
        if let Err(error) = proxy.client_summaries.files.save(summary, &lost) {
            proxy.warn(&format!("what a summary lost is not put back after a restart: {error}"));
        }
        Some(lost)
    });
    let lost = lost.await.as_ref();
    let record = summary.set_record(None);
    let changed = lost.and_then(|lost| {
        let mut message = (*message).clone();
        message.blocks.push(Block::text(format!("\n\n{NOTE}\n{lost}")));
        let mut out: Vec<_> = (0..request.units.len()).map(OutgoingUnit::Unchanged).collect();
        *out.get_mut(at)? = OutgoingUnit::Message { message: &message, of: Some(at) };
        Some(Bytes::from(request.with_history(&out, None).ok()?.into_owned()))
    });
    Some((changed.unwrap_or_else(|| body.clone()), record))
}

/// Whether the message at this place may have a summary: one of the first, or one with the words of a
/// client.
fn may_have_summary(at: usize, text: &str) -> bool {
    at < FIRST_MESSAGES || SummaryRequest::is_kept_in(text)
}

/// Returns the summary that stands in a message, of these.
fn summary_in<'a>(message: &Message, known: &'a [Arc<Remembered>]) -> Option<&'a Arc<Remembered>> {
    if !matches!(message.role, Role::User | Role::Assistant) {
        return None;
    }
    let text = normalised(&message.plain_text());
    known.iter().find(|summary| text.contains(&summary.normalised))
}

/// Returns a text with single blanks: clients change the white space of a summary.
fn normalised(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Recognises a client's request for a summary, unless the configuration ignores them.
pub(super) fn recognised(
    proxy: &Proxy,
    client_request: &ClientRequest,
    body: &Bytes,
) -> Option<SummaryRequest> {
    if proxy.settings.config.client_compaction == ClientCompaction::Off {
        return None;
    }
    let text = std::str::from_utf8(body).ok().filter(|text| SummaryRequest::may_be(text))?;
    SummaryRequest::of(&Request::parse(&client_request.route, text).ok()?)
}

/// Returns the owner of a client's summaries, as a hash.
fn owner(proxy: &Proxy, client_request: &ClientRequest) -> String {
    proxy.salt.hash(&[b"summary", &client_request.owner()], 16)
}

/// Returns the conversation last used in the session that the client names.
fn named_conversation(proxy: &Proxy, client_request: &ClientRequest) -> Option<Arc<Conversation>> {
    let query = client_request.query.as_deref();
    let (protocol, headers) = (client_request.protocol(), &client_request.headers);
    let group = Fingerprint::named(&proxy.salt, protocol, headers, query)?;
    proxy.conversations.last_used(&group)
}
