//! The history of a session as sent by the host, message by message.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Deref;
use std::sync::Arc;

use ctx_core::{CallId, ContentHash, Entry, EntryId, Error, ErrorKind, Message, Result, Role};
use foldhash::quality::RandomState;

use super::unit::{Retain, Unit, UnitSource};

/// One message.
#[derive(Clone, Debug)]
pub struct HistoryItem {
    /// The message.
    pub entry: Arc<Entry>,
    /// What was kept of its source text.
    pub source: UnitSource,
    /// Whether it belongs to a heartbeat instead of a conversation.
    pub is_heartbeat: bool,
    /// Whether the engine has ingested it.
    pub ingested: bool,
}

/// A session's messages, oldest first.
#[derive(Debug, Default)]
pub struct History {
    retain: Retain,
    items: Vec<HistoryItem>,
    index: HashMap<EntryId, usize, RandomState>,
    /// The number of generated ids.
    next_id: u32,
    /// All messages before this index are ingested.
    fresh_from: usize,
}

/// The result of [`History::sync`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncResult {
    /// The number of unchanged messages at the beginning.
    pub common: usize,
    /// The number of later messages that existed before, moved or not.
    pub kept: usize,
    /// The number of new messages.
    pub added: usize,
    /// The number of removed messages.
    pub removed: usize,
}

impl SyncResult {
    /// Whether messages were only appended.
    pub fn only_grew(self) -> bool {
        self.kept == 0 && self.removed == 0
    }
}

/// A message of a list from the host.
struct IncomingMessage<'a, U> {
    id: Option<EntryId>,
    unit: &'a U,
    /// Parsed on demand: most messages of a list are recognised byte for byte.
    read: Option<(Arc<Message>, ContentHash)>,
}

impl<U: Unit> IncomingMessage<'_, U> {
    fn read(&mut self) -> Result<ContentHash> {
        if let Some((_, hash)) = &self.read {
            return Ok(*hash);
        }
        let (message, hash) = self.unit.content()?;
        self.read = Some((message, hash));
        Ok(hash)
    }

    fn is(&mut self, item: &HistoryItem) -> Result<bool> {
        let is_same = self.unit.is_known() || item.source.is(self.unit);
        Ok(is_same || self.read()? == item.entry.hash()?)
    }

    fn into_item(mut self, id: EntryId, is_heartbeat: bool, retain: Retain) -> Result<HistoryItem> {
        let (message, hash) = match self.read.take() {
            Some(read) => read,
            None => self.unit.content()?,
        };
        let entry = Arc::new(Entry::in_memory(id, message).hashed(hash));
        let source = UnitSource::of(self.unit, retain);
        Ok(HistoryItem { entry, source, is_heartbeat, ingested: false })
    }
}

impl History {
    /// Creates an empty history.
    pub fn new(retain: Retain) -> Self {
        Self { retain, ..Self::default() }
    }

    /// Returns the number of the next generated id.
    pub fn next_id(&self) -> u32 {
        self.next_id
    }

    /// Reserves all ids below this number: they belong to other messages.
    pub fn reserve_ids(&mut self, next_id: u32) {
        self.next_id = self.next_id.max(next_id);
    }

    /// Creates a history from the entries of a file.
    pub fn of(entries: impl IntoIterator<Item = Arc<Entry>>) -> Self {
        let mut history = Self::default();
        for entry in entries {
            history.push(HistoryItem {
                entry,
                source: UnitSource::Unknown,
                is_heartbeat: false,
                ingested: false,
            });
        }
        history
    }

    /// Returns the ids of all messages, in order.
    pub fn ids(&self) -> Vec<EntryId> {
        self.items.iter().map(|item| item.entry.id().clone()).collect()
    }

    /// Returns the messages that the engine has not ingested.
    pub fn fresh(&self) -> impl Iterator<Item = &HistoryItem> {
        self.items[self.fresh_from..].iter().filter(|item| !item.ingested)
    }

    /// Marks all messages as ingested.
    pub fn all_ingested(&mut self) {
        for item in &mut self.items[self.fresh_from..] {
            item.ingested = true;
        }
        self.fresh_from = self.items.len();
    }

    /// Returns the messages, oldest first.
    pub fn items(&self) -> &[HistoryItem] {
        &self.items
    }

    /// Returns the number of messages.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether it is empty.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the index of the message with that id.
    pub fn position(&self, id: &EntryId) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// Appends messages and returns their ids. A message with a known id and the same content is
    /// ignored.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] for a known id with other content, and [`ErrorKind::InvalidInput`]
    /// for an invalid message; nothing is appended then.
    pub fn append<U: Unit>(
        &mut self,
        units: &[U],
        ids: Option<Vec<Option<String>>>,
        is_heartbeat: bool,
    ) -> Result<Vec<EntryId>> {
        let mut fresh: Vec<IncomingMessage<'_, U>> = Vec::new();
        let mut named: HashMap<EntryId, usize> = HashMap::new();
        let mut known = Vec::new();
        for mut message in incoming(units, ids)? {
            let hash = message.read()?;
            let Some(id) = message.id.clone() else {
                fresh.push(message);
                known.push(None);
                continue;
            };
            let other = match (self.position(&id), named.get(&id)) {
                (Some(at), _) => Some(self.items[at].entry.hash()?),
                (None, Some(&at)) => Some(fresh[at].read()?),
                (None, None) => None,
            };
            match other {
                Some(other) if other != hash => return Err(taken(&id)),
                Some(_) => known.push(Some(id)),
                None => {
                    named.insert(id, fresh.len());
                    fresh.push(message);
                    known.push(None);
                }
            }
        }
        let mut items = Vec::with_capacity(fresh.len());
        for message in fresh {
            let id = match message.id.clone() {
                Some(id) => id,
                None => self.fresh_id(|id| named.contains_key(id)),
            };
            items.push(message.into_item(id, is_heartbeat, self.retain)?);
        }
        let mut added = items.iter().map(|item| item.entry.id().clone()).collect::<VecDeque<_>>();
        let ids = known.into_iter().filter_map(|id| id.or_else(|| added.pop_front())).collect();
        for item in items {
            self.push(item);
        }
        Ok(ids)
    }

    /// Replaces the history by a list. Messages are recognised by id and content, or without ids by
    /// content: first the common beginning, then messages that moved.
    ///
    /// # Errors
    ///
    /// See [`History::append`]; also for a duplicate id.
    pub fn sync<U: Unit>(
        &mut self,
        units: &[U],
        ids: Option<Vec<Option<String>>>,
        is_heartbeat: bool,
    ) -> Result<SyncResult> {
        let mut list = incoming(units, ids)?;
        let mut named = HashSet::new();
        for id in list.iter().filter_map(|message| message.id.clone()) {
            if !named.insert(id.clone()) {
                return Err(Error::new(ErrorKind::Conflict, "duplicate message id")
                    .with("id", id)
                    .hint("give each message a unique id, or none"));
            }
        }
        let common = self.common_prefix(&mut list)?;
        let mut rest = list.split_off(common);
        // Invalid messages are detected before anything changes.
        for message in &mut rest {
            message.read()?;
        }
        let is_before = |id: &&EntryId| self.position(id).is_some_and(|at| at < common);
        if let Some(id) = rest.iter().filter_map(|m| m.id.as_ref()).find(is_before) {
            return Err(taken(id));
        }
        for item in &self.items[common..] {
            self.index.remove(item.entry.id());
        }
        let mut old = HistoryPool::of(self.items.drain(common..));
        self.fresh_from = self.fresh_from.min(common);
        let removable = old.len();
        let added_before = self.items.len();
        let mut kept = 0;
        for mut message in rest {
            let hash = message.read()?;
            if let Some(mut item) = old.take(message.id.as_ref(), hash) {
                if self.retain == Retain::Digest {
                    item.source = UnitSource::of(message.unit, Retain::Digest);
                }
                kept += 1;
                self.push(item);
                continue;
            }
            let id = match message.id.clone() {
                Some(id) => id,
                None => self.fresh_id(|id| named.contains(id) || old.knows(id)),
            };
            let item = message.into_item(id, is_heartbeat, self.retain)?;
            self.push(item);
        }
        let added = self.items.len() - added_before - kept;
        Ok(SyncResult { common, kept, added, removed: removable - kept })
    }

    /// Returns the number of equal messages at the beginning.
    fn common_prefix<U: Unit>(&mut self, list: &mut [IncomingMessage<'_, U>]) -> Result<usize> {
        let mut common = 0;
        for (message, item) in list.iter_mut().zip(&mut self.items) {
            let id_fits = message.id.as_ref().is_none_or(|id| id == item.entry.id());
            if !id_fits || !message.is(item)? {
                break;
            }
            // The content is the same, but the bytes differ. The next request will repeat the new
            // bytes.
            if self.retain == Retain::Digest && message.read.is_some() {
                item.source = UnitSource::of(message.unit, Retain::Digest);
            }
            common += 1;
        }
        Ok(common)
    }

    fn push(&mut self, item: HistoryItem) {
        self.index.insert(item.entry.id().clone(), self.items.len());
        self.items.push(item);
    }

    /// Returns an unused id of eight hex digits. Ids count up, so that a host that sends the same
    /// conversation to a new process gets the same ids.
    fn fresh_id(&mut self, is_taken: impl Fn(&EntryId) -> bool) -> EntryId {
        loop {
            let id: EntryId = format!("{:08x}", self.next_id).into();
            self.next_id = self.next_id.wrapping_add(1);
            if !self.index.contains_key(&id) && !is_taken(&id) {
                return id;
            }
        }
    }
}

/// Messages of the changed part of a history, indexed by id and hash.
struct HistoryPool {
    items: HashMap<EntryId, HistoryItem>,
    by_hash: HashMap<ContentHash, VecDeque<EntryId>>,
    ids: HashSet<EntryId>,
}

impl HistoryPool {
    fn of(items: impl Iterator<Item = HistoryItem>) -> Self {
        let mut pool = Self { items: HashMap::new(), by_hash: HashMap::new(), ids: HashSet::new() };
        for item in items {
            let id = item.entry.id().clone();
            // An unreadable entry matches no message.
            if let Ok(hash) = item.entry.hash() {
                pool.by_hash.entry(hash).or_default().push_back(id.clone());
            }
            pool.ids.insert(id.clone());
            pool.items.insert(id, item);
        }
        pool
    }

    fn len(&self) -> usize {
        self.items.len()
    }

    /// Whether a message had that id, even if `take` has removed it.
    fn knows(&self, id: &EntryId) -> bool {
        self.ids.contains(id)
    }

    fn take(&mut self, id: Option<&EntryId>, hash: ContentHash) -> Option<HistoryItem> {
        if let Some(id) = id {
            let is_same = self.items.get(id)?.entry.hash().ok()? == hash;
            return is_same.then(|| self.items.remove(id)).flatten();
        }
        let same = self.by_hash.get_mut(&hash)?;
        loop {
            if let Some(item) = self.items.remove(&same.pop_front()?) {
                return Some(item);
            }
        }
    }
}

fn incoming<U: Unit>(
    units: &[U],
    ids: Option<Vec<Option<String>>>,
) -> Result<Vec<IncomingMessage<'_, U>>> {
    let ids = ids.unwrap_or_else(|| vec![None; units.len()]);
    check_id_count(units.len(), ids.len())?;
    if ids.iter().flatten().any(String::is_empty) {
        return Err(Error::new(ErrorKind::InvalidInput, "empty id")
            .hint("use null for a message without an id"));
    }
    let both = units.iter().zip(ids);
    Ok(both
        .map(|(unit, id)| IncomingMessage { id: id.map(EntryId::from), unit, read: None })
        .collect())
}

/// Checks that there is an id, or none, for each message.
///
/// # Errors
///
/// [`ErrorKind::InvalidInput`] if the numbers differ.
pub fn check_id_count(messages: usize, ids: usize) -> Result<()> {
    if ids == messages {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::InvalidInput,
        "the number of ids differs from the number of messages",
    )
    .with("messages", messages)
    .with("ids", ids)
    .hint("use null for a message without an id, or omit ids"))
}

/// Whether the newest of `count` messages are results of calls that are all missing: the calls are
/// stored at the provider, or lost. `message` returns a message, unless it is unreadable.
pub fn answers_unknown_calls<M: Deref<Target = Message>>(
    count: usize,
    message: impl Fn(usize) -> Option<M>,
) -> bool {
    let is_answer = |at: &usize| message(*at).is_some_and(|m| m.role == Role::Assistant);
    let newest = (0..count).rev().find(is_answer).map_or(0, |at| at + 1);
    let makes = |at, id: &CallId| {
        message(at).is_some_and(|message| message.tool_calls().any(|call| call.id == *id))
    };
    let mut has_results = false;
    for message in (newest..count).filter_map(&message) {
        for result in message.tool_results() {
            has_results = true;
            if (0..newest).rev().any(|at| makes(at, &result.call_id)) {
                return false;
            }
        }
    }
    has_results
}

fn taken(id: &EntryId) -> Error {
    Error::new(ErrorKind::Conflict, "id already used by another message")
        .with("id", id)
        .hint("the content of a message cannot change; use `sync` to send a changed history")
}
