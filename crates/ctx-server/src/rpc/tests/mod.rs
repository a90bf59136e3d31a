//! Tests of `serve` with input and output in memory.

mod engines;
mod fit;
mod history;
mod memory;
mod protocol;
mod sessions;
mod turns;

use std::io::{Cursor, Write};
use std::sync::{Arc, Mutex};

use ctx_config::Config;
use ctx_session::Home;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{Host, serve};

/// The output for answers.
#[derive(Clone, Default)]
struct Output(Arc<Mutex<Vec<u8>>>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no test panics while it writes").extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Sends bytes, and returns all output lines.
fn exchange(input: impl Into<Vec<u8>>) -> Vec<Value> {
    let home = TempDir::new().expect("a temporary folder");
    exchange_at(&home, input)
}

fn exchange_at(home: &TempDir, input: impl Into<Vec<u8>>) -> Vec<Value> {
    let host = Host { config: Config::default(), home: Home::at(home.path()) };
    let output = Output::default();
    serve(host, Cursor::new(input.into()), output.clone()).expect("memory does not fail");
    let written = output.0.lock().expect("the writer is done").clone();
    let text = String::from_utf8(written).expect("answers are UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

/// Calls, numbered from 0 in order, and their answers in that order.
#[derive(Default)]
struct Calls(String, usize);

impl Calls {
    /// Opens session `s` with a window of 32,000 tokens.
    fn open(engine: &str) -> Self {
        let mut calls = Self::default();
        calls.call("open", json!({ "sessionId": "s", "engine": engine, "window": 32_000 }));
        calls
    }

    fn call(&mut self, method: &str, params: impl Into<Value>) -> usize {
        let params: Value = params.into();
        let call = json!({ "jsonrpc": "2.0", "id": self.1, "method": method, "params": params });
        self.0.push_str(&format!("{call}\n"));
        self.1 += 1;
        self.1 - 1
    }

    /// Adds a call to session `s`, and returns its number.
    fn s(&mut self, method: &str, mut params: Value) -> usize {
        params["sessionId"] = "s".into();
        self.call(method, params)
    }

    fn append(&mut self, texts: &[&str]) -> usize {
        let messages: Vec<_> = texts.iter().map(|text| user(text)).collect();
        self.s("append", json!({ "messages": messages }))
    }

    fn end(self) -> Vec<Value> {
        let mut answers = exchange(self.0);
        assert_eq!(answers.len(), self.1, "each call has one answer: {answers:?}");
        answers.sort_by_key(|answer| answer["id"].as_u64());
        answers
    }
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// Returns the result of a successful call.
fn result(answer: &Value) -> &Value {
    assert!(answer.get("error").is_none(), "{answer}");
    &answer["result"]
}

/// Returns the `kind` of a failed call.
fn kind(answer: &Value) -> &str {
    answer["error"]["data"]["kind"].as_str().unwrap_or_else(|| panic!("no failure: {answer}"))
}

/// Returns the texts of assembled messages.
fn texts(answer: &Value) -> Vec<String> {
    let messages = result(answer)["messages"].as_array().expect("messages");
    let text = |m: &Value| {
        let parts = m["content"].as_array();
        let text = m["content"].as_str().or_else(|| m["summary"].as_str());
        let text = text.or_else(|| parts?.first()?["text"].as_str());
        text.unwrap_or_default().to_owned()
    };
    messages.iter().map(text).collect()
}
