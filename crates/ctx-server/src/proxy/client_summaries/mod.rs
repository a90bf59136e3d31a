//! Summaries that clients ask their own model for.
//!
//! ```text
//! request for a summary -> the client's model -> its summary, remembered
//!     a later request that has it -> audited once -> what it lost, put back after it
//! request for a summary -> ctx, if `server.clientCompaction` says so -> answered in its form
//! ```

mod put_back;
mod quoted;
mod saved;
mod written;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use ctx_core::{ContentHash, Entry, EntryId, Message, Node, Result, Role, TokenLedger, Tokens};
use ctx_dialect::wire::{Protocol, Request, SummaryRequest, answer_text};
use ctx_hosted::{HostedSession, UnitDigest, digest};
use ctx_layers::compaction::{ClientSummary, History};
use ctx_session::clock;
use ctx_trace::CompactionRecord;
use tokio::sync::OnceCell;

use super::Proxy;
use super::client_request::ClientRequest;
use super::config::ClientCompaction;
use super::conversation::Conversation;
use super::replica::ReplicaStore;
use super::summary_record::record_compaction;

pub(super) use put_back::put_back;
use quoted::{Quote, quoted_history, quoted_text};
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
pub(super) struct SummarisedHistory {
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
    /// Returns the history of a session, in which one message may have earlier summaries. Of a quoted
    /// one, only the messages that are quoted.
    fn of(
        session: &HostedSession,
        earlier: &[Arc<Remembered>],
        quote: Option<&Quote>,
    ) -> Result<Self> {
        let view = session.copy_of_view()?;
        let all: Vec<_> = match quote {
            // Also those that ctx has compacted itself.
            Some(_) => session.history.items().iter().map(|item| &item.entry).collect(),
            None => view.nodes().iter().filter(|n| n.is_live()).map(Node::entry).collect(),
        };
        let (mut entries, mut is_found) = (Vec::new(), earlier.is_empty());
        for (at, entry) in all.into_iter().enumerate() {
            let mut entry = entry.clone();
            let message = entry.message()?;
            let mut is_quoted = quote.is_none_or(|quote| quote.has(&message));
            // The first one has the earlier ones among its originals.
            if !is_found && may_have_summary(at, &message.plain_text()) {
                let mut found = summaries_in(&message, earlier);
                is_found = !found.is_empty();
                found.retain(|summary| quote.is_none_or(|quote| quote.has_summary(summary)));
                if !found.is_empty() {
                    (entry, is_quoted) = (Arc::new(summary_entry(entry.id(), &found)), true);
                }
            }
            if is_quoted {
                entries.push(entry);
            }
        }
        let bytes = view.total().get().saturating_mul(4);
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        Ok(Self { bytes, ..Self::new(session.id.clone(), session.ledger.clone(), entries) })
    }

    /// Returns the history of a conversation with these messages, to be audited.
    pub(super) fn new(conversation: String, ledger: TokenLedger, entries: Vec<Arc<Entry>>) -> Self {
        Self { conversation, ledger, entries, bytes: 0 }
    }

    /// Returns the id of its conversation.
    pub(super) fn conversation(&self) -> &str {
        &self.conversation
    }

    /// Returns the size of its messages.
    pub(super) fn tokens(&self) -> Result<Tokens> {
        self.entries.iter().map(|entry| entry.tokens(self.ledger.counter())).sum()
    }

    /// Audits a summary of all messages but those that are kept. Returns what it lost, and the record
    /// of the audit; `None` if there is nothing to summarise.
    pub(super) fn audit(
        &self,
        proxy: &Proxy,
        kept: &HashSet<ContentHash>,
        summary: &str,
    ) -> Option<(String, CompactionRecord)> {
        let gone = self.to_summarise(kept).ok()?;
        let audited =
            ClientSummary::audit(gone, summary, ClientSummary::LOST_TOKENS, clock::now())?;
        let record = record_compaction(proxy, &self.conversation, None, &audited.compacted);
        Some((audited.lost, record))
    }

    /// Returns the history of the whole session of a client.
    pub(super) fn whole(
        proxy: &Proxy,
        client_request: &ClientRequest,
        session: &HostedSession,
    ) -> Result<Self> {
        Self::of(session, &proxy.client_summaries.of(&owner(proxy, client_request)), None)
    }

    /// Returns it for a summary of all messages but those that are kept: the newest one asks for it.
    fn to_summarise(&self, kept: &HashSet<ContentHash>) -> Result<History> {
        let mut gone = Vec::new();
        for entry in &self.entries {
            if !kept.contains(&ContentHash::of(&*entry.message()?)) {
                gone.push(entry.clone());
            }
        }
        ClientSummary::history(self.ledger.clone(), gone)
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

    /// Audits it against the messages that a request no longer has. Returns what it lost, and the
    /// record of the audit.
    fn audit(&self, proxy: &Proxy, request: &Request<'_>) -> Option<(String, CompactionRecord)> {
        let history = self.history.as_ref()?;
        let kept = request.units.iter().map(|unit| ContentHash::of(&unit.read())).collect();
        history.audit(proxy, &kept, &self.text)
    }

    /// Returns what it lost, as audited at its first use.
    async fn lost(&self, proxy: &Proxy, request: &Request<'_>) -> Option<&str> {
        let lost = self.lost.get_or_init(|| async {
            let (lost, record) = self.audit(proxy, request)?;
            self.set_record(Some(record));
            self.save(proxy, lost)
        });
        lost.await.as_deref()
    }

    /// Audits it against all messages, at once, so that each replica puts the same back.
    fn audit_whole(&mut self, proxy: &Proxy) {
        let history = self.history.as_ref();
        let audited = history.and_then(|all| all.audit(proxy, &HashSet::new(), &self.text));
        let Some((lost, record)) = audited else { return };
        self.set_record(Some(record));
        self.lost = OnceCell::new_with(Some(self.save(proxy, lost)));
    }

    /// Saves what it lost, if it lost something.
    fn save(&self, proxy: &Proxy, lost: String) -> Option<String> {
        let lost = Some(lost).filter(|lost| !lost.is_empty())?;
        if let Err(error) = proxy.client_summaries.files.save(self, &lost) {
            let what = "what a summary lost is not put back after a restart, or by other replicas";
            proxy.warn(&format!("{what}: {error}"));
        }
        Some(lost)
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
        asked: SummaryRequest,
        body: &Bytes,
        prepared: Option<Arc<Conversation>>,
    ) -> Option<Self> {
        let text = std::str::from_utf8(body).ok()?;
        let request = Request::parse(&client_request.route, text).ok()?;
        let quoted = asked.quoted(&request);
        let found = match &quoted {
            Some(quoted) => quoted_history(proxy, client_request, quoted).await,
            None => None,
        };
        let (protocol, owner) = (client_request.protocol(), owner(proxy, client_request));
        let history = match found {
            Some((_, history)) => history,
            None => {
                let conversation = prepared?;
                let state = conversation.state.lock().await;
                let session = state.session.as_ref()?;
                if let Some(quoted) = &quoted {
                    quoted_text(quoted, session, &proxy.client_summaries.of(&owner))
                } else {
                    let mut whole =
                        SummarisedHistory::whole(proxy, client_request, session).ok()?;
                    // The newest message asks.
                    whole.entries.pop();
                    whole
                }
            }
        };
        Some(Self { request: asked, protocol, owner, history, answer: Vec::new() })
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
        let mut summary = Remembered::new(self.owner, text, Some(self.history));
        if proxy.client_summaries.files.is_shared() {
            summary.audit_whole(proxy);
        }
        proxy.client_summaries.add(summary);
    }
}

impl ClientSummaries {
    /// Reads the summaries of earlier servers from a folder.
    pub(super) fn at(folder: PathBuf, replicas: Option<ReplicaStore>) -> Self {
        let files = SummaryFiles::at(folder, replicas);
        let all = files.load().into_iter().map(Arc::new).collect();
        Self { files, all: Mutex::new(all), bound: Mutex::default() }
    }

    /// Adds the summaries of an owner that other replicas saved.
    ///
    /// # Errors
    ///
    /// Those of the store.
    async fn fetch(&self, owner: &str) -> Result<()> {
        self.files.fetch(owner).await?.into_iter().for_each(|summary| self.add(summary));
        Ok(())
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

    /// Remembers a summary of ctx.
    fn add_own(
        &self,
        owner: String,
        history: SummarisedHistory,
        text: &str,
        record: Option<CompactionRecord>,
    ) {
        let (lost, record) = (OnceCell::new_with(Some(None)), Mutex::new(record));
        self.add(Remembered { lost, record, ..Remembered::new(owner, text, Some(history)) });
    }

    /// Returns the summary that stands in these messages, as at their first use.
    fn bound(&self, owner: &str, messages: &str, newest: &Arc<Remembered>) -> Arc<Remembered> {
        let mut bound = self.bound.lock().unwrap_or_else(PoisonError::into_inner);
        if bound.len() > MOST_BOUND {
            bound.clear();
        }
        let key = (owner.to_owned(), digest(messages.to_owned() + &newest.normalised));
        let known = bound.entry(key).or_insert_with(|| newest.clone());
        known.clone()
    }

    /// Returns the summaries of an owner, newest first.
    fn of(&self, owner: &str) -> Vec<Arc<Remembered>> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().rev().filter(|summary| summary.owner == owner).cloned().collect()
    }
}

/// Whether the message at this place may have a summary: one of the first, or one with the words of a
/// client.
fn may_have_summary(at: usize, text: &str) -> bool {
    at < FIRST_MESSAGES || SummaryRequest::is_kept_in(text)
}

/// Returns the summaries that stand in a message, of these, which are newest first.
fn summaries_in(message: &Message, known: &[Arc<Remembered>]) -> Vec<Arc<Remembered>> {
    if !matches!(message.role, Role::User | Role::Assistant) {
        return Vec::new();
    }
    let mut text = normalised(&message.plain_text());
    let mut stands = |summary: &&Arc<Remembered>| {
        let found = text.find(&summary.normalised);
        // The next one with the same text stands elsewhere.
        found.map(|at| text.replace_range(at..at + summary.normalised.len(), "\n")).is_some()
    };
    known.iter().filter(&mut stands).cloned().collect()
}

/// Returns summaries, newest first, as a compaction summary of their histories.
fn summary_entry(id: &EntryId, summaries: &[Arc<Remembered>]) -> Entry {
    let (mut text, mut originals) = (String::new(), Vec::new());
    for summary in summaries.iter().rev() {
        let lost = summary.lost.get().and_then(Option::as_deref).unwrap_or_default();
        text = format!("{text}{}\n\n{lost}\n\n", summary.text);
        originals.extend(summary.history.iter().flat_map(SummarisedHistory::originals));
    }
    let summary = Message::text(Role::CompactionSummary, text.trim_end());
    Entry::in_memory(id.clone(), summary).covering(originals)
}

/// Returns a text with single blanks and without the level of its headings, which clients change.
fn normalised(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !word.trim_matches('#').is_empty());
    words.collect::<Vec<_>>().join(" ")
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
