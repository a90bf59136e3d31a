//! The items that the compactions of clients replaced, in files of a home.

use std::collections::HashSet;
use std::sync::Arc;

use ctx_core::{Entry, EntryId, Error, ErrorKind, Message, Result, Timestamp};
use ctx_dialect::json::Object;
use ctx_dialect::wire::Protocol;
use ctx_dialect::{anthropic, openai_responses};
use ctx_disk::lru::LruFolder;
use ctx_runtime::lookup::cited::find_id;
use ctx_session::Home;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::originals::PREFIX;
use crate::proxy::replica::{ReplicaStore, SharedFolder};

/// Maximum size of all files; beyond it, the least recently changed files are deleted.
const MOST_BYTES: u64 = 512 << 20;
/// Maximum number of files.
const MOST_FILES: usize = 4_000;
/// Maximum size of the items of one compaction. The oldest ones of a longer history are left out.
const MOST_RESTORED: usize = 32 << 20;

/// The items of a compaction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::proxy) struct SavedItems {
    /// The API of the items; missing in files of earlier versions.
    #[serde(default)]
    pub(in crate::proxy) protocol: Option<Protocol>,
    /// The conversation.
    pub(in crate::proxy) session: Option<String>,
    /// The earlier compaction that the items follow.
    pub(in crate::proxy) parent: Option<String>,
    /// The items after it, oldest first.
    pub(in crate::proxy) items: Vec<Box<RawValue>>,
    /// What a compaction of the provider lost, if it can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::proxy) lost: Option<String>,
}

/// A compaction that a client got through the proxy.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SavedCompaction {
    /// Its id in this home.
    pub id: String,
    /// When it was saved.
    pub timestamp: Option<Timestamp>,
    /// The conversation of the proxy, if known.
    pub session: Option<String>,
    /// The API of its messages; unknown without messages.
    pub protocol: Option<Protocol>,
    /// The number of its messages, without those of its parent.
    pub messages: usize,
    /// The earlier compaction that the messages follow.
    pub parent: Option<String>,
}

/// The history of a compaction.
#[derive(Debug)]
pub struct RestoredItems {
    pub(super) id: String,
    protocol: Option<Protocol>,
    pub(super) items: Vec<Box<RawValue>>,
    /// What the compaction lost.
    pub(in crate::proxy) lost: Option<String>,
    /// The compaction whose messages come before these, if they are not among them: they are gone,
    /// or too many.
    pub missing: Option<String>,
}

impl RestoredItems {
    /// Returns its messages, with ids that no message of a conversation has.
    pub(in crate::proxy) fn messages(&self) -> impl Iterator<Item = (String, Message)> {
        let parse = match self.protocol {
            Some(Protocol::Messages) => anthropic::parse_raw,
            _ => openai_responses::parse_raw,
        };
        let numbered = self.items.iter().zip(1..);
        numbered.map(move |(item, n): (_, usize)| (format!("p{n}"), parse(item)))
    }

    /// Returns its messages, oldest first.
    pub fn entries(&self) -> Vec<Arc<Entry>> {
        let entry = |(id, message)| Arc::new(Entry::in_memory(EntryId::from(id), message));
        self.messages().map(entry).collect()
    }
}

/// The saved compactions of a home.
#[derive(Debug)]
pub struct SavedCompactions {
    pub(super) files: SharedFolder,
}

impl SavedCompactions {
    /// Lists the compactions of a home. Nothing is written.
    pub fn of(home: &Home) -> Self {
        Self::shared(home, None)
    }

    /// Combines the compactions of a home with those of the replicas.
    pub(in crate::proxy) fn shared(home: &Home, replicas: Option<ReplicaStore>) -> Self {
        let folder = home.root.join("proxy").join("compactions");
        let files = LruFolder::at(folder, MOST_BYTES, MOST_FILES);
        Self { files: SharedFolder::new(files, "compactions", replicas) }
    }

    /// Returns their ids, the oldest first.
    pub fn ids(&self) -> Vec<String> {
        self.files.oldest_first().into_iter().filter(|id| is_id(id)).collect()
    }

    /// Returns the id that begins with `named`, or that an item of ctx with this content refers to.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], and [`ErrorKind::InvalidInput`] for an ambiguous beginning.
    pub fn find(&self, named: &str) -> Result<String> {
        let content = named.strip_prefix(PREFIX);
        let id = content.and_then(|rest| rest.split('-').next()).unwrap_or(named);
        let ids = self.ids();
        let found = find_id(ids.iter().map(String::as_str), id, "compaction");
        found.map(str::to_owned).map_err(|error| match error.kind() {
            ErrorKind::NotFound => error.hint("`ctx compactions --proxy` lists them"),
            _ => error,
        })
    }

    /// Returns a compaction without its messages.
    ///
    /// # Errors
    ///
    /// Those of [`Self::restore`].
    pub fn get(&self, id: &str) -> Result<SavedCompaction> {
        let saved = self.read(id)?;
        let written = std::fs::metadata(self.files.path(id)).and_then(|file| file.modified());
        Ok(SavedCompaction {
            id: id.to_owned(),
            timestamp: written.ok().map(Timestamp::from),
            protocol: saved.protocol.or_else(|| protocol_of(&saved.items)),
            messages: saved.items.len(),
            session: saved.session,
            parent: saved.parent,
        })
    }

    /// Returns the history of a compaction, with that of its parents.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] or [`ErrorKind::Io`] if its file cannot be read,
    /// [`ErrorKind::Corrupt`] if it is damaged.
    pub fn restore(&self, id: &str) -> Result<RestoredItems> {
        Ok(self.with_parents(id, self.read(id)?))
    }

    /// Returns the items of a compaction after those of its parents.
    pub(in crate::proxy) fn with_parents(&self, id: &str, newest: SavedItems) -> RestoredItems {
        let bytes = |items: &[Box<RawValue>]| items.iter().map(|i| i.get().len()).sum::<usize>();
        let mut left = MOST_RESTORED.checked_sub(bytes(&newest.items));
        let mut known = HashSet::from([id.to_owned()]);
        // A provider may give one content twice, so that a compaction is its own parent.
        let mut missing = newest.parent.filter(|of| known.insert(of.clone()));
        let mut parts = vec![newest.items];
        while let (Some(of), Some(most)) = (&missing, left) {
            let Ok(saved) = self.read(of) else { break };
            left = most.checked_sub(bytes(&saved.items));
            parts.push(saved.items);
            missing = saved.parent.filter(|of| known.insert(of.clone()));
        }
        let items: Vec<_> = parts.into_iter().rev().flatten().collect();
        let protocol = newest.protocol.or_else(|| protocol_of(&items));
        RestoredItems { id: id.to_owned(), protocol, items, lost: newest.lost, missing }
    }

    pub(super) fn read(&self, id: &str) -> Result<SavedItems> {
        let path = self.files.path(id);
        if !is_id(id) {
            return Err(Error::new(ErrorKind::NotFound, "invalid id of a compaction"));
        }
        if !path.exists()
            && let Some(fetched) = self.files.read(id)
        {
            return Ok(fetched);
        }
        let failed = |error| ctx_disk::io_error("cannot read a compacted history", &path, error);
        let bytes = ctx_disk::read(&path).map_err(failed)?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::new(ErrorKind::Corrupt, "a compacted history is damaged")
                .with("path", path.display())
                .hint("restore the file from a backup, or delete it")
                .source(error)
        })
    }
}

fn is_id(id: &str) -> bool {
    id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the API of items by their form; `None` without items. Only those of the Responses API
/// have a type, or parts with one of its types. Others have the same form in both.
fn protocol_of(items: &[Box<RawValue>]) -> Option<Protocol> {
    let is_part = |part: &RawValue| {
        let kind = Object::of(part).and_then(|part| part.owned("type"));
        kind.is_some_and(|kind| kind.starts_with("input_") || kind.starts_with("output_"))
    };
    let is_item = |item: &RawValue| {
        let Some(item) = Object::of(item) else { return false };
        item.has("type") || item.array("content").is_some_and(|all| all.into_iter().any(is_part))
    };
    items.first()?;
    Some(if items.iter().any(|item| is_item(item)) {
        Protocol::Responses
    } else {
        Protocol::Messages
    })
}
