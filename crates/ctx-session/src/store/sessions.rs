//! What a session store holds.

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
/// Keys of shapes this version does not know are kept and written back; [`Sessions::iter`] passes
/// over them and [`Sessions::all`] shows them. So are entries that cannot be read, byte for byte:
/// they are in [`Sessions::unreadable`] and nowhere else.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sessions {
    slots: IndexMap<String, Slot>,
}

/// What stands behind a key.
#[derive(Clone, Debug, PartialEq)]
enum Slot {
    Read(Box<SessionEntry>),
    Unreadable { json: RawJson, why: String },
}

impl Slot {
    fn entry(&self) -> Option<&SessionEntry> {
        match self {
            Self::Read(entry) => Some(entry),
            Self::Unreadable { .. } => None,
        }
    }
}

impl Sessions {
    /// The session of that key.
    #[must_use]
    pub fn get(&self, key: &SessionKey) -> Option<&SessionEntry> {
        self.slots.get(&key.to_string())?.entry()
    }

    /// The session of that key, for changes.
    pub fn get_mut(&mut self, key: &SessionKey) -> Option<&mut SessionEntry> {
        match self.slots.get_mut(&key.to_string())? {
            Slot::Read(entry) => Some(entry),
            Slot::Unreadable { .. } => None,
        }
    }

    /// Sets a session and returns what was there.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] if the key has an entry that cannot be read: it may be all that tells
    /// where the session's transcript is. [`Sessions::discard`] makes room.
    pub fn insert(
        &mut self,
        key: &SessionKey,
        entry: SessionEntry,
    ) -> Result<Option<SessionEntry>> {
        match self.slots.entry(key.to_string()) {
            Entry::Vacant(slot) => {
                slot.insert(Slot::Read(Box::new(entry)));
                Ok(None)
            }
            Entry::Occupied(mut slot) => match slot.get_mut() {
                Slot::Read(old) => Ok(Some(std::mem::replace(&mut **old, entry))),
                Slot::Unreadable { why, .. } => {
                    Err(Error::new(ErrorKind::Corrupt, "the session's entry cannot be read")
                        .with("session key", key)
                        .with("cause", why)
                        .hint(
                            "correct the entry in the session store by hand, or discard it to \
                             begin a new session; its transcript stays",
                        ))
                }
            },
        }
    }

    /// Removes a session and returns it. Its transcript stays where it is, and so does an entry
    /// that cannot be read.
    pub fn remove(&mut self, key: &SessionKey) -> Option<SessionEntry> {
        let key = key.to_string();
        self.slots.get(&key)?.entry()?;
        match self.slots.shift_remove(&key)? {
            Slot::Read(entry) => Some(*entry),
            Slot::Unreadable { .. } => None,
        }
    }

    /// All sessions whose keys can be read.
    pub fn iter(&self) -> impl Iterator<Item = (SessionKey, &SessionEntry)> {
        self.all().filter_map(|(key, entry)| Some((key.parse().ok()?, entry)))
    }

    /// All sessions by their keys as they stand in the file, also those of unknown shapes.
    pub fn all(&self) -> impl Iterator<Item = (&str, &SessionEntry)> {
        self.slots.iter().filter_map(|(key, slot)| Some((key.as_str(), slot.entry()?)))
    }

    /// The keys of entries that cannot be read, and why not.
    pub fn unreadable(&self) -> impl Iterator<Item = (&str, &str)> {
        self.slots.iter().filter_map(|(key, slot)| match slot {
            Slot::Read(_) => None,
            Slot::Unreadable { why, .. } => Some((key.as_str(), why.as_str())),
        })
    }

    /// Removes an entry that cannot be read, by its key as it stands in the file, and returns its
    /// JSON. Entries that can be read stay.
    pub fn discard(&mut self, key: &str) -> Option<RawJson> {
        if self.slots.get(key)?.entry().is_some() {
            return None;
        }
        match self.slots.shift_remove(key)? {
            Slot::Read(_) => None,
            Slot::Unreadable { json, .. } => Some(json),
        }
    }

    /// How many sessions there are, those with keys of unknown shapes included, and those that
    /// cannot be read not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.all().count()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all().next().is_none()
    }
}

impl Serialize for Slot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Read(entry) => entry.serialize(serializer),
            Self::Unreadable { json, .. } => json.serialize(serializer),
        }
    }
}

impl Serialize for Sessions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.slots.serialize(serializer)
    }
}

/// A store as it stands in the file: keys may stand there twice.
pub(super) struct Pairs(Vec<(String, RawJson)>);

impl Pairs {
    /// The sessions, or the first key that stands there twice. Whichever of its entries was taken,
    /// the other would be gone with the next update.
    pub(super) fn sessions(self) -> Result<Sessions, String> {
        let mut slots = IndexMap::with_capacity(self.0.len());
        for (key, json) in self.0 {
            let slot = match serde_json::from_str(json.as_str()) {
                Ok(entry) => Slot::Read(Box::new(entry)),
                Err(e) => Slot::Unreadable { json, why: e.to_string() },
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
