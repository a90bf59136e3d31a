//! A conversation of the proxy, read from its records.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use ctx_core::{
    Counter, CounterKind, Entry, Error, ErrorKind, NodeState, Result, Timestamp, Tokens,
};
use ctx_eval::{CompactionDiff, RemovedMessage};
use ctx_trace::{CompactionRecord, EntryRecord, Record, SessionTrace, Trace};

use super::{LiveConversations, head};
use crate::diff::{DiffPage, DiffQuery};
use crate::rows::{receipt_of, unknown_compaction, unknown_entry};
use crate::shape::{
    CompactionRow, EntriesQuery, EntryPage, EntryQuery, LayerEdits, MessagePart, MessageView,
    Overview, RequestPage, RequestRow, UndoResult,
};
use crate::source::SessionView;
use crate::text::{contains, message_view};

/// The prefix of a compaction's id in the API, followed by the number of its request.
const AT: &str = "at-";

pub(super) struct ProxiedSession {
    pub(super) session: SessionTrace,
    pub(super) trace: Arc<Trace>,
    pub(super) live: Arc<dyn LiveConversations>,
}

/// State and size of the entries of the previous request.
type PreviousEntries = HashMap<ctx_core::EntryId, (NodeState, Tokens)>;

impl ProxiedSession {
    /// Returns a request by its number in the API, with its entries.
    fn record(&self, number: usize) -> Result<Record> {
        let query = number.checked_sub(1).and_then(|number| u64::try_from(number).ok());
        let found = query.map(|number| self.trace.record(&self.session.info.id, number));
        found.transpose()?.flatten().ok_or_else(|| {
            Error::new(ErrorKind::NotFound, "unknown request").with("request", number).hint(
                "requests are numbered from 1; the records of early ones may have been deleted",
            )
        })
    }

    /// Returns the entries of the previous request, to detect changes.
    fn before(&self, number: usize) -> Option<PreviousEntries> {
        let record = self.record(number.checked_sub(1)?).ok()?;
        let entries = record.entries.into_iter();
        Some(entries.map(|entry| (entry.entry, (entry.state, entry.tokens))).collect())
    }

    fn counter(&self) -> Counter {
        let kind = self.session.info.counter.parse::<CounterKind>();
        kind.map(Counter::new).unwrap_or_default()
    }

    /// Returns the messages of these entries that the conversation still has.
    fn texts<'a>(&self, entries: impl Iterator<Item = &'a EntryRecord>) -> Vec<Arc<Entry>> {
        let id = &self.session.info.id;
        let texts = entries.filter_map(|entry| {
            let message = self.live.message(id, &entry.entry)?;
            Some(Arc::new(Entry::in_memory(entry.entry.clone(), message)))
        });
        texts.collect()
    }

    fn compaction(&self, id: &str) -> Result<(usize, &CompactionRecord)> {
        let number = id.strip_prefix(AT).and_then(|number| number.parse::<usize>().ok());
        let found = number.and_then(|number| {
            let record = self.session.requests.iter().find(|one| number_of(one) == number)?;
            Some((number, record.compaction.as_ref()?))
        });
        found.ok_or_else(|| unknown_compaction(id))
    }

    fn compaction_row(&self, record: &Record) -> Option<CompactionRow> {
        let compaction = record.compaction.as_ref()?;
        // A later compaction builds on the earlier ones, so only the newest can be undone.
        let mut later = self.session.requests.iter().rev();
        let newest = later.find(|one| one.compaction.is_some()).map(|one| one.number);
        let is_newest = newest == Some(record.number);
        let receipt = compaction.details.as_ref().and_then(receipt_of);
        let messages = receipt.as_ref().and_then(|receipt| receipt.get("messages")?.as_u64());
        Some(CompactionRow {
            id: format!("{AT}{}", number_of(record)),
            number: Some(number_of(record)),
            stored: true,
            recorded: false,
            applied: !compaction.undone,
            by: "ctx".to_owned(),
            at: Some(record.at),
            undone: compaction.undone,
            can_undo: is_newest && !compaction.undone && compaction.entry_id.is_some(),
            tokens_before: Some(compaction.tokens_before),
            tokens_after: compaction.tokens_after,
            messages: messages.and_then(|n| usize::try_from(n).ok()),
            receipt,
            summarised: compaction.summarised.clone(),
        })
    }
}

impl SessionView for ProxiedSession {
    fn overview(&self, from: usize) -> Result<Overview> {
        let requests = &self.session.requests;
        let newest = requests.last();
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let from = from.min(requests.len());
        Ok(Overview {
            head: head(&self.session),
            reserve: newest.map_or(Tokens::ZERO, |record| record.reserve),
            limit: newest.map_or(Tokens::ZERO, |record| record.limit),
            profile: some(&self.session.info.profile),
            counter: some(&self.session.info.counter),
            from,
            rows: requests.iter().skip(from).map(|record| row(record)).collect(),
            total: requests.len(),
            compacted: requests.iter().filter_map(|one| self.compaction_row(one)).collect(),
            ..Overview::default()
        })
    }

    fn request(&self, number: usize, query: &EntriesQuery) -> Result<RequestPage> {
        let record = self.record(number)?;
        let before = self.before(number);
        let changed = |entry: &EntryRecord| is_changed(entry, before.as_ref());
        let page = RequestPage {
            row: row(&record),
            title: head(&self.session).title,
            requests: self.session.requests.last().map_or(0, |record| number_of(record)),
            window: record.window,
            reserve: record.reserve,
            limit: record.limit,
            edits: edits(record.entries.iter().filter(|entry| changed(entry))),
            components: record.components,
            ..RequestPage::default()
        };
        // Only the beginnings of texts are recorded.
        let has = |entry: &EntryRecord, words: &str| contains(entry.begins.text(), words);
        let begins = |entry: &EntryRecord| entry.begins.clone();
        Ok(page.with_entries(&record.entries, query, changed, has, begins))
    }

    fn entry(&self, id: &str, query: &EntryQuery) -> Result<EntryPage> {
        let number = query.request;
        let newest = self.session.requests.last().map_or(0, |record| number_of(record));
        let record = self.record(number.unwrap_or(newest))?;
        let found = record.entries.into_iter().find(|entry| &*entry.entry == id);
        let entry = found.ok_or_else(|| unknown_entry(id))?;
        let message = self.live.message(&self.session.info.id, id);
        let (recorded, note) = match message {
            Some(message) => (Some(message_view(&message, &self.counter(), query)), None),
            None => {
                let part = MessagePart {
                    kind: "text",
                    text: entry.begins.text().to_owned(),
                    ..MessagePart::default()
                };
                let tokens = entry.before.get().max(entry.tokens.get());
                let begins = MessageView { tokens, parts: vec![part], cut: 0 };
                let note = "the proxy stores only the beginning of a message";
                (Some(begins).filter(|_| !entry.begins.text().is_empty()), Some(note.to_owned()))
            }
        };
        Ok(EntryPage {
            entry: id.to_owned(),
            role: entry.role.clone(),
            at: None,
            recorded,
            sent: None,
            note,
            fate: number.map(|_| entry),
        })
    }

    fn diff(&self, compaction: &str, query: &DiffQuery) -> Result<DiffPage> {
        let (number, compaction_record) = self.compaction(compaction)?;
        let before = self.before(number).unwrap_or_default();
        let is_removed = |entry: &EntryRecord| {
            let was = before.get(&entry.entry).is_some_and(|(was, _)| *was != NodeState::Dropped);
            was && entry.state == NodeState::Dropped
        };
        let entries = self.record(number)?.entries;
        let is_sent = |entry: &&EntryRecord| entry.state != NodeState::Dropped;
        let covered = self.texts(entries.iter().filter(|entry| is_removed(entry)));
        let kept = self.texts(entries.iter().filter(is_sent));
        let removed =
            entries.iter().filter(|entry| is_removed(entry)).map(|entry| RemovedMessage {
                entry: entry.entry.clone(),
                role: entry.role.clone(),
                tokens: entry.before.get(),
                begins: entry.begins.text().to_owned(),
            });
        let removed: Vec<RemovedMessage> = removed.collect();
        let is_whole = covered.len() == removed.len();
        let (id, summary) = (compaction.into(), compaction_record.summary.clone());
        let diff = CompactionDiff {
            removed,
            ..CompactionDiff::new(id, summary, &covered, &kept, &self.counter())
        };
        let note = "the proxy no longer has all of these messages, so some facts are missing";
        Ok(DiffPage { note: (!is_whole).then(|| note.to_owned()), ..DiffPage::of(&diff, query) })
    }

    fn undo(&self, compaction: &str, _now: Timestamp) -> Result<UndoResult> {
        let (_, compaction_record) = self.compaction(compaction)?;
        let Some(entry) = &compaction_record.entry_id else {
            return Err(Error::new(ErrorKind::InvalidInput, "this compaction cannot be undone")
                .hint("history was cut without a summary"));
        };
        self.live.undo(&self.session.info.id, entry)?;
        Ok(UndoResult {
            undone: true,
            compaction_id: Some(compaction.to_owned()),
            entry_id: Some(entry.to_string()),
            ..UndoResult::default()
        })
    }
}

/// Returns the request's number in the API.
fn number_of(record: &Record) -> usize {
    usize::try_from(record.number).unwrap_or(usize::MAX - 1) + 1
}

fn row(record: &Record) -> RequestRow {
    RequestRow {
        number: number_of(record),
        at: Some(record.at),
        raw_tokens: record.raw_tokens.get(),
        sent_tokens: record.sent_tokens.get(),
        cached_tokens: record.cached_tokens,
        unchanged_prefix: record.unchanged_prefix.get(),
        prefix_break: record.prefix_break,
        prompt_tokens: record.prompt_tokens,
        cost_usd: record.cost_usd,
        fits: record.fits,
        actions: record.actions.clone(),
        status: record.status,
        outcome: Some(record.outcome.name().to_owned()),
        attempts: Some(record.attempts),
        millis: Some(record.millis),
        protocol: Some(record.protocol.to_string()),
        ..RequestRow::default()
    }
}

/// Whether an entry changed since the previous request. A new entry counts as changed if a layer
/// edited it.
fn is_changed(entry: &EntryRecord, before: Option<&PreviousEntries>) -> bool {
    match before.and_then(|before| before.get(&entry.entry)) {
        Some(was) => *was != (entry.state, entry.tokens),
        None => entry.state != NodeState::Kept,
    }
}

/// Sums the edits of the changed entries by layer and action.
fn edits<'a>(changed: impl Iterator<Item = &'a EntryRecord>) -> Vec<LayerEdits> {
    let mut sums: BTreeMap<(&str, &str), LayerEdits> = BTreeMap::new();
    for entry in changed {
        let action = match entry.state {
            NodeState::Kept => continue,
            NodeState::Replaced => "replace",
            NodeState::Dropped => "drop",
            NodeState::Inserted => "insert",
        };
        let layer = entry.layer.as_deref().unwrap_or_default();
        let sum = sums.entry((layer, action)).or_default();
        (sum.layer, sum.action) = (layer.to_owned(), action.to_owned());
        sum.add(entry.before, entry.tokens, entry.reason.as_deref().unwrap_or_default());
    }
    sums.into_values().collect()
}
