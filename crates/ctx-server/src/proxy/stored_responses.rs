//! Histories that a provider stores, kept from the requests and answers that pass.
//!
//! A request of the Responses API may refer to an earlier response (`previous_response_id`) or to
//! items of one (`item_reference`), or continue a `conversation`. If the whole history is known and
//! does not fit, it is sent, cut, in place of the reference.

use std::collections::{HashMap, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};

use ctx_core::Result;
use ctx_dialect::json::Object;
use ctx_dialect::wire::{
    Items, Protocol, Route, conversation, previous_response, referenced_item, with_input_items,
};
use ctx_disk::lru::LruFolder;
use ctx_model::Method;
use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::fingerprint::Salt;
use super::replica::{ReplicaStore, SharedFolder};
use super::retrieval::NAMES;

/// Maximum size of all items in bytes, in memory and on disk; beyond it, the oldest responses are
/// forgotten.
const MOST_BYTES: usize = 128 << 20;
/// Maximum number of responses.
const MOST_RESPONSES: usize = 20_000;
/// Maximum size of one history.
const MOST_RESTORED: usize = 32 << 20;

/// The responses of a provider, as far as ctx saw them.
#[derive(Debug)]
pub(super) struct StoredResponses {
    known: Mutex<Known>,
    files: SharedFolder,
    /// Whether the responses of earlier servers are known.
    loaded: Once,
    salt: Salt,
}

#[derive(Debug, Default)]
struct Known {
    /// By the id of the response, and the newest one of a conversation by its id.
    responses: HashMap<Key, Arc<StoredRequest>>,
    /// The items of answers.
    items: HashMap<Key, Arc<str>>,
    /// Oldest first.
    order: VecDeque<Arc<StoredRequest>>,
    bytes: usize,
}

/// The salted hash of the owner, and an id of the provider.
type Key = (String, String);

/// A request whose answer the provider stores, and that answer.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct StoredRequest {
    owner: String,
    /// The id of the response that it continues.
    parent: Option<String>,
    /// The conversation that it is a part of, if all of that is known.
    conversation: Option<String>,
    /// Whether the provider's conversation lacks it or an earlier one, because the history was sent
    /// in place of the reference.
    is_detached: bool,
    /// The items of the request and of its answer.
    items: Vec<Arc<str>>,
    /// The number of the request's items.
    asked: usize,
    /// The ids of the answers of all rounds. The client may know it by that of an earlier round.
    responses: Vec<String>,
}

/// A history, and the id of the response that the request continues at the provider.
pub(super) struct WholeHistory {
    pub(super) body: String,
    pub(super) previous: Option<String>,
}

/// A request that changes a conversation without a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConversationChange<'a> {
    Begin,
    AddItems(&'a str),
    /// ctx does not follow it.
    Other(&'a str),
}

impl<'a> ConversationChange<'a> {
    /// Returns the change that a request makes.
    pub(super) fn of(method: &Method, path: &'a str) -> Option<Self> {
        let path = path.split('?').next().unwrap_or_default().trim_end_matches('/');
        if *method == Method::POST && path.ends_with("/conversations") {
            return Some(Self::Begin);
        }
        let (id, rest) = path.rsplit_once("/conversations/")?.1.split_once('/')?;
        match rest {
            _ if *method == Method::DELETE => Some(Self::Other(id)),
            "items" if *method == Method::POST => Some(Self::AddItems(id)),
            _ => None,
        }
    }
}

impl StoredRequest {
    /// Adds the answer of a round, without the calls of ctx's tools: the client does not know them.
    pub(super) fn add_round(&mut self, answer: &str) {
        let Ok(answer) = Object::parse(answer) else { return };
        self.responses.extend(answer.owned("id"));
        for raw in answer.array("output").unwrap_or_default() {
            let item = Object::of(raw).unwrap_or_default();
            if !item.text("name").is_some_and(|name| NAMES.contains(&&*name)) {
                self.items.push(raw.get().into());
            }
        }
    }

    /// Records that the history is sent in place of the reference.
    pub(super) fn detach(&mut self) {
        self.is_detached = self.conversation.is_some();
    }

    /// Whether the provider knows everything that it refers to.
    pub(super) fn is_attached(&self) -> bool {
        !self.is_detached
    }

    fn key(&self, id: &str) -> Key {
        (self.owner.clone(), id.to_owned())
    }

    fn keys(&self) -> impl Iterator<Item = Key> {
        self.responses.iter().chain(&self.conversation).map(|id| self.key(id))
    }

    fn answered(&self) -> impl Iterator<Item = (Key, &Arc<str>)> {
        self.items.iter().skip(self.asked).filter_map(|item| {
            let id = Object::parse(item).ok()?.owned("id")?;
            Some((self.key(&id), item))
        })
    }

    fn bytes(&self) -> usize {
        self.items.iter().map(|item| item.len()).sum()
    }
}

impl Known {
    fn insert(&mut self, request: Arc<StoredRequest>) {
        self.bytes += request.bytes();
        self.items.extend(request.answered().map(|(key, item)| (key, item.clone())));
        self.responses.extend(request.keys().map(|key| (key, request.clone())));
        self.order.push_back(request);
        while (self.bytes > MOST_BYTES || self.order.len() > MOST_RESPONSES)
            && let Some(oldest) = self.order.pop_front()
        {
            self.bytes -= oldest.bytes();
            for key in oldest.keys() {
                if self.responses.get(&key).is_some_and(|known| Arc::ptr_eq(known, &oldest)) {
                    self.responses.remove(&key);
                }
            }
            for (key, _) in oldest.answered() {
                self.items.remove(&key);
            }
        }
    }
}

impl StoredResponses {
    pub(super) fn at(folder: PathBuf, salt: Salt, replicas: Option<ReplicaStore>) -> Self {
        let files = LruFolder::at(folder, MOST_BYTES as u64, MOST_RESPONSES);
        let files = SharedFolder::new(files, "responses", replicas);
        Self { known: Mutex::default(), files, loaded: Once::new(), salt }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the responses of earlier servers, once. Damaged files are left out.
    fn load(&self) {
        self.loaded.call_once(|| {
            let mut all = self.lock();
            let own = std::mem::take(&mut *all);
            let saved = self.files.oldest_first();
            for request in saved.iter().filter_map(|id| self.files.read::<StoredRequest>(id)) {
                all.insert(Arc::new(request));
            }
            for request in own.order {
                if !request.keys().all(|key| all.responses.contains_key(&key)) {
                    all.insert(request);
                }
            }
        });
    }

    /// Returns the request of a client, unless the provider does not store it.
    pub(super) fn request(&self, route: &Route, body: &str, owner: &[u8]) -> Option<StoredRequest> {
        if route.protocol != Protocol::Responses {
            return None;
        }
        let (object, _) = Object::parse_prefix(body);
        let named = conversation(&object);
        if named.is_none() && object.is_false("store") {
            return None;
        }
        if refers(route, body.as_bytes()) {
            self.load();
        }
        let items: Vec<Arc<str>> = match object.text("input") {
            Some(text) => vec![json!({ "role": "user", "content": text }).to_string().into()],
            // A request for a compaction may have the reference alone.
            None if !object.has("input") && previous_response(&object).is_some() => Vec::new(),
            None => Items::of(route.protocol, body)?.iter().map(Arc::from).collect(),
        };
        let begun = StoredRequest { asked: items.len(), items, ..self.begun(owner) };
        Some(match named {
            Some(id) => self.in_conversation(begun, id),
            None => StoredRequest { parent: previous_response(&object), ..begun },
        })
    }

    fn begun(&self, owner: &[u8]) -> StoredRequest {
        let owner = self.salt.hash(&[b"responses", owner], 16);
        StoredRequest { owner, ..StoredRequest::default() }
    }

    /// Lets a request continue the newest one of a conversation.
    fn in_conversation(&self, request: StoredRequest, id: String) -> StoredRequest {
        match self.newest(&request.key(&id)) {
            Some(newest) => StoredRequest {
                parent: newest.responses.last().cloned(),
                is_detached: newest.is_detached,
                conversation: Some(id),
                ..request
            },
            None => StoredRequest { parent: Some(id), ..request },
        }
    }

    /// Records a change of a conversation, by the body of its request and the provider's answer.
    ///
    /// # Errors
    ///
    /// See [`Self::add`].
    pub(super) fn change(
        &self,
        change: ConversationChange<'_>,
        owner: &[u8],
        body: &str,
        answer: &str,
    ) -> Result<()> {
        self.load();
        let begun = self.begun(owner);
        let mut request = match change {
            ConversationChange::Begin => StoredRequest {
                conversation: Object::parse(answer).ok().and_then(|answer| answer.owned("id")),
                ..begun
            },
            ConversationChange::AddItems(id) => self.in_conversation(begun, id.to_owned()),
            // Nothing has this id, so that the conversation is not known from here on.
            ConversationChange::Other(id) => StoredRequest {
                parent: Some(String::new()),
                conversation: Some(id.to_owned()),
                ..begun
            },
        };
        if request.conversation.is_none() {
            return Ok(());
        }
        let object = Object::parse(body).unwrap_or_default();
        let items = object.array("items").unwrap_or_default();
        request.items = items.into_iter().map(|item| item.get().into()).collect();
        request.asked = request.items.len();
        request.responses = vec![uuid::Uuid::new_v4().simple().to_string()];
        self.add(request)
    }

    /// Remembers a response with all its rounds.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`](ctx_core::ErrorKind::Io) if it cannot be saved, and those of the store.
    pub(super) fn add(&self, request: StoredRequest) -> Result<()> {
        if request.responses.is_empty() {
            return Ok(());
        }
        let request = Arc::new(request);
        self.lock().insert(request.clone());
        let id = self.files.save(&*request, "cannot save a stored response")?;
        let keys = request.keys().chain(request.answered().map(|(key, _)| key));
        self.files.link(keys.map(|key| self.link(&key)), &id)
    }

    /// Returns the name under which the store finds the response or item of a key.
    fn link(&self, (owner, id): &Key) -> String {
        self.salt.hash(&[b"response", owner.as_bytes(), id.as_bytes()], 16)
    }

    /// Fetches what another replica saved under a key.
    fn fetch(&self, key: &Key) -> Option<Arc<StoredRequest>> {
        let fetched: Arc<StoredRequest> = Arc::new(self.files.linked(&self.link(key))?);
        self.lock().insert(fetched.clone());
        Some(fetched)
    }

    /// Returns the response with that key.
    fn response(&self, key: &Key) -> Option<Arc<StoredRequest>> {
        let known = self.lock().responses.get(key).cloned();
        known.or_else(|| self.fetch(key))
    }

    /// Returns the newest response of a conversation, which another replica may have seen.
    fn newest(&self, key: &Key) -> Option<Arc<StoredRequest>> {
        if self.files.is_shared() {
            self.fetch(key);
        }
        self.lock().responses.get(key).cloned()
    }

    /// Returns the item with that key.
    fn item(&self, key: &Key) -> Option<Arc<str>> {
        let known = |all: &Known| all.items.get(key).cloned();
        let item = known(&self.lock());
        item.or_else(|| self.fetch(key).and_then(|_| known(&self.lock())))
    }

    /// Returns the body of a request with its whole history; `None` if it refers to something that
    /// ctx has not seen.
    pub(super) fn whole(&self, request: &StoredRequest, body: &str) -> Option<WholeHistory> {
        let (mut parts, mut bytes) = (Vec::<Arc<StoredRequest>>::new(), 0);
        let mut parent = request.parent.clone();
        while let Some(id) = parent {
            let response = self.response(&request.key(&id))?;
            bytes += response.bytes();
            // A provider may give one id twice, so that a response is its own parent.
            if bytes > MOST_RESTORED || parts.len() > MOST_RESPONSES {
                return None;
            }
            parent = response.parent.clone();
            parts.push(response);
        }
        let previous = parts.first().and_then(|response| response.responses.last().cloned());
        let items = parts.iter().rev().flat_map(|response| &response.items);
        let resolved = |item: &Arc<str>| match referenced_item(item) {
            Some(id) => self.item(&request.key(&id)),
            None => Some(item.clone()),
        };
        let items: Option<Vec<Arc<str>>> = items.chain(&request.items).map(resolved).collect();
        Some(WholeHistory { body: with_input_items(body, items?), previous })
    }
}

/// Whether a body may refer to what the provider stores.
pub(super) fn refers(route: &Route, body: &[u8]) -> bool {
    let has = |key: &str| memmem::find(body, key.as_bytes()).is_some();
    route.protocol == Protocol::Responses
        && ["previous_response_id", "item_reference", "\"conversation\""].into_iter().any(has)
}
