//! Histories that a provider stores, kept from the requests and answers that pass.
//!
//! A request of the Responses API may refer to an earlier response (`previous_response_id`) or to
//! items of one (`item_reference`). If the whole history is known and does not fit, it is sent, cut,
//! in place of the reference.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use ctx_dialect::json::Object;
use ctx_dialect::wire::{
    Items, Protocol, Route, previous_response, referenced_item, with_input_items,
};
use memchr::memmem;
use serde_json::json;

use super::retrieval::NAMES;

/// Maximum size of all items in bytes; beyond it, the oldest responses are forgotten.
const MOST_BYTES: usize = 128 << 20;
/// Maximum number of responses.
const MOST_RESPONSES: usize = 20_000;
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
    /// The id at the provider. The client may know it by that of an earlier round.
    id: String,
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
    /// The ids of the answer's items, with these.
    answered: Vec<(Key, Arc<str>)>,
    /// The ids of the answers of all rounds.
    responses: Vec<String>,
}

/// A history, and the id of the response that the request continues at the provider.
pub(super) struct WholeHistory {
    pub(super) body: String,
    pub(super) previous: Option<String>,
}

impl StoredRequest {
    /// Returns the request of a client, unless the provider does not store it.
    pub(super) fn of(route: &Route, body: &str, owner: &[u8]) -> Option<Self> {
        let (object, _) = Object::parse_prefix(body);
        if route.protocol != Protocol::Responses || object.is_false("store") {
            return None;
        }
        let owner = blake3::hash(owner);
        let parent = previous_response(body).map(|id| (owner, id));
        let items = match object.text("input") {
            Some(text) => vec![json!({ "role": "user", "content": text }).to_string().into()],
            // A request for a compaction may have the reference alone.
            None if parent.is_some() && !object.has("input") => Vec::new(),
            None => Items::of(body)?.iter().map(Arc::from).collect(),
        };
        Some(Self { owner, parent, items, answered: Vec::new(), responses: Vec::new() })
    }

    /// Adds the answer of a round, without the calls of ctx's tools: the client does not know them.
    pub(super) fn add_round(&mut self, answer: &str) {
        let Ok(answer) = Object::parse(answer) else { return };
        self.responses.extend(answer.owned("id"));
        for raw in answer.array("output").unwrap_or_default() {
            let item = Object::of(raw).unwrap_or_default();
            if item.text("name").is_some_and(|name| NAMES.contains(&&*name)) {
                continue;
            }
            let json: Arc<str> = raw.get().into();
            self.answered.extend(item.owned("id").map(|id| ((self.owner, id), json.clone())));
            self.items.push(json);
        }
    }
}

impl StoredResponses {
    /// Remembers a response with all its rounds.
    pub(super) fn add(&self, request: StoredRequest) {
        let StoredRequest { owner, parent, items, answered, responses } = request;
        let Some(id) = responses.last().cloned() else { return };
        let bytes = items.iter().map(|item| item.len()).sum();
        let ids = answered.iter().map(|(key, _)| key.clone()).collect();
        let response = Arc::new(StoredResponse { id, parent, items, ids, bytes });
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.items.extend(answered);
        for id in responses {
            let key = (owner, id);
            all.bytes += bytes;
            all.order.push_back(key.clone());
            if let Some(old) = all.responses.insert(key, response.clone()) {
                all.bytes -= old.bytes;
            }
        }
        while (all.bytes > MOST_BYTES || all.order.len() > MOST_RESPONSES)
            && let Some(oldest) = all.order.pop_front()
        {
            let Some(response) = all.responses.remove(&oldest) else { continue };
            all.bytes -= response.bytes;
            for id in &response.ids {
                all.items.remove(id);
            }
        }
    }

    /// Returns the body of a request with its whole history; `None` if it refers to something that
    /// ctx has not seen.
    pub(super) fn whole(&self, request: &StoredRequest, body: &str) -> Option<WholeHistory> {
        let (parts, previous) = self.history(request)?;
        let items = parts.iter().rev().flat_map(|response| &response.items).cloned();
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let resolved = |item: Arc<str>| match referenced_item(&item) {
            Some(id) => all.items.get(&(request.owner, id)).cloned(),
            None => Some(item),
        };
        let own = request.items.iter().cloned();
        let items: Option<Vec<Arc<str>>> = items.chain(own).map(resolved).collect();
        drop(all);
        Some(WholeHistory { body: with_input_items(body, items?), previous })
    }

    /// Returns the responses that a request continues, newest first, and the id of the first.
    fn history(
        &self,
        request: &StoredRequest,
    ) -> Option<(Vec<Arc<StoredResponse>>, Option<String>)> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut parts, mut bytes) = (Vec::<Arc<StoredResponse>>::new(), 0);
        let mut parent = request.parent.clone();
        while let Some(key) = parent {
            let response = all.responses.get(&key)?.clone();
            bytes += response.bytes;
            // A provider may give one id twice, so that a response is its own parent.
            if bytes > MOST_RESTORED || parts.len() > MOST_RESPONSES {
                return None;
            }
            parent = response.parent.clone();
            parts.push(response);
        }
        let previous = parts.first().map(|response| response.id.clone());
        Some((parts, previous))
    }
}

/// Whether a body may refer to what the provider stores.
pub(super) fn refers(route: &Route, body: &[u8]) -> bool {
    let has = |key: &str| memmem::find(body, key.as_bytes()).is_some();
    route.protocol == Protocol::Responses && (has("previous_response_id") || has("item_reference"))
}
