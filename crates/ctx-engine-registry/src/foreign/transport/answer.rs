//! The answer of an engine, before it is parsed.

use ctx_engine_sdk::protocol::{self, decode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::{Fault, envelope};

/// The answer of an engine, of which only the head was parsed. It may be megabytes. The reader knows
/// its type, so one pass both validates and parses it.
#[derive(Clone, Debug)]
pub struct RawAnswer {
    bytes: Vec<u8>,
    /// The id of the answered call; `None` if `bytes` is the value itself.
    envelope: Option<u64>,
}

impl RawAnswer {
    /// Accepts a message that must be the answer to the call `id`.
    pub(super) fn to(id: u64, bytes: Vec<u8>) -> Result<Self, Fault> {
        let head = envelope::head(&bytes)?;
        if head.content != Some("ok") || head.id != id || head.host.is_some() {
            // It is an error, or malformed.
            envelope::check(id, &bytes)?;
        }
        Ok(Self { bytes, envelope: Some(id) })
    }

    /// Parses the value as a `T`.
    ///
    /// # Errors
    ///
    /// [`Fault::Garbage`] if the message is not an answer, and [`Fault::Refused`] if its error
    /// comes after a value.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<protocol::Result<T>, Fault> {
        let Some(id) = self.envelope else { return Ok(decode(&self.bytes)) };
        match decode::<envelope::Outermost<T>>(&self.bytes) {
            Ok(outermost) => outermost.value(id, &self.bytes).map(Ok),
            // Finds out whether the envelope is invalid, or the value in it.
            Err(error) => envelope::check(id, &self.bytes).map(|()| Err(error)),
        }
    }

    /// As [`Self::read`], for the answer to a call in JSON.
    ///
    /// # Errors
    ///
    /// As [`Self::read`].
    pub fn read_json<T: DeserializeOwned>(&self) -> Result<protocol::Result<T>, Fault> {
        let value = match self.envelope {
            None => &*self.bytes,
            Some(id) => {
                let outermost =
                    serde_json::from_slice::<envelope::Outermost<&RawValue>>(&self.bytes);
                let outermost = outermost.map_err(|e| envelope::invalid(&e.into(), &self.bytes))?;
                outermost.value(id, &self.bytes)?.get().as_bytes()
            }
        };
        Ok(serde_json::from_slice(value).map_err(protocol::Error::from))
    }
}

impl From<Vec<u8>> for RawAnswer {
    /// Takes a value without an envelope.
    fn from(bytes: Vec<u8>) -> Self {
        Self { bytes, envelope: None }
    }
}

#[cfg(test)]
mod tests {
    use ctx_engine_sdk::protocol::{Assembled, Encoding, Plan};
    use proptest::prelude::*;

    use super::*;

    fn read(json: &str) -> Result<protocol::Result<u8>, Fault> {
        RawAnswer::to(7, json.into()).and_then(|answered| answered.read())
    }

    #[test]
    fn a_value_is_read_at_any_position() {
        for json in [r#"{"id":7,"ok":5}"#, r#" {"new":[{}],"ok":5,"id":7} "#] {
            assert_eq!(read(json).unwrap().unwrap(), 5, "{json}");
        }
        assert_eq!(RawAnswer::from(b" 5 ".to_vec()).read::<u8>().unwrap().unwrap(), 5);
    }

    #[test]
    fn a_wrong_value_is_distinguished_from_an_invalid_answer() {
        assert!(read(r#"{"id":7,"ok":"five"}"#).unwrap().is_err());
        for (json, name) in [
            (r#"{"id":7,"ok":5"#, "garbage"),
            (r#"{"id":7,"ok":[}"#, "garbage"),
            (r#"{"id":7,"ok":5}}"#, "garbage"),
            (r#"{"id":7,"ok":5,"id":8}"#, "garbage"),
            (r#"{"id":7,"ok":null}"#, "garbage"),
            (r#"{"id":7,"ok":5,"host":"log"}"#, "garbage"),
            (r#"{"id":7,"ok":5,"error":{"message":"but"}}"#, "refused"),
            (r#"{"id":7,"error":{"message":"no"},"ok":5}"#, "refused"),
        ] {
            assert_eq!(read(json).unwrap_err().name(), name, "{json}");
        }
    }

    #[test]
    fn refusals_and_answers_to_other_calls_are_detected_before_parsing() {
        for json in [r#"{"id":8,"ok":5}"#, r#"{"id":7,"error":{"message":"no"}}"#] {
            assert!(RawAnswer::to(7, json.into()).is_err(), "{json}");
        }
    }

    proptest! {
        #[test]
        fn damaged_messagepack_is_a_fault_or_another_value(
            damage in prop::collection::vec((any::<usize>(), any::<u8>()), 0..4),
            length in any::<prop::sample::Index>(),
        ) {
            let plan = Plan::drop(["a", "b"]).because("c").into();
            let answer = protocol::Answer::<Assembled> { id: 7, ok: Some(plan), error: None };
            let mut bytes = Encoding::MessagePack.encode(&answer).expect("it is encoded");
            bytes.truncate(length.index(bytes.len() + 1));
            let len = bytes.len().max(1);
            for (at, byte) in damage {
                if let Some(place) = bytes.get_mut(at % len) {
                    *place = byte;
                }
            }
            let _ = RawAnswer::to(7, bytes).and_then(|answer| answer.read::<Assembled>().map(drop));
        }
    }
}
