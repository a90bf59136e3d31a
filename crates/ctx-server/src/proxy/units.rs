//! The units of a request, matched against known conversations.

use std::sync::{Arc, OnceLock};

use ctx_core::{ContentHash, EntryId, Message, Result, Role};
use ctx_dialect::wire;
use ctx_hosted::{Unit, UnitDigest, digest};

use super::parallel::parallel_map;

/// A unit of a request, with its hash and parsed message.
pub(super) struct RequestUnit<'a> {
    unit: &'a wire::Unit<'a>,
    digest: UnitDigest,
    read: OnceLock<(Arc<Message>, ContentHash)>,
}

impl<'a> RequestUnit<'a> {
    /// Returns all units of a request.
    pub(super) fn all(request: &'a wire::Request<'a>) -> Vec<Self> {
        let one = |unit: &'a wire::Unit<'a>| Self {
            unit,
            digest: digest(unit.raw),
            read: OnceLock::new(),
        };
        request.units.iter().map(one).collect()
    }

    /// Parses the units that are not recognised by their bytes.
    pub(super) fn parse_new(units: &[Self], ids: &[Option<EntryId>]) {
        let new: Vec<&Self> =
            units.iter().zip(ids).filter(|(_, id)| id.is_none()).map(|(unit, _)| unit).collect();
        parallel_map(&new, |unit| unit.unit.raw.len(), |unit| unit.hash());
    }

    /// Returns the message.
    pub(super) fn message(&self) -> &Message {
        &self.known().0
    }

    /// Returns the hash of the message.
    pub(super) fn hash(&self) -> ContentHash {
        self.known().1
    }

    fn known(&self) -> &(Arc<Message>, ContentHash) {
        self.read.get_or_init(|| {
            let message = self.unit.read();
            let hash = ContentHash::of(&message);
            (message, hash)
        })
    }

    pub(super) fn is_instruction(&self) -> bool {
        self.message().role == Role::System
    }
}

impl Unit for RequestUnit<'_> {
    fn raw(&self) -> &str {
        self.unit.raw
    }

    fn digest(&self) -> UnitDigest {
        self.digest
    }

    fn read(&self) -> Result<Arc<Message>> {
        Ok(self.known().0.clone())
    }

    fn content(&self) -> Result<(Arc<Message>, ContentHash)> {
        Ok(self.known().clone())
    }
}

/// Returns the hash of a whole history.
pub(super) fn digest_of_all(units: &[RequestUnit<'_>]) -> UnitDigest {
    let digests = units.iter().flat_map(|unit| unit.digest).flat_map(u64::to_le_bytes);
    digest(digests.collect::<Vec<u8>>())
}

/// A known message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KnownMessage {
    pub(super) id: EntryId,
    /// The hash of the source text; `None` after a restart.
    pub(super) digest: Option<UnitDigest>,
    pub(super) hash: ContentHash,
    pub(super) is_instruction: bool,
}

impl KnownMessage {
    fn is(&self, unit: &RequestUnit<'_>) -> bool {
        self.digest == Some(unit.digest) || self.hash == unit.hash()
    }
}

/// The common part of a request and a conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CommonPrefix {
    /// The number of common messages at the beginning, without instructions, which may change
    /// between requests.
    pub(super) messages: usize,
    /// The number of further known messages that are missing from the request.
    pub(super) removed: usize,
    /// For each unit the id of its message, within the common part.
    pub(super) ids: Vec<Option<EntryId>>,
}

/// Compares the beginning of a request with a conversation.
pub(super) fn common_prefix(known: &[KnownMessage], units: &[RequestUnit<'_>]) -> CommonPrefix {
    let of_known = known.iter().take_while(|known| known.is_instruction).count();
    let mut ids: Vec<Option<EntryId>> = vec![None; units.len()];
    let mut at = 0;
    while let Some(unit) = units.get(at) {
        match known.get(at).filter(|known| known.is_instruction && known.is(unit)) {
            Some(same) => ids[at] = Some(same.id.clone()),
            None if unit.is_instruction() => {}
            None => break,
        }
        at += 1;
    }
    let rest = &known[of_known..];
    let both = rest.iter().zip(&units[at..]);
    let messages = both.take_while(|(known, unit)| known.is(unit)).count();
    for (known, id) in rest[..messages].iter().zip(&mut ids[at..]) {
        *id = Some(known.id.clone());
    }
    CommonPrefix { messages, removed: rest.len() - messages, ids }
}

/// Returns the first user message, or the first message if there is none.
pub(super) fn first_user_unit<'a, 'b>(units: &'b [RequestUnit<'a>]) -> Option<&'b RequestUnit<'a>> {
    units.iter().find(|unit| unit.message().role == Role::User).or_else(|| units.first())
}
