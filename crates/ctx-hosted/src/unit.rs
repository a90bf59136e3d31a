//! Messages as sent by a host, and how they are recognised.

use std::hash::BuildHasher;
use std::sync::{Arc, LazyLock};

use ctx_core::{ContentHash, Message, Result};
use foldhash::quality::RandomState;

/// A message as sent by a host.
pub trait Unit {
    /// Returns the source text.
    fn raw(&self) -> &str;

    /// Whether it is the unit at this place of the last list, as its host says: it is not compared.
    fn is_known(&self) -> bool {
        false
    }

    /// Returns the hash of the source text.
    fn digest(&self) -> UnitDigest {
        digest(self.raw())
    }

    /// Parses the message. Called only if the text is not recognised.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`](ctx_core::ErrorKind::InvalidInput) for an invalid message.
    fn read(&self) -> Result<Arc<Message>>;

    /// Returns the message and the hash of its content.
    ///
    /// # Errors
    ///
    /// See [`read`](Self::read).
    fn content(&self) -> Result<(Arc<Message>, ContentHash)> {
        let message = self.read()?;
        let hash = ContentHash::of(&message);
        Ok((message, hash))
    }
}

/// What a session keeps of a message's source text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retain {
    /// The text: the host sends each message once.
    #[default]
    Text,
    /// A hash: the host repeats the text in every request.
    Digest,
}

/// The source of a message, to recognise it byte for byte.
#[derive(Clone, Debug)]
pub enum UnitSource {
    /// None: the message was read from a file.
    Unknown,
    /// The text.
    Text(Arc<str>),
    /// Its hash.
    Digest(UnitDigest),
}

/// A hash of a message's source text, with keys of this process: it compares texts in memory, and is
/// much faster than one that can be stored.
pub type UnitDigest = [u64; 2];

/// Returns the hash of a message's source text.
pub fn digest(raw: impl AsRef<[u8]>) -> UnitDigest {
    static KEYS: LazyLock<[RandomState; 2]> = LazyLock::new(Default::default);
    KEYS.each_ref().map(|key| key.hash_one(raw.as_ref()))
}

impl UnitSource {
    pub(crate) fn of(unit: &impl Unit, retain: Retain) -> Self {
        match retain {
            Retain::Text => Self::Text(Arc::from(unit.raw())),
            Retain::Digest => Self::Digest(unit.digest()),
        }
    }

    pub(crate) fn is(&self, unit: &impl Unit) -> bool {
        match self {
            Self::Unknown => false,
            Self::Text(text) => **text == *unit.raw(),
            Self::Digest(known) => *known == unit.digest(),
        }
    }

    /// Returns the text, if it was kept.
    pub fn text(&self) -> Option<&Arc<str>> {
        match self {
            Self::Text(text) => Some(text),
            Self::Unknown | Self::Digest(_) => None,
        }
    }
}
