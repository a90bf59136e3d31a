//! Saves the items that a compaction item replaces: one of ctx, or one of the provider.

use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::wire::Protocol;

use super::super::fingerprint::Salt;
use super::saved::{RestoredItems, SavedCompactions, SavedItems};

/// The content of an item begins with this.
pub(super) const PREFIX: &str = "ctx1-";

/// The number of histories in memory.
const MOST_HELD: usize = 8;

/// The saved items, with the secret of their ids and references.
#[derive(Debug)]
pub(in crate::proxy) struct OriginalItems {
    pub(in crate::proxy) saved: SavedCompactions,
    salt: Salt,
    /// The histories used last, the newest at the end.
    held: Mutex<Vec<Arc<RestoredItems>>>,
}

impl OriginalItems {
    pub(in crate::proxy) fn new(saved: SavedCompactions, salt: Salt) -> Self {
        Self { saved, salt, held: Mutex::default() }
    }

    /// Saves items, and returns the content of an item that replaces them and their parents. Only
    /// `owner` can restore them.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if they cannot be written.
    pub(in crate::proxy) fn save(&self, saved: &SavedItems, owner: &[u8]) -> Result<String> {
        let id = self.saved.files.save(saved, "cannot save a compacted history")?;
        Ok(format!("{PREFIX}{id}-{}", self.mac(&id, owner)))
    }

    /// Returns the items that a compaction item replaced, by its content.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`] for content that was not given to this owner, and those of
    /// [`SavedCompactions::restore`].
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
        self.saved.files.has(id)
    }

    /// Saves the items of a provider's compaction. If another conversation has a compaction with the
    /// same content, nothing is kept of both.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if they cannot be written.
    pub(in crate::proxy) fn save_provider(&self, id: &str, saved: &SavedItems) -> Result<()> {
        let is_other = |known: SavedItems| known.session != saved.session;
        let nothing = SavedItems { protocol: saved.protocol, ..SavedItems::default() };
        let saved = if self.saved.read(id).is_ok_and(is_other) { &nothing } else { saved };
        self.saved.files.save_as(id, saved, "cannot save a compacted history")?;
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
            None => Arc::new(self.saved.restore(id)?),
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

    /// Returns the authentication code of a reference.
    fn mac(&self, id: &str, owner: &[u8]) -> String {
        self.salt.hash(&[b"compaction", id.as_bytes(), owner], 16)
    }
}
