//! Histories that a provider stores, kept from the requests and answers that pass.
//!
//! A request of the Responses API may refer to an earlier response (`previous_response_id`) or to
//! items of one (`item_reference`). If the whole history is known and does not fit, it is sent, cut,
//! in place of the reference.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use ctx_dialect::json::Object;
use ctx_dialect::wire::{Items, Protocol, Route, previous_response, referenced_item};
use memchr::memmem;

/// Maximum size of all items in bytes; beyond it, the oldest responses are forgotten.
const MOST_BYTES: usize = 128 << 20;
/// Maximum size of one history.
const MOST_RESTORED: usize = 32 << 20;

/// The responses of a provider, as far as ctx saw them.
#[derive(Debug, Default)]
pub(super) struct StoredResponses(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    responses: HashMap<Key, Arc<StoredResponse>>,
    /// The items of answers.
    items: HashMap<Key, Arc<str>>,
    /// Oldest first.
    order: VecDeque<Key>,
    bytes: usize,
}

/// The hash of the owner, and an id of the provider.
type Key = (blake3::Hash, String);

#[derive(Debug)]
struct StoredResponse {
    parent: Option<Key>,
    /// The items of the request and of its answer.
    items: Vec<Arc<str>>,
    /// The ids of the answer's items.
    ids: Vec<Key>,
    bytes: usize,
}

/// A request whose answer the provider stores.
#[derive(Debug)]
pub(super) struct StoredRequest {
    owner: blake3::Hash,
    parent: Option<Key>,
    items: Vec<Arc<str>>,
    /// The ids of the answers of earlier rounds, by which the client may know the last one.
    aliases: Vec<Key>,
}

impl StoredRequest {
    /// Returns the request of a client, unless the provider does not store it.
    pub(super) fn of(route: &Route, body: &str, owner: &[u8]) -> Option<Self> {
        let (object, _) = Object::parse_prefix(body);
        if route.protocol != Protocol::Responses || route.is_compaction || object.is_false("store")
        {
            return None;
        }
        let owner = blake3::hash(owner);
        let parent = previous_response(body).map(|id| (owner, id));
        let items = match object.text("input") {
            Some(text) => vec![user_item(&text).into()],
            None => Items::of(body)?.iter().map(Arc::from).collect(),
        };
        Some(Self { owner, parent, items, aliases: Vec::new() })
    }

    /// Adds the answer of a round that another one followed.
    pub(super) fn add_round(&mut self, answer: &str) {
        let id = Object::parse_prefix(answer).0.owned("id");
        self.aliases.extend(id.map(|id| (self.owner, id)));
    }
}

impl StoredResponses {
    /// Remembers a response: `answer` is its object.
    pub(super) fn add(&self, request: StoredRequest, answer: &str) {
        let Ok(answer) = Object::parse(answer) else { return };
        let Some(id) = answer.owned("id") else { return };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let StoredRequest { owner, parent, mut items, aliases } = request;
        let mut ids = Vec::new();
        for raw in answer.array("output").unwrap_or_default() {
            let item: Arc<str> = raw.get().into();
            if let Some(id) = Object::of(raw).and_then(|item| item.owned("id")) {
                all.items.insert((owner, id.clone()), item.clone());
                ids.push((owner, id));
            }
            items.push(item);
        }
        let bytes = items.iter().map(|item| item.len()).sum();
        let response = Arc::new(StoredResponse { parent, items, ids, bytes });
        for key in aliases.into_iter().chain([(owner, id)]) {
            all.bytes += bytes;
            all.order.push_back(key.clone());
            if let Some(old) = all.responses.insert(key, response.clone()) {
                all.bytes -= old.bytes;
            }
        }
        while all.bytes > MOST_BYTES
            && let Some(oldest) = all.order.pop_front()
        {
            let Some(response) = all.responses.remove(&oldest) else { continue };
            all.bytes -= response.bytes;
            for id in &response.ids {
                all.items.remove(id);
            }
        }
    }

    /// Returns a body with its whole history; `None` if it refers to nothing, or to something that
    /// ctx has not seen.
    pub(super) fn whole(&self, route: &Route, body: &str, owner: &[u8]) -> Option<String> {
        if !refers(route, body.as_bytes()) {
            return None;
        }
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let request = StoredRequest::of(route, body, owner)?;
        let mut parts = vec![request.items.iter().collect::<Vec<_>>()];
        let (mut parent, mut bytes) = (request.parent.as_ref(), 0);
        while let Some(key) = parent {
            let response = all.responses.get(key)?;
            bytes += response.bytes;
            if bytes > MOST_RESTORED {
                return None;
            }
            parts.push(response.items.iter().collect());
            parent = response.parent.as_ref();
        }
        let items: Option<Vec<&str>> = parts
            .into_iter()
            .rev()
            .flatten()
            .map(|item| match referenced_item(item) {
                Some(id) => all.items.get(&(request.owner, id)).map(|item| &**item),
                None => Some(&**item),
            })
            .collect();
        let items = items?;
        Some(match Items::of(body) {
            Some(own) => own.complete(items),
            None => {
                let text = Object::parse_prefix(body).0.get("input")?.get();
                let listed = body.replacen(text, &format!("[{}]", user_item("")), 1);
                Items::of(&listed)?.complete(items)
            }
        })
    }
}

/// Whether a body may refer to what the provider stores.
pub(super) fn refers(route: &Route, body: &[u8]) -> bool {
    let has = |key: &str| memmem::find(body, key.as_bytes()).is_some();
    route.protocol == Protocol::Responses && (has("previous_response_id") || has("item_reference"))
}

fn user_item(text: &str) -> String {
    serde_json::json!({ "role": "user", "content": text }).to_string()
}
