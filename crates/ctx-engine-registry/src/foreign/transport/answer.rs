//! The answer of an engine, before it is parsed.

use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Fault, envelope};

/// The answer of an engine: JSON of which only the head was parsed. It may be megabytes. The reader
/// knows its type, so one pass both validates and parses it.
#[derive(Clone, Debug)]
pub struct RawAnswer {
    json: Vec<u8>,
    /// The id of the answered call; `None` if `json` is the value itself.
    envelope: Option<u64>,
}

#[derive(Deserialize)]
struct Whole<T> {
    #[serde(default, rename = "id")]
    _id: u64,
    #[serde(default = "Option::default")]
    ok: Option<T>,
    error: Option<IgnoredAny>,
    host: Option<IgnoredAny>,
}

impl RawAnswer {
    /// Accepts a message that must be the answer to the call `id`.
    pub(super) fn to(id: u64, json: Vec<u8>) -> Result<Self, Fault> {
        let head = envelope::head(&json)?;
        let answered = Self { json, envelope: Some(id) };
        if head.content != Some("ok") || head.id != id || head.host.is_some() {
            // It is an error, or malformed.
            answered.value()?;
        }
        Ok(answered)
    }

    /// Parses the value as a `T`.
    ///
    /// # Errors
    ///
    /// [`Fault::Garbage`] if the message is not an answer, and [`Fault::Refused`] if its error
    /// comes after a value.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<serde_json::Result<T>, Fault> {
        if self.envelope.is_some()
            && let Ok(Whole { ok: Some(ok), error: None, host: None, .. }) =
                serde_json::from_slice(&self.json)
        {
            return Ok(Ok(ok));
        }
        // Finds out whether the envelope is invalid, or the value in it.
        let value = self.value()?;
        Ok(serde_json::from_slice(self.json.get(value).unwrap_or_default()))
    }

    /// Returns the JSON of the value.
    ///
    /// # Errors
    ///
    /// See [`RawAnswer::read`].
    pub fn into_json(mut self) -> Result<Vec<u8>, Fault> {
        let value = self.value()?;
        self.json.truncate(value.end);
        self.json.drain(..value.start);
        Ok(self.json)
    }

    fn value(&self) -> Result<Range<usize>, Fault> {
        match self.envelope {
            Some(id) => envelope::value(id, &self.json),
            None => Ok(0..self.json.len()),
        }
    }
}

impl From<Vec<u8>> for RawAnswer {
    /// Takes a value without an envelope.
    fn from(json: Vec<u8>) -> Self {
        Self { json, envelope: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<serde_json::Result<u8>, Fault> {
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
}
