//! The content of a session store.

use std::collections::HashSet;
use std::fmt;

use ctx_core::{Error, ErrorKind, RawJson, Result};
use indexmap::IndexMap;
use indexmap::map::Entry;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde::{Serialize, Serializer};

use super::SessionEntry;
use crate::key::SessionKey;

/// All sessions of one agent, in the order of the file.
///
/// Keys of unknown shapes are kept and written back; [`Sessions::iter`] skips them and
/// [`Sessions::all`] includes them. Entries that cannot be read are also kept byte for byte; only
/// [`Sessions::unreadable`] returns them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Sessions {
    slots: IndexMap<String, StoredEntry>,
}

/// The value of a key.
#[derive(Clone, Debug, PartialEq)]
enum StoredEntry {
    Read(Box<SessionEntry>),
    Unreadable { json: RawJson, why: String },
}

impl StoredEntry {
    fn entry(&self) -> Option<&SessionEntry> {
        match self {
            Self::Read(entry) => Some(entry),
            Self::Unreadable { .. } => None,
        }
    }
}

impl Sessions {
    /// Returns the session with that key.
    pub fn get(&self, key: &SessionKey) -> Option<&SessionEntry> {
        self.slots.get(&key.to_string())?.entry()
    }

    /// Returns the session with that key for modification.
    pub fn get_mut(&mut self, key: &SessionKey) -> Option<&mut SessionEntry> {
        match self.slots.get_mut(&key.to_string())? {
            StoredEntry::Read(entry) => Some(entry),
            StoredEntry::Unreadable { .. } => None,
        }
    }

    /// Sets a session and returns the previous one.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] if the key has an unreadable entry: it may be the only record of
    /// where the session's transcript is. Correct it in the file.
    pub fn insert(
        &mut self,
        key: &SessionKey,
        entry: SessionEntry,
    ) -> Result<Option<SessionEntry>> {
        match self.slots.entry(key.to_string()) {
            Entry::Vacant(slot) => {
                slot.insert(StoredEntry::Read(Box::new(entry)));
                Ok(None)
            }
            Entry::Occupied(mut slot) => match slot.get_mut() {
                StoredEntry::Read(old) => Ok(Some(std::mem::replace(&mut **old, entry))),
                StoredEntry::Unreadable { why, .. } => {
                    Err(Error::new(ErrorKind::Corrupt, "the session's entry cannot be read")
                        .with("session key", key)
                        .with("cause", why)
                        .hint(
                            "correct the entry in the session store, or remove it there to \
                             begin a new session; its transcript stays",
                        ))
                }
            },
        }
    }

    /// Removes a session and returns it. Its transcript is not removed, and unreadable entries
    /// stay.
    pub fn remove(&mut self, key: &SessionKey) -> Option<SessionEntry> {
        let key = key.to_string();
        self.slots.get(&key)?.entry()?;
        match self.slots.shift_remove(&key)? {
            StoredEntry::Read(entry) => Some(*entry),
            StoredEntry::Unreadable { .. } => None,
        }
    }

    /// Returns all sessions with valid keys.
    pub fn iter(&self) -> impl Iterator<Item = (SessionKey, &SessionEntry)> {
        self.all().filter_map(|(key, entry)| Some((key.parse().ok()?, entry)))
    }

    /// Returns all sessions with their keys as written in the file, including unknown shapes.
    pub fn all(&self) -> impl Iterator<Item = (&str, &SessionEntry)> {
        self.slots.iter().filter_map(|(key, slot)| Some((key.as_str(), slot.entry()?)))
    }

    /// Returns the keys of unreadable entries, with the reason.
    pub fn unreadable(&self) -> impl Iterator<Item = (&str, &str)> {
        self.slots.iter().filter_map(|(key, slot)| match slot {
            StoredEntry::Read(_) => None,
            StoredEntry::Unreadable { why, .. } => Some((key.as_str(), why.as_str())),
        })
    }
}

impl Serialize for StoredEntry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Read(entry) => entry.serialize(serializer),
            Self::Unreadable { json, .. } => json.serialize(serializer),
        }
    }
}

/// A store as written in the file: keys may occur twice.
#[derive(Default)]
pub(super) struct Pairs(Vec<(String, RawJson)>);

impl Pairs {
    /// Returns the session with that key, if its entry can be read; as an error, a key that occurs
    /// twice.
    pub(super) fn entry(&self, key: &str) -> Result<Option<SessionEntry>, String> {
        let mut seen = HashSet::with_capacity(self.0.len());
        if let Some((twice, _)) = self.0.iter().find(|(key, _)| !seen.insert(key)) {
            return Err(twice.clone());
        }
        let json = self.0.iter().find(|(known, _)| known == key).map(|(_, json)| json);
        Ok(json.and_then(|json| serde_json::from_str(json.as_str()).ok()))
    }

    /// Returns the sessions or, as an error, the first key that occurs twice: the next update would
    /// lose one of its entries.
    pub(super) fn sessions(self) -> Result<Sessions, String> {
        let mut slots = IndexMap::with_capacity(self.0.len());
        for (key, json) in self.0 {
            let slot = match serde_json::from_str(json.as_str()) {
                Ok(entry) => StoredEntry::Read(Box::new(entry)),
                Err(e) => StoredEntry::Unreadable { json, why: e.to_string() },
            };
            match slots.entry(key) {
                Entry::Vacant(vacant) => drop(vacant.insert(slot)),
                Entry::Occupied(taken) => return Err(taken.key().clone()),
            }
        }
        Ok(Sessions { slots })
    }
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PairsVisitor;
        impl<'de> Visitor<'de> for PairsVisitor {
            type Value = Pairs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object from session key to session")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(Pairs(pairs))
            }
        }
        deserializer.deserialize_map(PairsVisitor)
    }
}
