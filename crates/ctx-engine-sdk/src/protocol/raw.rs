//! Messages that are passed on without being parsed.

use std::fmt;

use serde::de::value::MapAccessDeserializer;
use serde::de::{DeserializeOwned, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use super::{Encoding, Result, decode};

/// A [`Message`](super::Message) that is not parsed. In JSON it is an object. In MessagePack it is
/// binary data that contains MessagePack, or a text that contains JSON; a map is read too.
#[derive(Clone, Debug)]
pub enum RawMessage {
    /// JSON.
    Json(Box<RawValue>),
    /// MessagePack.
    MessagePack(Vec<u8>),
}

impl RawMessage {
    /// Encodes a message; as JSON if the encoding cannot represent it.
    ///
    /// # Errors
    ///
    /// If JSON cannot represent it either.
    pub fn new(encoding: Encoding, message: &impl Serialize) -> Result<Self> {
        if encoding == Encoding::MessagePack
            && let Ok(bytes) = encoding.encode(message)
        {
            return Ok(Self::MessagePack(bytes));
        }
        Ok(Self::Json(to_raw_value(message)?))
    }

    /// Returns its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Json(json) => json.get().as_bytes(),
            Self::MessagePack(bytes) => bytes,
        }
    }

    /// Parses it.
    ///
    /// # Errors
    ///
    /// [`BadRequest`](super::ErrorKind::BadRequest) if it is not a `T`.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        decode(self.as_bytes())
    }
}

impl Serialize for RawMessage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match (self, serializer.is_human_readable()) {
            (Self::Json(json), true) => json.serialize(serializer),
            (Self::Json(json), false) => serializer.serialize_str(json.get()),
            (Self::MessagePack(bytes), false) => serializer.serialize_bytes(bytes),
            (Self::MessagePack(_), true) => {
                let value: serde_json::Value = self.read().map_err(serde::ser::Error::custom)?;
                value.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for RawMessage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Packed;

        impl<'de> Visitor<'de> for Packed {
            type Value = RawMessage;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a message: binary data, a text or a map")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<RawMessage, E> {
                Ok(RawMessage::MessagePack(bytes.to_vec()))
            }

            fn visit_str<E: Error>(self, json: &str) -> Result<RawMessage, E> {
                RawValue::from_string(json.to_owned()).map(RawMessage::Json).map_err(E::custom)
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawMessage, A::Error> {
                let value = serde_json::Value::deserialize(MapAccessDeserializer::new(map))?;
                RawMessage::new(Encoding::Json, &value).map_err(A::Error::custom)
            }
        }

        if deserializer.is_human_readable() {
            return Box::<RawValue>::deserialize(deserializer).map(Self::Json);
        }
        deserializer.deserialize_any(Packed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::protocol::Message;

    #[test]
    fn a_message_is_passed_on_unchanged_in_both_encodings() {
        let message = Message::text("user", "a \"b\"\n中");
        for raw in [Encoding::Json, Encoding::MessagePack] {
            let raw = RawMessage::new(raw, &message).unwrap();
            for encoding in [Encoding::Json, Encoding::MessagePack] {
                let bytes = encoding.encode(&BTreeMap::from([("a", &raw)])).unwrap();
                let back = &decode::<BTreeMap<String, RawMessage>>(&bytes).unwrap()["a"];
                assert_eq!(back.read::<Message>().unwrap(), message);
                if encoding == Encoding::MessagePack {
                    assert_eq!(back.as_bytes(), raw.as_bytes());
                }
            }
        }
    }

    #[test]
    fn other_values_are_no_messages() {
        for value in [&b"\x81\xa1a\x07"[..], b"\x81\xa1a\xa1{", b"\x81\xa1a\xc0"] {
            let read = decode::<BTreeMap<String, RawMessage>>(value);
            assert!(read.is_err(), "{value:?}: {read:?}");
        }
        let bad = RawMessage::MessagePack(b"\x81\xff".to_vec());
        assert!(bad.read::<Message>().is_err() && Encoding::Json.encode(&bad).is_err());
    }
}
