//! The encodings of messages.

use std::fmt;
use std::io::Write;
use std::marker::PhantomData;

use serde::de::{DeserializeSeed, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::{Error, ErrorKind, Result};

/// Maximum nesting of MessagePack: as `serde_json` reads JSON.
const MAX_DEPTH: usize = 128;

/// The encoding of a message. In `hello` the host offers others than JSON, and the engine chooses one
/// for `assemble`, `compact` and their answers, which may be large. All other messages are JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    /// JSON.
    #[default]
    Json,
    /// MessagePack, with the same field names.
    MessagePack,
}

impl Encoding {
    /// Returns the encoding of a message, from its first byte: a map in MessagePack, or JSON.
    #[must_use]
    pub fn of(message: &[u8]) -> Self {
        match message.first() {
            Some(0x80..=0x8f | 0xde | 0xdf) => Self::MessagePack,
            _ => Self::Json,
        }
    }

    /// Returns the names of the encodings that this build can use besides JSON, to be offered in
    /// [`Hello::encodings`](super::Hello::encodings).
    #[must_use]
    pub fn supported() -> Vec<String> {
        // The feature `arbitrary_precision` of `serde_json` turns numbers into maps.
        let one = Self::MessagePack.encode(&serde_json::Value::from(1));
        let is_exact = one.is_ok_and(|one| one == [1]);
        is_exact.then(|| Self::MessagePack.name().to_owned()).into_iter().collect()
    }

    /// Returns the best encoding that is offered and that this build can use.
    #[must_use]
    pub fn choose(offered: &[String]) -> Self {
        let is_offered = Self::supported().iter().any(|name| offered.contains(name));
        if is_offered { Self::MessagePack } else { Self::Json }
    }

    /// Returns its name in the protocol.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::MessagePack => "msgpack",
        }
    }

    /// Writes a value.
    ///
    /// # Errors
    ///
    /// If the encoding cannot represent it, or writing fails.
    pub fn write(self, mut output: impl Write, value: &impl Serialize) -> Result<()> {
        match self {
            Self::Json => Ok(serde_json::to_writer(output, value)?),
            Self::MessagePack => {
                rmp_serde::encode::write_named(&mut output, value).map_err(|error| invalid(&error))
            }
        }
    }

    /// Returns the bytes of a value.
    ///
    /// # Errors
    ///
    /// If the encoding cannot represent it.
    pub fn encode(self, value: &impl Serialize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.write(&mut bytes, value)?;
        Ok(bytes)
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Json => "JSON",
            Self::MessagePack => "MessagePack",
        })
    }
}

/// Parses bytes in their [encoding](Encoding::of).
///
/// # Errors
///
/// If they are not exactly one value of this type.
pub fn decode<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T> {
    decode_seed(PhantomData, bytes)
}

pub(super) fn decode_seed<'a, S: DeserializeSeed<'a>>(
    seed: S,
    bytes: &'a [u8],
) -> Result<S::Value> {
    if Encoding::of(bytes) == Encoding::Json {
        let mut json = serde_json::Deserializer::from_slice(bytes);
        let value = seed.deserialize(&mut json)?;
        json.end()?;
        return Ok(value);
    }
    let mut packed = rmp_serde::Deserializer::from_read_ref(bytes);
    packed.set_max_depth(MAX_DEPTH);
    let value = seed.deserialize(&mut packed).map_err(|error| invalid(&error))?;
    match IgnoredAny::deserialize(&mut packed) {
        Err(rmp_serde::decode::Error::InvalidMarkerRead(_)) => Ok(value),
        _ => Err(invalid(&"more bytes after the value")),
    }
}

fn invalid(error: &dyn fmt::Display) -> Error {
    Error::new(ErrorKind::BadRequest, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messagepack_is_as_strict_as_json() {
        let read = |bytes: &[u8]| decode::<serde_json::Value>(bytes).map_err(|e| e.message);
        assert_eq!(read(b"\x81\xa1a\x07").unwrap(), serde_json::json!({"a": 7}));
        let deep = [[0x81, 0xa1, b'a'].repeat(100_000), vec![0x80]].concat();
        for (bytes, why) in [
            (&b"\x81\xa1a"[..], "marker"),
            (b"\x81\xa1a\x07\x07", "more bytes"),
            (b"\x81\xa1a\xc1", "marker"),
            // Lengths of gigabytes that are not there.
            (b"\x81\xa1a\xdb\xff\xff\xff\xff", "end of file"),
            (b"\x81\xa1a\xc6\xff\xff\xff\xff", "end of file"),
            (b"\x81\xa1a\xdd\xff\xff\xff\xff", "marker"),
            (b"\xdf\xff\xff\xff\xff", "marker"),
            (&deep, "depth"),
        ] {
            let error = read(bytes).unwrap_err();
            assert!(error.contains(why), "{bytes:?}: {error}");
        }
    }

    #[test]
    fn the_best_offered_encoding_is_chosen() {
        let choose = |offered: &[&str]| {
            Encoding::choose(&offered.iter().map(|&name| name.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(choose(&["cbor", "msgpack"]), Encoding::MessagePack);
        assert_eq!(choose(&["cbor"]), Encoding::Json);
        assert_eq!(choose(&[]), Encoding::Json);
    }
}
