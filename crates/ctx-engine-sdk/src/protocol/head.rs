//! Parses the head of a message, without its content.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, Visitor};

use super::Result;
use super::encoding::decode_seed;

/// The beginning of a message: its type and its recipient, read without parsing the content, which
/// may be megabytes.
///
/// Reading stops at the message's content, if its id (and the verb of a call) came before. The rest
/// is not checked: invalid content is found only when it is parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// The id of the call, answer, host call or reply.
    pub id: u64,
    /// The verb of a call.
    pub verb: Option<String>,
    /// The service of a host call.
    pub host: Option<String>,
    /// The id of the cancelled call.
    pub cancel: Option<u64>,
    /// The name of the first field with content: `params`, `ok`, `error` or `reply`.
    pub content: Option<&'static str>,
}

impl Head {
    /// Parses the beginning of a message.
    ///
    /// # Errors
    ///
    /// If it is not a message.
    pub fn read(message: &[u8]) -> Result<Self> {
        let mut reading = Reading::default();
        match decode_seed(&mut reading, message) {
            Err(error) if !reading.is_complete => Err(error),
            _ => Ok(reading.head),
        }
    }
}

#[derive(Default)]
struct Reading {
    head: Head,
    has_id: bool,
    is_complete: bool,
}

impl Reading {
    /// Whether the head is complete, so that the content that follows need not be parsed.
    fn is_complete(&self, content: &str) -> bool {
        let is_named = self.head.verb.is_some() || self.head.host.is_some();
        self.has_id && (content != "params" || is_named)
    }
}

impl<'de> DeserializeSeed<'de> for &mut Reading {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, message: D) -> Result<(), D::Error> {
        message.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for &mut Reading {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a message, which is an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(field) = fields.next_key::<String>()? {
            let content = match field.as_str() {
                "id" => {
                    self.head.id = fields.next_value()?;
                    self.has_id = true;
                    continue;
                }
                "verb" => {
                    self.head.verb = fields.next_value()?;
                    continue;
                }
                "host" => {
                    self.head.host = fields.next_value()?;
                    continue;
                }
                "cancel" => {
                    self.head.cancel = fields.next_value()?;
                    continue;
                }
                "params" => Some("params"),
                "ok" => Some("ok"),
                "error" => Some("error"),
                "reply" => Some("reply"),
                _ => None,
            };
            self.head.content = self.head.content.or(content);
            if content.is_some_and(|content| self.is_complete(content)) {
                self.is_complete = true;
                // An error is the only way to leave an object before its end.
                return Err(A::Error::custom("the content was not read"));
            }
            fields.next_value::<IgnoredAny>()?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(json: &str) -> Head {
        Head::read(json.as_bytes()).unwrap()
    }

    #[test]
    fn reading_ends_where_the_content_begins() {
        let call = head(r#"{"id":3,"verb":"assemble","params":{"not": JSON"#);
        assert_eq!((call.id, call.verb.as_deref()), (3, Some("assemble")));
        let answer = head(r#" {"new":[1],"id":4,"ok":"#);
        assert_eq!((answer.id, answer.content, answer.verb), (4, Some("ok"), None));
        assert_eq!(head(r#"{"id":5,"host":"log","params":"#).host.as_deref(), Some("log"));
        assert_eq!(head(r#"{"cancel":6}"#).cancel, Some(6));
    }

    #[test]
    fn fields_may_come_in_any_order() {
        let call = head(r#"{"params":{"verb":"no"},"verb":"ingest","ok":null,"id":7}"#);
        assert_eq!((call.id, call.verb.as_deref()), (7, Some("ingest")));
        assert_eq!(call.content, Some("params"));
        let unnamed = head(r#"{"id":8,"params":{}}"#);
        assert_eq!((unnamed.id, unnamed.verb), (8, None));
        assert_eq!(head(r#"{"verb":null}"#), Head::default());
    }

    #[test]
    fn other_json_has_no_head() {
        for json in ["", "{", "7", "[]", "\u{fffd}", r#"{"id":-1}"#, r#"{"verb":7}"#, "{} {}"] {
            assert!(Head::read(json.as_bytes()).is_err(), "{json}");
        }
        assert!(Head::read(b"{\"id\":1,\"x\":\"\xff\"").is_err());
        let deep = format!("{{\"x\":{}", "[".repeat(1_000_000));
        assert!(Head::read(deep.as_bytes()).is_err());
    }
}
