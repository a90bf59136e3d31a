//! Summaries that clients ask their own model for.
//!
//! ```text
//! request for a summary -> the client's model -> its summary, remembered
//!     a later request that has it -> audited once -> what it lost, put back after it
//! request for a summary -> ctx, if `server.clientCompaction` says so -> answered in its form
//! ```

mod written;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use ctx_core::{Block, ContextView, Entry, EntryId, Message, Result, Role, Tokens};
use ctx_dialect::wire::{OutgoingUnit, Protocol, Request, SummaryRequest, answer_text};
use ctx_layers::compaction::{ClientSummary, History};
use ctx_session::clock;
use tokio::sync::OnceCell;

use super::Proxy;
use super::client_request::ClientRequest;
use super::config::ClientCompaction;
use super::fingerprint::Fingerprint;
use super::prepare::{MOST_OBJECTS, has_more_objects};
use super::summary_record::record_compaction;
use crate::hosted::{HostedSession, UnitDigest, digest};
use crate::trace::CompactionRecord;

pub(super) use written::{answer, summarise, summarise_quoted};

/// Maximum number of remembered summaries.
const MOST: usize = 256;

/// Maximum size of an answer with a summary, as streamed, and of the summary, in bytes.
const MOST_STREAMED: usize = 16 << 20;
const MOST_BYTES: usize = 256 << 10;

/// Maximum number of messages whose summary is remembered.
const MOST_BOUND: usize = 4_096;

/// Shorter summaries are not looked for in messages: they may stand there by chance.
const LEAST_CHARS: usize = 40;

/// Maximum number of messages at the beginning of a request among which a summary is searched.
const FIRST_MESSAGES: usize = 8;

/// Maximum size of what is put back.
const LOST_TOKENS: Tokens = Tokens(600);

/// The first line of what is put back.
const NOTE: &str = "[ctx: the summary of the earlier conversation left this out]";

/// The newest message of a history that is summarised as a whole.
const ASK: &str = "Summarise the conversation.";

/// The summaries of clients.
#[derive(Debug, Default)]
pub(super) struct ClientSummaries {
    all: Mutex<VecDeque<Arc<Remembered>>>,
    /// Which summary stands in a message, by its owner, its text, and the message with those after it:
    /// several conversations may have summaries with the same text.
    bound: Mutex<HashMap<(blake3::Hash, UnitDigest), Arc<Remembered>>>,
}

/// A summary that a client's model wrote.
#[derive(Debug)]
struct Remembered {
    owner: blake3::Hash,
    text: String,
    /// The text by which it is found.
    normalised: String,
    /// The id of the conversation that it is of.
    conversation: String,
    /// Whether the conversation ends in the text that asked for it.
    is_asked_there: bool,
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
    owner: blake3::Hash,
    conversation: Option<String>,
    answer: Vec<u8>,
}

impl Remembered {
    fn new(owner: blake3::Hash, text: &str, conversation: &str) -> Self {
        Self {
            owner,
            text: text.trim().to_owned(),
            normalised: normalised(text),
            conversation: conversation.to_owned(),
            is_asked_there: false,
            lost: OnceCell::new(),
            record: Mutex::default(),
        }
    }

    /// Returns it as a compaction summary of its conversation, if that is in memory.
    fn entry(&self, proxy: &Proxy, id: &EntryId, earlier: &[Arc<Self>]) -> Result<Entry> {
        let lost = self.lost.get().and_then(Option::as_deref).unwrap_or_default();
        let text = format!("{}\n\n{lost}", self.text);
        let summary = Message::text(Role::CompactionSummary, text.trim_end());
        let entry = Entry::in_memory(id.clone(), summary);
        let Some(conversation) = proxy.conversations.in_memory(&self.conversation) else {
            return Ok(entry);
        };
        // A conversation in use may be the one that asks.
        let Ok(state) = conversation.state.try_lock() else { return Ok(entry) };
        let Some(session) = &state.session else { return Ok(entry) };
        let view = whole_view(proxy, session, earlier)?;
        let mut covered = Vec::new();
        for node in view.nodes().iter().filter(|node| node.is_live()) {
            let entry = node.entry();
            // The ids are those of another conversation.
            let id = format!("{}:{}", conversation.id, entry.id());
            let other = Entry::in_memory(id, entry.message()?);
            covered.push(Arc::new(other.covering(entry.originals())));
        }
        if self.is_asked_there {
            covered.pop();
        }
        Ok(entry.covering(covered))
    }

    /// Sets the record, and returns the previous one.
    fn set_record(&self, record: Option<CompactionRecord>) -> Option<CompactionRecord> {
        let mut own = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut own, record)
    }
}

impl AskedSummary {
    /// Returns the request of a client for a summary, to be answered by its model.
    pub(super) fn of(
        proxy: &Proxy,
        client_request: &ClientRequest,
        request: SummaryRequest,
    ) -> Option<Self> {
        let conversation = match request.is_quoted() {
            true => Some(named_conversation(proxy, client_request)?),
            false => None,
        };
        let (owner, protocol) = (owner(client_request), client_request.protocol());
        Some(Self { request, protocol, owner, conversation, answer: Vec::new() })
    }

    /// Keeps a piece of the answer, up to [`MOST_STREAMED`]. An incomplete answer is not used.
    pub(super) fn push(&mut self, piece: &[u8]) {
        if self.answer.len() <= MOST_STREAMED {
            self.answer.extend_from_slice(piece);
        }
    }

    /// Remembers the summary in the answer. `conversation` is that of the request.
    pub(super) fn end(self, proxy: &Proxy, conversation: &str) {
        let answer = answer_text(self.protocol, &self.answer);
        let text = self.request.summary(&answer).filter(|text| text.len() <= MOST_BYTES);
        let Some(text) = text.filter(|_| self.answer.len() <= MOST_STREAMED) else { return };
        let of = self.conversation.as_deref().unwrap_or(conversation);
        let is_asked_there = self.conversation.is_none();
        let summary = Remembered::new(self.owner, text, of);
        proxy.client_summaries.add(Remembered { is_asked_there, ..summary });
    }
}

impl ClientSummaries {
    fn add(&self, summary: Remembered) {
        if summary.normalised.chars().nth(LEAST_CHARS - 1).is_none() {
            return;
        }
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back(Arc::new(summary));
        if all.len() > MOST {
            all.pop_front();
        }
    }

    /// Remembers a summary of ctx.
    pub(super) fn add_own(
        &self,
        client_request: &ClientRequest,
        conversation: &str,
        text: &str,
        record: Option<CompactionRecord>,
    ) {
        let (lost, record) = (OnceCell::new_with(Some(None)), Mutex::new(record));
        let summary = Remembered::new(owner(client_request), text, conversation);
        self.add(Remembered { lost, record, ..summary });
    }

    /// Returns the summary that stands in these messages, as at their first use.
    fn bound(
        &self,
        owner: blake3::Hash,
        messages: &[&str],
        newest: &Arc<Remembered>,
    ) -> Arc<Remembered> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if bound.len() > MOST_BOUND {
            bound.clear();
        }
        let key = (owner, digest(messages.concat() + &newest.normalised));
        let known = bound.entry(key).or_insert_with(|| newest.clone());
        known.clone()
    }

    /// Returns the summaries of an owner, newest first.
    fn of(&self, owner: blake3::Hash) -> Vec<Arc<Remembered>> {
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
    let owner = owner(client_request);
    let known = proxy.client_summaries.of(owner);
    let text = std::str::from_utf8(body).ok()?;
    if known.is_empty() || has_more_objects(text, MOST_OBJECTS) {
        return None;
    }
    let request = Request::parse(&client_request.route, text).ok()?;
    if request.is_continued {
        return None;
    }
    let first = request.units.iter().take(FIRST_MESSAGES).map(|unit| unit.read()).enumerate();
    let (at, mut message, found) = first.into_iter().find_map(|(at, message)| {
        let found = summary_in(&message, &known, |_| true)?;
        Some((at, message, found))
    })?;
    // In a request for a summary, the answer before may only be repeated.
    if at + 2 == request.units.len() && SummaryRequest::of(&request).is_some() {
        return None;
    }
    let near: Vec<_> = request.units.iter().skip(at).take(3).map(|unit| unit.raw).collect();
    let summary = &proxy.client_summaries.bound(owner, &near, known.get(found)?);
    let found = known.iter().position(|one| Arc::ptr_eq(one, summary));
    let earlier = found.and_then(|at| known.get(at + 1..)).unwrap_or_default();
    let lost = summary.lost.get_or_init(|| async {
        let audited = audited(proxy, summary, earlier).await.ok().flatten()?;
        let record = record_compaction(proxy, &summary.conversation, None, &audited.compacted);
        summary.set_record(Some(record));
        Some(audited.lost).filter(|lost| !lost.is_empty())
    });
    let lost = lost.await.as_ref();
    let record = summary.set_record(None);
    let changed = lost.and_then(|lost| {
        message.blocks.push(Block::text(format!("\n\n{NOTE}\n{lost}")));
        let mut out: Vec<_> = (0..request.units.len()).map(OutgoingUnit::Unchanged).collect();
        *out.get_mut(at)? = OutgoingUnit::Message { message: &message, of: Some(at) };
        Some(Bytes::from(request.with_history(&out, None).ok()?.into_owned()))
    });
    Some((changed.unwrap_or_else(|| body.clone()), record))
}

/// Audits a summary against its conversation, if that is in memory.
async fn audited(
    proxy: &Proxy,
    summary: &Remembered,
    earlier: &[Arc<Remembered>],
) -> Result<Option<ClientSummary>> {
    let Some(conversation) = proxy.conversations.in_memory(&summary.conversation) else {
        return Ok(None);
    };
    let state = conversation.state.lock().await;
    let Some(session) = &state.session else { return Ok(None) };
    let mut view = whole_view(proxy, session, earlier)?;
    drop(state);
    if !summary.is_asked_there {
        view.append(ask())?;
    }
    let history = History::of(&view)?;
    Ok(ClientSummary::audit(history, &summary.text, LOST_TOKENS, clock::now()))
}

/// Returns the view of a session in which a message with an earlier summary of its client, of these,
/// newest first, is that summary with its conversation as originals.
fn whole_view(
    proxy: &Proxy,
    session: &HostedSession,
    earlier: &[Arc<Remembered>],
) -> Result<ContextView> {
    let copy = session.copy_of_view()?;
    let mut view = ContextView::new(session.ledger.clone());
    let mut is_found = earlier.is_empty();
    for (at, node) in copy.nodes().iter().filter(|node| node.is_live()).enumerate() {
        let mut entry = node.entry().clone();
        // Only the first summary is expanded: it has the earlier ones.
        if at < FIRST_MESSAGES && !is_found {
            // Two summaries may have the same text.
            let is_other = |summary: &Remembered| summary.conversation != session.id;
            let found = summary_in(&*entry.message()?, earlier, is_other);
            if let Some((summary, before)) =
                found.and_then(|at| Some((earlier.get(at)?, earlier.get(at + 1..)?)))
            {
                is_found = true;
                entry = Arc::new(summary.entry(proxy, entry.id(), before)?);
            }
        }
        view.append(entry)?;
    }
    Ok(view)
}

/// Returns the index of the summary that stands in a message, of those that are `wanted`.
fn summary_in(
    message: &Message,
    known: &[Arc<Remembered>],
    wanted: impl Fn(&Remembered) -> bool,
) -> Option<usize> {
    if !matches!(message.role, Role::User | Role::Assistant) {
        return None;
    }
    let text = normalised(&message.plain_text());
    known.iter().position(|summary| wanted(summary) && text.contains(&summary.normalised))
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

fn owner(client_request: &ClientRequest) -> blake3::Hash {
    blake3::hash(&client_request.owner())
}

/// Returns the id of the conversation last used in the session that the client names.
fn named_conversation(proxy: &Proxy, client_request: &ClientRequest) -> Option<String> {
    let query = client_request.query.as_deref();
    let (protocol, headers) = (client_request.protocol(), &client_request.headers);
    let group = Fingerprint::named(&proxy.salt, protocol, headers, query)?;
    proxy.conversations.last_used(&group)
}

fn ask() -> Arc<Entry> {
    Arc::new(Entry::in_memory("ctx-ask", Message::text(Role::User, ASK)))
}
