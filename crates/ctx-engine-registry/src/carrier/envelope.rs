//! The outermost object of what goes to an engine and comes from it. What is inside is passed on as
//! it is, so that large messages are walked once here and once by who reads them.

use std::borrow::Cow;

use ctx_engine_sdk::protocol::{self, Reply};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Fault;

/// The bytes of a call.
pub(super) fn call(id: u64, verb: &str, params: &[u8]) -> Vec<u8> {
    let verb = serde_json::Value::from(verb);
    let mut call = format!(r#"{{"id":{id},"verb":{verb},"params":"#).into_bytes();
    call.reserve_exact(params.len() + 1);
    call.extend_from_slice(params);
    call.push(b'}');
    call
}

/// What an engine says.
pub(super) enum Said {
    /// An answer to a call of this id.
    Answer(u64),
    /// A host call.
    HostCall,
}

#[derive(Deserialize)]
struct Outermost<'a> {
    #[serde(default)]
    id: u64,
    #[serde(borrow, default)]
    ok: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<protocol::Error>,
    #[serde(borrow, default)]
    host: Option<Cow<'a, str>>,
}

/// A message of an engine, read as far as the host needs to know where it goes.
pub(super) struct Message<'a> {
    outermost: Outermost<'a>,
}

impl<'a> Message<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Fault> {
        let outermost = serde_json::from_slice(bytes)
            .map_err(|error| Fault::garbage(format!("this is not its JSON: {error}"), bytes))?;
        Ok(Self { outermost })
    }

    pub(super) fn is(&self) -> Said {
        match self.outermost.host {
            Some(_) => Said::HostCall,
            None => Said::Answer(self.outermost.id),
        }
    }

    /// Where in `bytes`, of which this was read, the value of `ok` stands.
    fn ok_within(self, bytes: &[u8]) -> Result<std::ops::Range<usize>, Fault> {
        match (self.outermost.ok, self.outermost.error) {
            (_, Some(error)) => Err(Fault::refused(error)),
            (Some(ok), None) => {
                let ok = ok.get();
                let start = ok.as_ptr().addr().saturating_sub(bytes.as_ptr().addr());
                Ok(start..start + ok.len())
            }
            (None, None) => Err(Fault::garbage("an answer has neither 'ok' nor 'error'", bytes)),
        }
    }
}

/// What `bytes`, the answer to the call of `id`, holds as `ok`.
pub(super) fn answer(id: u64, mut bytes: Vec<u8>) -> Result<Vec<u8>, Fault> {
    let message = Message::read(&bytes)?;
    match message.is() {
        Said::Answer(answered) if answered == id => {}
        Said::Answer(answered) => {
            let why = format!("call {id} was asked, and {answered} answered");
            return Err(Fault::garbage(why, &bytes));
        }
        Said::HostCall => return Err(Fault::garbage("a host call is no answer", &bytes)),
    }
    let ok = message.ok_within(&bytes)?;
    bytes.truncate(ok.end);
    bytes.drain(..ok.start);
    Ok(bytes)
}

/// The bytes of a reply to a host call.
pub(super) fn reply<T: Serialize>(id: u64, result: Result<T, protocol::Error>) -> Vec<u8> {
    let reply = match result {
        Ok(reply) => Reply { id, reply: Some(reply), error: None },
        Err(error) => Reply { id, reply: None, error: Some(error) },
    };
    serde_json::to_vec(&reply).unwrap_or_else(|error| {
        let error = protocol::Error::failed(format!("the reply is no JSON: {error}"));
        let reply = Reply::<()> { id, reply: None, error: Some(error) };
        serde_json::to_vec(&reply).unwrap_or_default()
    })
}

/// One line of it: blanks in the place of line ends, which JSON has between its parts only.
pub(super) fn line(mut json: Vec<u8>) -> Vec<u8> {
    for byte in &mut json {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    json.push(b'\n');
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(bytes: &str) -> Result<String, String> {
        answer(7, bytes.into())
            .map(|ok| String::from_utf8(ok).expect("of a string"))
            .map_err(|fault| fault.to_string())
    }

    #[test]
    fn an_answer_is_what_its_ok_holds_byte_for_byte() {
        assert_eq!(answered(r#"{"id":7,"ok":{"a": [1.0]}}"#).unwrap(), r#"{"a": [1.0]}"#);
        assert_eq!(answered(r#" {"ok": 1e2 , "id":7,"new":{}} "#).unwrap(), "1e2");
    }

    #[test]
    fn what_is_no_answer_is_told_by_what_is_wrong_with_it() {
        for (bytes, why) in [
            ("", "not its JSON"),
            ("hello, world", "it said: hello, world"),
            (r#"{"id":8,"ok":{}}"#, "call 7 was asked, and 8 answered"),
            (r#"{"id":7}"#, "neither 'ok' nor 'error'"),
            (r#"{"id":7,"host":"log","params":{}}"#, "a host call is no answer"),
            (r#"{"id":7,"ok":{},"error":{"message":"but"}}"#, "refused: but"),
            (r#"{"id":-7,"ok":{}}"#, "not its JSON"),
        ] {
            let fault = answered(bytes).unwrap_err();
            assert!(fault.contains(why), "{bytes}: {fault}");
        }
    }

    #[test]
    fn a_call_is_one_line_whatever_blanks_its_parameters_have() {
        let line = line(call(3, "ingest", b"{\n \"text\": \"a\\nb\"\r\n}"));
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        let call: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(call["params"]["text"], "a\nb");
        assert_eq!(call["verb"], "ingest");
    }
}
