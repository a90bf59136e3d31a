//! The outermost object of messages to and from an engine. Its content is passed on unchanged, so
//! that large messages are parsed only by their reader.

use ctx_engine_sdk::protocol::{self, Encoding, Head, Reply, decode};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::Fault;

/// Returns the bytes of a call, in the encoding of its parameters.
pub(super) fn call(id: u64, verb: &str, params: &[u8]) -> Vec<u8> {
    #[derive(Serialize)]
    struct Beginning<'a> {
        id: u64,
        verb: &'a str,
        params: (),
    }
    let encoding = Encoding::of(params);
    // Writing numbers and texts cannot fail.
    let mut call = encoding.encode(&Beginning { id, verb, params: () }).unwrap_or_default();
    // The parameters replace the nothing at the end, `null}` or nil.
    let (nothing, end): (usize, &[u8]) = match encoding {
        Encoding::Json => (5, b"}"),
        Encoding::MessagePack => (1, b""),
    };
    call.truncate(call.len().saturating_sub(nothing));
    // Leaves room for the frame.
    call.reserve_exact(params.len() + 8);
    call.extend_from_slice(params);
    call.extend_from_slice(end);
    call
}

/// Parses the head of a message from an engine.
pub(super) fn head(bytes: &[u8]) -> Result<Head, Fault> {
    Head::read(bytes).map_err(|error| invalid(&error, bytes))
}

/// An answer, with fields that it must not have.
#[derive(Deserialize)]
pub(super) struct Outermost<T> {
    #[serde(default)]
    id: u64,
    #[serde(default = "Option::default")]
    ok: Option<T>,
    error: Option<protocol::Error>,
    host: Option<IgnoredAny>,
}

impl<T> Outermost<T> {
    /// Returns the value of the answer to the call `id`.
    pub(super) fn value(self, id: u64, bytes: &[u8]) -> Result<T, Fault> {
        if self.host.is_some() {
            return Err(Fault::garbage("a host call is not an answer", bytes));
        }
        if self.id != id {
            let why =
                format!("expected the answer to call {id}, got the answer to call {}", self.id);
            return Err(Fault::garbage(why, bytes));
        }
        match (self.ok, self.error) {
            (_, Some(error)) => Err(Fault::refused(error)),
            (Some(ok), None) => Ok(ok),
            (None, None) => Err(Fault::garbage("an answer has neither 'ok' nor 'error'", bytes)),
        }
    }
}

/// Checks that bytes are the answer to the call `id`, with any value.
pub(super) fn check(id: u64, bytes: &[u8]) -> Result<(), Fault> {
    let outermost: Outermost<IgnoredAny> = decode(bytes).map_err(|error| invalid(&error, bytes))?;
    outermost.value(id, bytes).map(drop)
}

pub(super) fn invalid(error: &protocol::Error, bytes: &[u8]) -> Fault {
    Fault::garbage(format!("invalid {}: {error}", Encoding::of(bytes)), bytes)
}

/// Returns the bytes of a reply to a host call.
pub(super) fn reply<T: Serialize>(id: u64, result: Result<T, protocol::Error>) -> Vec<u8> {
    let reply = match result {
        Ok(reply) => Reply { id, reply: Some(reply), error: None },
        Err(error) => Reply { id, reply: None, error: Some(error) },
    };
    serde_json::to_vec(&reply).unwrap_or_else(|error| {
        let error = protocol::Error::failed(format!("the reply is not JSON: {error}"));
        let reply = Reply::<()> { id, reply: None, error: Some(error) };
        serde_json::to_vec(&reply).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::RawAnswer;
    use super::*;

    fn answered(bytes: &[u8]) -> Result<Value, String> {
        let value = RawAnswer::to(7, bytes.into()).and_then(|answer| answer.read());
        value.map(|value| value.expect("a value")).map_err(|fault| fault.to_string())
    }

    #[test]
    fn an_invalid_answer_is_refused_with_its_defect() {
        for (bytes, why) in [
            ("", "invalid JSON:"),
            ("hello, world", "output: hello, world"),
            (r#"{"id":8,"ok":{}}"#, "expected the answer to call 7, got the answer to call 8"),
            (r#"{"id":7}"#, "neither 'ok' nor 'error'"),
            (r#"{"id":7,"host":"log","params":{}}"#, "a host call is not an answer"),
            (r#"{"id":7,"ok":{},"error":{"message":"but"}}"#, "refused: but"),
            (r#"{"id":-7,"ok":{}}"#, "invalid JSON:"),
            (r#"{"id":7,"ok":{"a":}}"#, "invalid JSON:"),
            (r#"{"id":7,"ok":{},"id":8}"#, "invalid JSON:"),
            (r#"{"id":7,"ok":{},"host":"log"}"#, "a host call is not an answer"),
        ] {
            let fault = answered(bytes.as_bytes()).unwrap_err();
            assert!(fault.contains(why), "{bytes}: {fault}");
        }
    }

    #[test]
    fn an_invalid_answer_in_messagepack_has_the_same_defects() {
        let packed = |value: Value| Encoding::MessagePack.encode(&value).expect("it is encoded");
        assert_eq!(answered(&packed(json!({"id": 7, "ok": {"a": 1}}))).unwrap(), json!({"a": 1}));
        let answer = packed(json!({"id": 7, "ok": {"a": "b"}}));
        for length in 1..answer.len() {
            let fault = answered(&answer[..length]).unwrap_err();
            assert!(fault.contains("invalid MessagePack:"), "{length}: {fault}");
        }
        for (bytes, why) in [
            ([&*answer, b"\x80"].concat(), "invalid MessagePack: more bytes"),
            (packed(json!({"id": 8, "ok": {}})), "got the answer to call 8"),
            (packed(json!({"id": 7})), "neither 'ok' nor 'error'"),
            (packed(json!({"id": 7, "ok": {}, "host": "log"})), "a host call is not an answer"),
            (packed(json!({"id": 7, "error": {"message": "but"}})), "refused: but"),
            (packed(json!({"id": -7, "ok": {}})), "invalid MessagePack:"),
            // A text and a list of gigabytes that are not there.
            (b"\x82\xa2id\x07\xa2ok\xdb\xff\xff\xff\xff".to_vec(), "invalid MessagePack:"),
            (b"\x82\xa2id\x07\xa2ok\xdd\xff\xff\xff\xff".to_vec(), "invalid MessagePack:"),
        ] {
            let fault = answered(&bytes).unwrap_err();
            assert!(fault.contains(why), "{bytes:?}: {fault}");
        }
    }

    #[test]
    fn a_call_is_encoded_as_its_parameters() {
        let wanted = json!({"id": 300, "verb": "ingest", "params": {"text": "a\nb"}});
        for encoding in [Encoding::Json, Encoding::MessagePack] {
            let call = call(300, "ingest", &encoding.encode(&wanted["params"]).unwrap());
            assert_eq!(Encoding::of(&call), encoding);
            assert_eq!(decode::<Value>(&call).unwrap(), wanted);
        }
    }
}
