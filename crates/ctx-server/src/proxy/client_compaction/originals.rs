//! Saves the items that a compaction item replaces: one of ctx, or one of the provider.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{Error, ErrorKind, Message, Result};
use ctx_dialect::wire::Protocol;
use ctx_dialect::{anthropic, openai_responses};
use ctx_disk::lru::LruFolder;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::fingerprint::Salt;

/// The content of an item begins with this.
pub(super) const PREFIX: &str = "ctx1-";

/// Maximum size of all files; beyond it, the least recently changed files are deleted.
const MOST_BYTES: u64 = 512 << 20;
/// Maximum number of files.
const MOST_FILES: usize = 4_000;
/// Maximum size of the items of one reference. The oldest ones of a longer history are left out.
const MOST_RESTORED: usize = 32 << 20;
/// The number of histories in memory.
const MOST_HELD: usize = 8;

/// The items of a compaction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::proxy) struct SavedItems {
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

/// The history of a compaction.
#[derive(Debug)]
pub(in crate::proxy) struct RestoredItems {
    pub(super) id: String,
    pub(super) items: Vec<Box<RawValue>>,
    /// What the compaction lost.
    pub(in crate::proxy) lost: Option<String>,
    /// Whether its oldest items are missing.
    pub(super) is_truncated: bool,
}

impl RestoredItems {
    /// Returns its messages, with ids that no message of a conversation has.
    pub(in crate::proxy) fn messages(
        &self,
        protocol: Protocol,
    ) -> impl Iterator<Item = (String, Message)> {
        let parse = move |item: &RawValue| match protocol {
            Protocol::Messages => anthropic::parse_raw(item),
            _ => openai_responses::parse_raw(item),
        };
        let numbered = self.items.iter().zip(1..);
        numbered.map(move |(item, n): (_, usize)| (format!("p{n}"), parse(item)))
    }
}

/// The folder of saved items.
#[derive(Debug)]
pub(in crate::proxy) struct OriginalItems {
    files: LruFolder,
    salt: Salt,
    /// The histories used last, the newest at the end.
    held: Mutex<Vec<Arc<RestoredItems>>>,
}

impl OriginalItems {
    pub(in crate::proxy) fn at(folder: PathBuf, salt: Salt) -> Self {
        let files = LruFolder::at(folder, MOST_BYTES, MOST_FILES);
        Self { files, salt, held: Mutex::default() }
    }

    /// Saves items, and returns the content of an item that replaces them and their parents. Only
    /// `owner` can restore them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if they cannot be written.
    pub(in crate::proxy) fn save(&self, saved: &SavedItems, owner: &[u8]) -> Result<String> {
        let id = self.files.save(saved, "cannot save a compacted history")?;
        Ok(format!("{PREFIX}{id}-{}", self.mac(&id, owner)))
    }

    /// Returns the items that a compaction item replaced, by its content.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for content that was not given to this owner,
    /// [`ErrorKind::NotFound`] if the items are gone.
    pub(super) fn restore(&self, content: &str, owner: &[u8]) -> Result<Arc<RestoredItems>> {
        let parts = content.strip_prefix(PREFIX).and_then(|rest| rest.split_once('-'));
        let id = parts.filter(|(id, mac)| self.mac(id, owner) == *mac).map(|(id, _)| id);
        let id = id.ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, "the compaction item is of another user or home")
        })?;
        self.restore_id(id)
    }

    /// Returns the id of the items that a provider's compaction replaces, by its content. Nobody but
    /// `owner` has this id.
    pub(in crate::proxy) fn provider_id(
        &self,
        protocol: Protocol,
        content: &str,
        owner: &[u8],
    ) -> String {
        let parts = [b"provider compaction", protocol.name().as_bytes(), content.as_bytes(), owner];
        self.salt.hash(&parts, 16)
    }

    /// Whether items have this id.
    pub(in crate::proxy) fn has(&self, id: &str) -> bool {
        self.files.path(id).exists()
    }

    /// Saves the items of a provider's compaction. If another conversation has a compaction with the
    /// same content, nothing is kept of both.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if they cannot be written.
    pub(in crate::proxy) fn save_provider(&self, id: &str, saved: &SavedItems) -> Result<()> {
        let is_other = |known: SavedItems| known.session != saved.session;
        let nothing = SavedItems::default();
        let saved = if self.read(id).is_ok_and(is_other) { &nothing } else { saved };
        self.files.save_as(id, saved, "cannot save a compacted history")?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|known| known.id != id);
        Ok(())
    }

    /// Returns the items with this id, and those of their parents.
    fn restore_id(&self, id: &str) -> Result<Arc<RestoredItems>> {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let known = held.iter().position(|known| known.id == id);
        let restored = match known.map(|at| held.remove(at)) {
            Some(known) => known,
            None => Arc::new(self.with_parents(id, self.read(id)?)),
        };
        held.push(restored.clone());
        if held.len() > MOST_HELD {
            held.remove(0);
        }
        Ok(restored)
    }

    /// Returns the items that a provider's compaction replaced, if ctx saw it made.
    pub(in crate::proxy) fn restore_provider(&self, id: &str) -> Option<Arc<RestoredItems>> {
        self.restore_id(id).ok().filter(|restored| !restored.items.is_empty())
    }

    /// Returns the items of a compaction after those of its parents.
    pub(in crate::proxy) fn with_parents(&self, id: &str, newest: SavedItems) -> RestoredItems {
        let (mut parent, lost) = (newest.parent, newest.lost);
        let mut bytes: usize = newest.items.iter().map(|item| item.get().len()).sum();
        let mut parts = vec![newest.items];
        // A provider may give one content twice, so that a compaction is its own parent.
        let mut known = HashSet::from([id.to_owned()]);
        while let Some(of) = parent.as_deref()
            && bytes <= MOST_RESTORED
            && known.insert(of.to_owned())
        {
            let Ok(saved) = self.read(of) else { break };
            bytes += saved.items.iter().map(|item| item.get().len()).sum::<usize>();
            (parent, _) = (saved.parent, parts.push(saved.items));
        }
        let items = parts.into_iter().rev().flatten().collect();
        RestoredItems { id: id.to_owned(), items, lost, is_truncated: parent.is_some() }
    }

    fn read(&self, id: &str) -> Result<SavedItems> {
        let gone = || Error::new(ErrorKind::NotFound, "the history of a compaction item is gone");
        if !id.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(gone());
        }
        let bytes = ctx_disk::read(self.files.path(id)).map_err(|error| gone().source(error))?;
        serde_json::from_slice(&bytes).map_err(|error| gone().source(error))
    }

    /// Returns the authentication code of a reference.
    fn mac(&self, id: &str, owner: &[u8]) -> String {
        self.salt.hash(&[b"compaction", id.as_bytes(), owner], 16)
    }
}
