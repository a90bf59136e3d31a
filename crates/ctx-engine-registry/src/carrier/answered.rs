//! What an engine answered, before anybody has read it.

use std::ops::Range;

use serde::Deserialize;
use serde::de::IgnoredAny;

use super::{Fault, envelope};

/// What an engine answered: JSON of which only the head was looked at. It may be megabytes, and who
/// reads it knows what it should be: then one pass both checks and reads it.
#[derive(Clone, Debug)]
pub struct Answered {
    json: Vec<u8>,
    /// The call that it answers; nothing where `json` is the value itself.
    envelope: Option<u64>,
}

#[derive(Deserialize)]
struct Whole<T> {
    #[serde(default, rename = "id")]
    _id: u64,
    #[serde(default = "Option::default")]
    ok: Option<T>,
    #[serde(default)]
    error: Option<IgnoredAny>,
    #[serde(default)]
    host: Option<IgnoredAny>,
}

impl Answered {
    /// A message that should be the answer to the call of `id`.
    pub(super) fn to(id: u64, json: Vec<u8>) -> Result<Self, Fault> {
        let head = envelope::head(&json)?;
        let answered = Self { json, envelope: Some(id) };
        if head.content != Some("ok") || head.id != id || head.host.is_some() {
            // It is refused, or wrong.
            answered.value()?;
        }
        Ok(answered)
    }

    /// Reads the value: as a `T`, if it is one.
    ///
    /// # Errors
    ///
    /// [`Fault::Garbage`] if the whole is no answer, and [`Fault::Refused`] if it says so only after
    /// a value.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<serde_json::Result<T>, Fault> {
        if self.envelope.is_some()
            && let Ok(Whole { ok: Some(ok), error: None, host: None, .. }) =
                serde_json::from_slice(&self.json)
        {
            return Ok(Ok(ok));
        }
        // Now it is told what is wrong: the envelope, or what is in it.
        let value = self.value()?;
        Ok(serde_json::from_slice(self.json.get(value).unwrap_or_default()))
    }

    /// The JSON of the value.
    ///
    /// # Errors
    ///
    /// As [`Answered::read`].
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

impl From<Vec<u8>> for Answered {
    /// Of a value that stands in no envelope.
    fn from(json: Vec<u8>) -> Self {
        Self { json, envelope: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Result<serde_json::Result<u8>, Fault> {
        Answered::to(7, json.into()).and_then(|answered| answered.read())
    }

    #[test]
    fn a_value_is_read_wherever_it_stands() {
        for json in [r#"{"id":7,"ok":5}"#, r#" {"new":[{}],"ok":5,"id":7} "#] {
            assert_eq!(read(json).unwrap().unwrap(), 5, "{json}");
        }
        assert_eq!(Answered::from(b" 5 ".to_vec()).read::<u8>().unwrap().unwrap(), 5);
    }

    #[test]
    fn another_value_is_told_from_what_is_no_answer() {
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
    fn what_is_refused_or_of_another_call_is_so_before_it_is_read() {
        for json in [r#"{"id":8,"ok":5}"#, r#"{"id":7,"error":{"message":"no"}}"#] {
            assert!(Answered::to(7, json.into()).is_err(), "{json}");
        }
    }
}
