//! Errors of the protocol.

use std::sync::atomic::Ordering;

use serde_json::{Value, json};

use super::engines::DISPOSED;
use super::*;
use crate::rpc::{Method, PROTOCOL};

#[test]
fn initialize_lists_the_methods() {
    let mut calls = Calls::default();
    calls.call("initialize", json!({ "client": { "name": "test" } }));
    let answers = calls.end();
    let hello = result(&answers[0]);
    assert_eq!(hello["name"], "ctx");
    assert_eq!(hello["protocol"], PROTOCOL);
    let methods: Vec<_> = hello["methods"].as_array().expect("a list").clone();
    assert_eq!(methods, Method::names().map(Value::from).to_vec());
    for (method, _) in Method::ALL {
        assert_eq!(Method::from_name(method.name()), Some(method));
        assert_eq!(serde_json::to_value(method).unwrap(), method.name());
    }
}

#[test]
fn an_invalid_line_gets_its_error_code_and_the_next_is_processed() {
    for (line, code, id) in [
        (&b"nonsense"[..], -32700, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1", -32700, Value::Null),
        (b"\xff\xfe", -32700, Value::Null),
        (b"5", -32700, Value::Null),
        (b"[]", -32600, Value::Null),
        (b"[{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"status\"}]", -32600, Value::Null),
        (b"{\"id\":1,\"method\":\"initialize\"}", -32600, json!(1)),
        (b"{\"jsonrpc\":\"1.0\",\"id\":\"a\",\"method\":\"initialize\"}", -32600, json!("a")),
        (b"{\"jsonrpc\":\"2.0\",\"id\":2}", -32600, json!(2)),
        (b"{\"jsonrpc\":\"2.0\"}", -32600, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"initialize\"}", -32600, Value::Null),
        (b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"nope\"}", -32601, json!(3)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":\"status\"}", -32602, json!(4)),
        (b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"open\",\"params\":[1]}", -32602, json!(5)),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"open\",\"params\":{\"windw\":1}}",
            -32602,
            json!(6),
        ),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"open\",\"params\":{\"window\":-1}}",
            -32602,
            json!(7),
        ),
        (
            br#"{"jsonrpc":"2.0","id":8,"method":"status","params":{"sessionId":"x"}}"#,
            -32000,
            json!(8),
        ),
    ] {
        let hello = b"{\"jsonrpc\":\"2.0\",\"id\":\"next\",\"method\":\"initialize\"}";
        let answers = exchange([line, b"\n\r\n", hello].concat());
        let shown = String::from_utf8_lossy(line);
        assert_eq!(answers.len(), 2, "{shown}: {answers:?}");
        assert_eq!(answers[0]["error"]["code"], code, "{shown}: {}", answers[0]);
        assert_eq!(answers[0]["id"], id, "{shown}");
        assert!(!kind(&answers[0]).is_empty() && answers[0]["error"]["data"]["hint"].is_string());
        assert_eq!(answers[1]["id"], "next", "{shown}");
    }
}

#[test]
fn deeply_nested_json_does_not_crash() {
    for deep in ["[".repeat(200_000), "{\"a\":".repeat(200_000)] {
        let answers = exchange(format!("{deep}\n"));
        assert_eq!(answers.len(), 1);
    }
    let nested = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let mut calls = Calls::open("legacy");
    calls.1 += 1;
    calls.0.push_str(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"append\",\"params\":{{\"sessionId\":\"s\",\
         \"messages\":[{{\"role\":\"user\",\"content\":{nested}}}]}}}}\n"
    ));
    let answers = calls.end();
    assert!(result(&answers[1])["ids"].is_array());
}

#[test]
fn a_notification_is_executed_and_not_answered() {
    let mut calls = Calls::open("legacy");
    calls.0.push_str(
        "{\"jsonrpc\":\"2.0\",\"method\":\"append\",\"params\":{\"sessionId\":\"s\",\
         \"messages\":[{\"role\":\"user\",\"content\":\"hello\"}]}}\n",
    );
    calls.0.push_str("{\"jsonrpc\":\"2.0\",\"method\":\"nope\"}\n");
    calls.s("status", json!({}));
    let answers = calls.end();
    assert_eq!(result(&answers[1])["messages"], 1);
}

#[test]
fn pending_calls_are_answered_and_engines_disposed_of_at_the_end() {
    let before = DISPOSED.load(Ordering::SeqCst);
    let mut calls = Calls::open("counted");
    calls.call("open", json!({ "sessionId": "t", "engine": "counted", "window": 32_000 }));
    calls.append(&["hello"]);
    calls.s("assemble", json!({}));
    let answers = calls.end();
    assert_eq!(texts(&answers[3]), ["hello"]);
    assert_eq!(DISPOSED.load(Ordering::SeqCst), before + 2);
}

#[test]
fn the_server_ends_when_the_host_stops_reading() {
    struct Closed;
    impl std::io::Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let home = TempDir::new().expect("a temporary folder");
    let host = Host { config: Config::default(), home: Home::at(home.path()) };
    let hello = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\"}\n";
    let error = serve(host, Cursor::new(hello.repeat(100)), Closed).unwrap_err();
    assert_eq!(error.kind(), ctx_core::ErrorKind::Io);
}
