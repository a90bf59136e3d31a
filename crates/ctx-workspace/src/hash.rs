//! The hash of a file's content when it was indexed.

use std::fmt::Write;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};

use crate::settings::Cut;
use ctx_search::SegmentId;

/// The SHA-256 of a file's bytes; 64 hex digits in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileHash([u8; 32]);

impl FileHash {
    pub(super) fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the id of the `nth` chunk of a file with this content. It depends on the path, the
    /// content, the number and the way the file is cut.
    pub(super) fn chunk(&self, cut: &Cut, path: &str, nth: u32) -> SegmentId {
        let mut hash = Sha256::new();
        hash.update(cut.version.to_le_bytes());
        hash.update(cut.chunk.0.to_le_bytes());
        hash.update((cut.counter.name().len() as u64).to_le_bytes());
        hash.update(cut.counter.name());
        hash.update((path.len() as u64).to_le_bytes());
        hash.update(path);
        hash.update(self.0);
        hash.update(nth.to_le_bytes());
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&hash.finalize()[..16]);
        SegmentId(uuid::Builder::from_custom_bytes(bytes).into_uuid())
    }

    pub(super) fn hex(&self) -> String {
        self.0.iter().fold(String::with_capacity(64), |mut hex, byte| {
            // Writing to a string cannot fail.
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }

    fn from_hex(hex: &str) -> Option<Self> {
        let digits = hex.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return None;
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16);
            *byte = u8::try_from(digit(0)? * 16 + digit(1)?).ok()?;
        }
        Some(Self(bytes))
    }
}

impl Serialize for FileHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.hex())
    }
}

impl<'de> Deserialize<'de> for FileHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = String::deserialize(deserializer)?;
        Self::from_hex(&hex).ok_or_else(|| D::Error::custom("no SHA-256 in hex"))
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::{CounterKind, Tokens};

    use super::*;

    #[test]
    fn a_hash_is_the_same_after_it_was_written_and_read() {
        let hash = FileHash::of(b"abc");
        assert!(hash.hex().starts_with("ba7816bf"));
        assert_eq!(FileHash::from_hex(&hash.hex()), Some(hash));
        for wrong in ["", "zz", &"g".repeat(64), &"é".repeat(32), &"a".repeat(65)] {
            assert_eq!(FileHash::from_hex(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn chunks_of_another_path_content_place_or_cut_have_another_id() {
        let (one, two) = (FileHash::of(b"1"), FileHash::of(b"2"));
        let cut = Cut::default();
        assert_eq!(one.chunk(&cut, "a", 0), one.chunk(&cut, "a", 0));
        let ids = [
            one.chunk(&cut, "a", 0),
            one.chunk(&cut, "a", 1),
            one.chunk(&cut, "b", 0),
            two.chunk(&cut, "a", 0),
            one.chunk(&Cut { version: 1, ..cut }, "a", 0),
            one.chunk(&Cut { chunk: Tokens(1), ..cut }, "a", 0),
            one.chunk(&Cut { counter: CounterKind::Cjk, ..cut }, "a", 0),
        ];
        for (at, id) in ids.iter().enumerate() {
            assert!(!ids[..at].contains(id));
        }
    }
}
