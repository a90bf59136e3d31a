//! Projections: a form that was sent is sent again as long as its source is unchanged.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::{EntryId, Message};

/// The hash of a message's content: role and blocks, without metadata. 128 bits of BLAKE3.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(u128);

impl ContentHash {
    /// Computes the hash of a message.
    #[must_use]
    pub fn of(message: &Message) -> Self {
        let mut hasher = Blake(blake3::Hasher::new());
        message.role.name().hash(&mut hasher);
        message.blocks.hash(&mut hasher);
        let mut first = [0; 16];
        first.copy_from_slice(&hasher.0.finalize().as_bytes()[..16]);
        Self(u128::from_le_bytes(first))
    }
}

/// Feeds `#[derive(Hash)]` into BLAKE3. Integers are written little-endian, so that a stored hash
/// is the same on all machines.
struct Blake(blake3::Hasher);

impl Hasher for Blake {
    fn write(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }
    fn write_u16(&mut self, n: u16) {
        self.write(&n.to_le_bytes());
    }
    fn write_u32(&mut self, n: u32) {
        self.write(&n.to_le_bytes());
    }
    fn write_u64(&mut self, n: u64) {
        self.write(&n.to_le_bytes());
    }
    fn write_usize(&mut self, n: usize) {
        self.write(&(n as u64).to_le_bytes());
    }
    fn write_isize(&mut self, n: isize) {
        self.write(&(n as i64).to_le_bytes());
    }
    fn finish(&self) -> u64 {
        0
    }
}

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for ContentHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ContentHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(serde::de::Error::custom)
    }
}

/// Identifies the message of a projection by its entry and its content, so two equal messages can
/// have different forms. If the content changes, the projection no longer applies.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ProjectionKey {
    /// The entry.
    pub entry: EntryId,
    /// The content hash of the source message.
    pub hash: ContentHash,
}

/// The form in which a message is sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Projected {
    /// It is dropped.
    Dropped,
    /// It is replaced by this message.
    Replaced(Arc<Message>),
}

/// A message's form, and the layer that made it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Projection {
    /// The message.
    pub key: ProjectionKey,
    /// The layer that made the form.
    pub layer: Cow<'static, str>,
    /// The form.
    pub form: Projected,
    /// The reason.
    pub reason: Cow<'static, str>,
    /// The messages to which the form points. It applies only while they are sent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub points_to: Vec<ProjectionKey>,
}

impl Projection {
    /// Returns the entry of the message, and those to which its form points.
    pub fn entries(&self) -> impl Iterator<Item = &EntryId> {
        std::iter::once(&self.key).chain(&self.points_to).map(|key| &key.entry)
    }
}
