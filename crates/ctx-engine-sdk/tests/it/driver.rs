use std::sync::atomic::AtomicBool;

use ctx_engine_sdk::Driver;
use ctx_engine_sdk::protocol::{Encoding, decode};
use serde_json::{Value, json};

use super::*;

/// A driver, and the encoding of its calls after `hello`.
struct Driven(Driver<Scripted>, Encoding);

impl Driven {
    fn ask(&mut self, call: &Value) -> Value {
        self.ask_bytes(&self.1.encode(call).expect("it is encoded"))
    }

    fn ask_bytes(&mut self, call: &[u8]) -> Value {
        let answer = self.0.answer(call, &mut Sevens, &AtomicBool::new(false));
        assert_eq!(Encoding::of(&answer), Encoding::of(call));
        decode(&answer).expect("an answer")
    }

    fn up() -> Self {
        Self::up_in(Encoding::Json)
    }

    fn up_in(encoding: Encoding) -> Self {
        let mut driven = Self(Driver::default(), Encoding::Json);
        let mut hello = hello(&json!({}));
        if encoding == Encoding::MessagePack {
            hello["params"]["encodings"] = json!(["cbor", "msgpack"]);
        }
        let info = driven.ask(&hello)["ok"].clone();
        assert_eq!(info["id"], "told");
        let chosen = (encoding == Encoding::MessagePack).then(|| json!("msgpack"));
        assert_eq!(info.get("encoding"), chosen.as_ref());
        Self(driven.0, encoding)
    }
}

#[test]
fn every_invalid_call_gets_an_error_with_a_reason() {
    for (before, call, kind) in [
        (false, r#"{"id":5,"verb":"assemble","params":{}}"#, "badRequest"),
        (true, r#"{"id":5,"verb":"dance","params":{}}"#, "unsupported"),
        (true, r#"{"id":5,"verb":"assemble","params":{"update":"x"}}"#, "badRequest"),
        (true, r#"{"id":5,"verb":"assemble","params":{"update":{"rows":3}}}"#, "outOfStep"),
        (
            true,
            r#"{"id":5,"verb":"assemble","params":{"update":{"rows":1,"added":[{"id":"a","message":{"role":"user","blocks":[{"type":"text","text":"panic"}]}}]}}}"#,
            "panic",
        ),
        (true, r#"{"id":5,"verb":"assemble","params":{"update":"#, "badRequest"),
        (true, r#"{"id":5,"verb":"dispose","params":{"#, "badRequest"),
        (true, r#"{"id":5,"verb":"assemble","params":{},"params":{}}"#, "badRequest"),
        (true, r#"{"id":5,"verb":"hello","params":{"protocol":"2.0"}}"#, "protocol"),
        (
            true,
            r#"{"id":5,"verb":"hello","params":{"protocol":"1.7","config":{"keep":"all"}}}"#,
            "failed",
        ),
    ] {
        let mut driven =
            if before { Driven::up() } else { Driven(Driver::default(), Encoding::Json) };
        let answer = driven.ask_bytes(call.as_bytes());
        assert_eq!((&answer["id"], &answer["error"]["kind"]), (&json!(5), &json!(kind)), "{call}");
        assert!(answer["error"]["message"].as_str().is_some_and(|m| !m.is_empty()));
    }
    assert_eq!(Driven::up().ask_bytes(b"{")["error"]["kind"], "badRequest");
}

#[test]
fn an_incomplete_call_in_messagepack_gets_an_error() {
    let mut driven = Driven::up_in(Encoding::MessagePack);
    let call = Encoding::MessagePack.encode(&assemble(300, "x", 1)).unwrap();
    for length in 1..call.len() {
        let answer = driven.ask_bytes(&call[..length]);
        assert_eq!(answer["error"]["kind"], "badRequest", "{length}: {answer}");
    }
    let longer = driven.ask_bytes(&[&*call, b"\xc0"].concat());
    assert_eq!((&longer["id"], &longer["error"]["kind"]), (&json!(300), &json!("badRequest")));
    assert_eq!(driven.ask_bytes(&call)["ok"]["keepLast"], 2);
}

#[test]
fn an_engine_can_be_called_after_a_panic() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let mut driven = Driven::up_in(encoding);
        assert_eq!(driven.ask(&assemble(2, "panic", 1))["error"]["message"], "on request");
        assert_eq!(driven.ask(&assemble(3, "hello", 2))["ok"]["keepLast"], 2);
    }
}

#[test]
fn a_message_is_given_to_the_engine_once() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let mut driven = Driven::up_in(encoding);
        let ingest =
            json!({"id": 2, "verb": "ingest", "params": {"sessionId": "s", "row": row("a", "x")}});
        assert_eq!(driven.ask(&ingest)["ok"]["ingested"], true);
        assert_eq!(driven.ask(&ingest)["ok"]["ingested"], false);
        let known = json!({"id": 3, "verb": "assemble", "params": {"sessionId": "s",
            "update": {"added": [{"id": "a"}], "rows": 1}}});
        assert_eq!(driven.ask(&known)["ok"]["keepLast"], 2);
        assert_eq!(driven.ask(&ingest)["ok"]["ingested"], false);
        assert_eq!(driven.ask(&assemble(4, "ingested", 2))["ok"]["estimatedTokens"], 1);
    }
}

#[test]
fn host_services_can_be_called_during_a_call() {
    let mut packed = Driven::up_in(Encoding::MessagePack);
    assert_eq!(packed.ask(&assemble(2, "count", 1))["ok"]["estimatedTokens"], 7);
    let mut driven = Driven::up();
    assert_eq!(driven.ask(&assemble(2, "count", 1))["ok"]["estimatedTokens"], 7);
    let mut poor = hello(&json!({}));
    poor["params"]["features"] = json!([]);
    driven.ask(&poor);
    assert_eq!(driven.ask(&assemble(2, "count", 1))["error"]["kind"], "unsupported");
}

#[test]
fn a_disposed_engine_needs_another_hello() {
    let mut driven = Driven::up();
    assert!(driven.ask(&json!({"id": 2, "verb": "dispose"}))["ok"].is_object());
    assert_eq!(driven.ask(&assemble(3, "x", 1))["error"]["kind"], "badRequest");
    assert_eq!(driven.ask(&hello(&json!({"keep": 9})))["ok"]["id"], "told");
    assert_eq!(driven.ask(&assemble(3, "x", 1))["ok"]["keepLast"], 9);
}
