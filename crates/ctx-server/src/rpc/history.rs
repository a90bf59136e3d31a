//! What the host told of a session, message by message.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ctx_core::{ContentHash, Entry, EntryId, Error, ErrorKind, Message, Result};
use serde_json::value::RawValue;

use super::dialect::Dialect;

/// One message.
#[derive(Debug)]
pub(super) struct Item {
    pub(super) entry: Arc<Entry>,
    /// As the host wrote it; `None` where it was read from a file.
    pub(super) told: Option<Arc<str>>,
    pub(super) is_heartbeat: bool,
    /// Whether the engine was told.
    pub(super) ingested: bool,
}

/// A session's messages, oldest first.
#[derive(Debug, Default)]
pub(super) struct History {
    items: Vec<Item>,
    index: HashMap<EntryId, usize>,
    /// Counts the ids that were made.
    made: u32,
    /// All before this one were told to the engine.
    fresh_from: usize,
}

/// What [`History::sync`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Synced {
    /// Messages at the beginning that are as they were.
    pub(super) common: usize,
    /// Messages behind these that were there before, at another place or not.
    pub(super) kept: usize,
    /// Messages that are new.
    pub(super) added: usize,
    /// Messages that are gone.
    pub(super) removed: usize,
}

impl Synced {
    /// Whether nothing but messages at the end is new.
    pub(super) fn only_grew(self) -> bool {
        self.kept == 0 && self.removed == 0
    }
}

/// A message of a list that the host sends.
struct Incoming<'a> {
    id: Option<EntryId>,
    raw: &'a RawValue,
    /// Read when it is needed: most messages of a list are known, byte for byte.
    read: Option<(Message, ContentHash)>,
}

impl Incoming<'_> {
    fn read(&mut self, dialect: Dialect) -> Result<ContentHash> {
        if let Some((_, hash)) = &self.read {
            return Ok(*hash);
        }
        let message = dialect.read(self.raw)?;
        let hash = ContentHash::of(&message);
        self.read = Some((message, hash));
        Ok(hash)
    }

    fn is(&mut self, item: &Item, dialect: Dialect) -> Result<bool> {
        let same_text = item.told.as_deref() == Some(self.raw.get());
        Ok(same_text || self.read(dialect)? == item.entry.hash()?)
    }

    fn into_item(mut self, id: EntryId, is_heartbeat: bool, dialect: Dialect) -> Result<Item> {
        let message = match self.read.take() {
            Some((message, _)) => message,
            None => dialect.read(self.raw)?,
        };
        let entry = Arc::new(Entry::held(id, message));
        let told = Some(Arc::from(self.raw.get()));
        Ok(Item { entry, told, is_heartbeat, ingested: false })
    }
}

impl History {
    /// A history that a file holds.
    pub(super) fn of(entries: impl IntoIterator<Item = Arc<Entry>>) -> Self {
        let mut history = Self::default();
        for entry in entries {
            history.push(Item { entry, told: None, is_heartbeat: false, ingested: false });
        }
        history
    }

    /// The ids of all messages, in order.
    pub(super) fn ids(&self) -> Vec<EntryId> {
        self.items.iter().map(|item| item.entry.id().clone()).collect()
    }

    /// The messages that the engine was not told of.
    pub(super) fn fresh(&self) -> impl Iterator<Item = &Item> {
        self.items[self.fresh_from..].iter().filter(|item| !item.ingested)
    }

    /// Notes that the engine was told of all messages.
    pub(super) fn all_ingested(&mut self) {
        for item in &mut self.items[self.fresh_from..] {
            item.ingested = true;
        }
        self.fresh_from = self.items.len();
    }

    pub(super) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    /// Where the message of that id stands.
    pub(super) fn position(&self, id: &EntryId) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// Adds messages at the end, and says under which ids they are known. One under an id that is
    /// known, and with the content it has, changes nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] for a known id with other content, and [`ErrorKind::InvalidInput`]
    /// for what is no message; nothing is added then.
    pub(super) fn append(
        &mut self,
        messages: &[&RawValue],
        ids: Option<Vec<Option<String>>>,
        is_heartbeat: bool,
        dialect: Dialect,
    ) -> Result<Vec<EntryId>> {
        let mut fresh: Vec<Incoming<'_>> = Vec::new();
        let mut named: HashMap<EntryId, usize> = HashMap::new();
        let mut known = Vec::new();
        for mut message in incoming(messages, ids)? {
            let hash = message.read(dialect)?;
            let Some(id) = message.id.clone() else {
                fresh.push(message);
                known.push(None);
                continue;
            };
            let other = match (self.position(&id), named.get(&id)) {
                (Some(at), _) => Some(self.items[at].entry.hash()?),
                (None, Some(&at)) => Some(fresh[at].read(dialect)?),
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
            items.push(message.into_item(id, is_heartbeat, dialect)?);
        }
        let mut added = items.iter().map(|item| item.entry.id().clone()).collect::<VecDeque<_>>();
        let ids = known.into_iter().filter_map(|id| id.or_else(|| added.pop_front())).collect();
        for item in items {
            self.push(item);
        }
        Ok(ids)
    }

    /// Takes a list for what the whole history is now. Messages are recognised by their id and
    /// content, or without ids by their content: those at the beginning, and behind the first that
    /// differs also those that moved.
    ///
    /// # Errors
    ///
    /// As [`History::append`], and for an id that stands twice.
    pub(super) fn sync(
        &mut self,
        messages: &[&RawValue],
        ids: Option<Vec<Option<String>>>,
        is_heartbeat: bool,
        dialect: Dialect,
    ) -> Result<Synced> {
        let mut list = incoming(messages, ids)?;
        let mut named = HashSet::new();
        for id in list.iter().filter_map(|message| message.id.clone()) {
            if !named.insert(id.clone()) {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "two messages of the list have one id",
                )
                .with("id", id)
                .hint("give each message an id of its own, or none"));
            }
        }
        let mut common = 0;
        for (message, item) in list.iter_mut().zip(&self.items) {
            let id_fits = message.id.as_ref().is_none_or(|id| id == item.entry.id());
            if !id_fits || !message.is(item, dialect)? {
                break;
            }
            common += 1;
        }
        let mut rest = list.split_off(common);
        // Whatever is no message is found before anything changes.
        for message in &mut rest {
            message.read(dialect)?;
        }
        let before: HashSet<&EntryId> =
            self.items[..common].iter().map(|item| item.entry.id()).collect();
        if let Some(id) = rest.iter().filter_map(|m| m.id.as_ref()).find(|id| before.contains(id)) {
            return Err(taken(id));
        }
        let mut old = Pool::of(self.items.drain(common..));
        self.index.retain(|_, at| *at < common);
        self.fresh_from = self.fresh_from.min(common);
        let removable = old.len();
        let added_before = self.items.len();
        let mut kept = 0;
        for mut message in rest {
            let hash = message.read(dialect)?;
            if let Some(item) = old.take(message.id.as_ref(), hash) {
                kept += 1;
                self.push(item);
                continue;
            }
            let id = match message.id.clone() {
                Some(id) => id,
                None => self.fresh_id(|id| named.contains(id) || old.knows(id)),
            };
            let item = message.into_item(id, is_heartbeat, dialect)?;
            self.push(item);
        }
        let added = self.items.len() - added_before - kept;
        Ok(Synced { common, kept, added, removed: removable - kept })
    }

    fn push(&mut self, item: Item) {
        self.index.insert(item.entry.id().clone(), self.items.len());
        self.items.push(item);
    }

    /// Eight hex digits that no message has. They count up, so that a host that tells the same
    /// conversation to a new process gets the same ids.
    fn fresh_id(&mut self, is_taken: impl Fn(&EntryId) -> bool) -> EntryId {
        loop {
            let id: EntryId = format!("{:08x}", self.made).into();
            self.made = self.made.wrapping_add(1);
            if !self.index.contains_key(&id) && !is_taken(&id) {
                return id;
            }
        }
    }
}

/// Messages of the part of a history that changed, by what they are recognised by.
struct Pool {
    items: HashMap<EntryId, Item>,
    by_hash: HashMap<ContentHash, VecDeque<EntryId>>,
    ids: HashSet<EntryId>,
}

impl Pool {
    fn of(items: impl Iterator<Item = Item>) -> Self {
        let mut pool = Self { items: HashMap::new(), by_hash: HashMap::new(), ids: HashSet::new() };
        for item in items {
            let id = item.entry.id().clone();
            // An entry that cannot be read again is no message's equal.
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

    /// Whether a message had that id, taken by now or not.
    fn knows(&self, id: &EntryId) -> bool {
        self.ids.contains(id)
    }

    fn take(&mut self, id: Option<&EntryId>, hash: ContentHash) -> Option<Item> {
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

fn incoming<'a>(
    messages: &[&'a RawValue],
    ids: Option<Vec<Option<String>>>,
) -> Result<Vec<Incoming<'a>>> {
    let ids = ids.unwrap_or_else(|| vec![None; messages.len()]);
    if ids.len() != messages.len() {
        return Err(Error::new(ErrorKind::InvalidInput, "there is not one id for each message")
            .with("messages", messages.len())
            .with("ids", ids.len())
            .hint("give null where a message has no id, or leave ids out"));
    }
    if ids.iter().flatten().any(String::is_empty) {
        return Err(Error::new(ErrorKind::InvalidInput, "an id is empty")
            .hint("give null where a message has no id"));
    }
    let both = messages.iter().zip(ids);
    Ok(both.map(|(raw, id)| Incoming { id: id.map(EntryId::from), raw, read: None }).collect())
}

fn taken(id: &EntryId) -> Error {
    Error::new(ErrorKind::Conflict, "another message of the session has this id")
        .with("id", id)
        .hint("an id names one content for good; `sync` tells a history that changed")
}
