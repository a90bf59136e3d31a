//! What the host told of a session, message by message.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use ctx_core::{ContentHash, Entry, EntryId, Error, ErrorKind, Message, Result};

use super::told::{Keeps, Told, Unit};

/// One message.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    pub(crate) entry: Arc<Entry>,
    pub(crate) told: Told,
    pub(crate) is_heartbeat: bool,
    /// Whether the engine was told.
    pub(crate) ingested: bool,
}

/// A session's messages, oldest first.
#[derive(Debug, Default)]
pub(crate) struct History {
    keeps: Keeps,
    items: Vec<Item>,
    index: HashMap<EntryId, usize>,
    /// Counts the ids that were made.
    made: u32,
    /// All before this one were told to the engine.
    fresh_from: usize,
}

/// What [`History::sync`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Synced {
    /// Messages at the beginning that are as they were.
    pub(crate) common: usize,
    /// Messages behind these that were there before, at another place or not.
    pub(crate) kept: usize,
    /// Messages that are new.
    pub(crate) added: usize,
    /// Messages that are gone.
    pub(crate) removed: usize,
}

impl Synced {
    /// Whether nothing but messages at the end is new.
    pub(crate) fn only_grew(self) -> bool {
        self.kept == 0 && self.removed == 0
    }
}

/// A message of a list that the host sends.
struct Incoming<'a, U> {
    id: Option<EntryId>,
    unit: &'a U,
    /// Read when it is needed: most messages of a list are known, byte for byte.
    read: Option<(Arc<Message>, ContentHash)>,
}

impl<U: Unit> Incoming<'_, U> {
    fn read(&mut self) -> Result<ContentHash> {
        if let Some((_, hash)) = &self.read {
            return Ok(*hash);
        }
        let (message, hash) = self.unit.content()?;
        self.read = Some((message, hash));
        Ok(hash)
    }

    fn is(&mut self, item: &Item) -> Result<bool> {
        Ok(item.told.is(self.unit) || self.read()? == item.entry.hash()?)
    }

    fn into_item(mut self, id: EntryId, is_heartbeat: bool, keeps: Keeps) -> Result<Item> {
        let (message, hash) = match self.read.take() {
            Some(read) => read,
            None => self.unit.content()?,
        };
        let entry = Arc::new(Entry::held(id, message).hashed(hash));
        let told = Told::of(self.unit, keeps);
        Ok(Item { entry, told, is_heartbeat, ingested: false })
    }
}

impl History {
    /// An empty history.
    pub(crate) fn new(keeps: Keeps) -> Self {
        Self { keeps, ..Self::default() }
    }

    /// The number of the next id that is made.
    pub(crate) fn made(&self) -> u32 {
        self.made
    }

    /// Makes ids from this number on: those before it are names of other messages.
    pub(crate) fn make_from(&mut self, made: u32) {
        self.made = self.made.max(made);
    }

    /// A history that a file holds.
    pub(crate) fn of(entries: impl IntoIterator<Item = Arc<Entry>>) -> Self {
        let mut history = Self::default();
        for entry in entries {
            history.push(Item { entry, told: Told::Not, is_heartbeat: false, ingested: false });
        }
        history
    }

    /// The ids of all messages, in order.
    pub(crate) fn ids(&self) -> Vec<EntryId> {
        self.items.iter().map(|item| item.entry.id().clone()).collect()
    }

    /// The messages that the engine was not told of.
    pub(crate) fn fresh(&self) -> impl Iterator<Item = &Item> {
        self.items[self.fresh_from..].iter().filter(|item| !item.ingested)
    }

    /// Notes that the engine was told of all messages.
    pub(crate) fn all_ingested(&mut self) {
        for item in &mut self.items[self.fresh_from..] {
            item.ingested = true;
        }
        self.fresh_from = self.items.len();
    }

    pub(crate) fn items(&self) -> &[Item] {
        &self.items
    }

    pub(crate) fn len(&self) -> usize {
        self.items.len()
    }

    /// Where the message of that id stands.
    pub(crate) fn position(&self, id: &EntryId) -> Option<usize> {
        self.index.get(id).copied()
    }

    /// Adds messages at the end, and says under which ids they are known. One under an id that is
    /// known, and with the content it has, changes nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Conflict`] for a known id with other content, and [`ErrorKind::InvalidInput`]
    /// for what is no message; nothing is added then.
    pub(crate) fn append<U: Unit>(
        &mut self,
        units: &[U],
        ids: Option<Vec<Option<String>>>,
        is_heartbeat: bool,
    ) -> Result<Vec<EntryId>> {
        let mut fresh: Vec<Incoming<'_, U>> = Vec::new();
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
            items.push(message.into_item(id, is_heartbeat, self.keeps)?);
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
    pub(crate) fn sync<U: Unit>(
        &mut self,
        units: &[U],
        ids: Option<Vec<Option<String>>>,
        is_heartbeat: bool,
    ) -> Result<Synced> {
        let mut list = incoming(units, ids)?;
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
        for (message, item) in list.iter_mut().zip(&mut self.items) {
            let id_fits = message.id.as_ref().is_none_or(|id| id == item.entry.id());
            if !id_fits || !message.is(item)? {
                break;
            }
            // The same content in other words, which are the ones that come again next time.
            if self.keeps == Keeps::Mark && message.read.is_some() {
                item.told = Told::of(message.unit, Keeps::Mark);
            }
            common += 1;
        }
        let mut rest = list.split_off(common);
        // Whatever is no message is found before anything changes.
        for message in &mut rest {
            message.read()?;
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
            let hash = message.read()?;
            if let Some(mut item) = old.take(message.id.as_ref(), hash) {
                if self.keeps == Keeps::Mark {
                    item.told = Told::of(message.unit, Keeps::Mark);
                }
                kept += 1;
                self.push(item);
                continue;
            }
            let id = match message.id.clone() {
                Some(id) => id,
                None => self.fresh_id(|id| named.contains(id) || old.knows(id)),
            };
            let item = message.into_item(id, is_heartbeat, self.keeps)?;
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

fn incoming<U: Unit>(
    units: &[U],
    ids: Option<Vec<Option<String>>>,
) -> Result<Vec<Incoming<'_, U>>> {
    let ids = ids.unwrap_or_else(|| vec![None; units.len()]);
    if ids.len() != units.len() {
        return Err(Error::new(ErrorKind::InvalidInput, "there is not one id for each message")
            .with("messages", units.len())
            .with("ids", ids.len())
            .hint("give null where a message has no id, or leave ids out"));
    }
    if ids.iter().flatten().any(String::is_empty) {
        return Err(Error::new(ErrorKind::InvalidInput, "an id is empty")
            .hint("give null where a message has no id"));
    }
    let both = units.iter().zip(ids);
    Ok(both.map(|(unit, id)| Incoming { id: id.map(EntryId::from), unit, read: None }).collect())
}

fn taken(id: &EntryId) -> Error {
    Error::new(ErrorKind::Conflict, "another message of the session has this id")
        .with("id", id)
        .hint("an id names one content for good; `sync` tells a history that changed")
}
