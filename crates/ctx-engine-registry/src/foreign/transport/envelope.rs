//! The outermost object of messages to and from an engine. Its content is passed on unchanged, so
//! that large messages are parsed only by their reader.

use std::fmt::Display;
use std::ops::Range;

use ctx_engine_sdk::protocol::{self, Head, Reply};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Fault;

/// Returns the bytes of a call.
pub(super) fn call(id: u64, verb: &str, params: &[u8]) -> Vec<u8> {
    let verb = serde_json::Value::from(verb);
    let mut call = format!(r#"{{"id":{id},"verb":{verb},"params":"#).into_bytes();
    // Leaves room for the line end.
    call.reserve_exact(params.len() + 2);
    call.extend_from_slice(params);
    call.push(b'}');
    call
}

/// Parses the head of a message from an engine.
pub(super) fn head(bytes: &[u8]) -> Result<Head, Fault> {
    Head::read(bytes).map_err(|error| not_json(&error, bytes))
}

#[derive(Deserialize)]
struct Outermost<'a> {
    #[serde(default)]
    id: u64,
    #[serde(borrow, default)]
    ok: Option<&'a RawValue>,
    error: Option<protocol::Error>,
    host: Option<IgnoredAny>,
}

/// Returns the range of the value of `ok` in `bytes`, the answer to the call `id`.
pub(super) fn value(id: u64, bytes: &[u8]) -> Result<Range<usize>, Fault> {
    let outermost: Outermost<'_> =
        serde_json::from_slice(bytes).map_err(|error| not_json(&error, bytes))?;
    if outermost.host.is_some() {
        return Err(Fault::garbage("a host call is not an answer", bytes));
    }
    if outermost.id != id {
        let why =
            format!("expected the answer to call {id}, got the answer to call {}", outermost.id);
        return Err(Fault::garbage(why, bytes));
    }
    match (outermost.ok, outermost.error) {
        (_, Some(error)) => Err(Fault::refused(error)),
        (Some(ok), None) => {
            let ok = ok.get();
            let start = ok.as_ptr().addr().saturating_sub(bytes.as_ptr().addr());
            Ok(start..start + ok.len())
        }
        (None, None) => Err(Fault::garbage("an answer has neither 'ok' nor 'error'", bytes)),
    }
}

fn not_json(error: &dyn Display, bytes: &[u8]) -> Fault {
    Fault::garbage(format!("invalid JSON: {error}"), bytes)
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

/// Returns JSON as one line: replaces line ends, which occur only between tokens, with spaces.
pub(super) fn line(mut json: Vec<u8>) -> Vec<u8> {
    if json.contains(&b'\n') || json.contains(&b'\r') {
        for byte in &mut json {
            if matches!(byte, b'\n' | b'\r') {
                *byte = b' ';
            }
        }
    }
    json.push(b'\n');
    json
}

#[cfg(test)]
mod tests {
    use super::super::RawAnswer;
    use super::*;

    fn answered(bytes: &str) -> Result<String, String> {
        RawAnswer::to(7, bytes.into())
            .and_then(RawAnswer::into_json)
            .map(|ok| String::from_utf8(ok).expect("of a string"))
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn the_value_of_ok_is_returned_byte_for_byte() {
        assert_eq!(answered(r#"{"id":7,"ok":{"a": [1.0]}}"#).unwrap(), r#"{"a": [1.0]}"#);
        assert_eq!(answered(r#" {"ok": 1e2 , "id":7,"new":{}} "#).unwrap(), "1e2");
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
            let fault = answered(bytes).unwrap_err();
            assert!(fault.contains(why), "{bytes}: {fault}");
        }
    }

    #[test]
    fn a_call_is_one_line_even_with_line_breaks_in_its_parameters() {
        let line = line(call(3, "ingest", b"{\n \"text\": \"a\\nb\"\r\n}"));
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        let call: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(call["params"]["text"], "a\nb");
        assert_eq!(call["verb"], "ingest");
    }
}
