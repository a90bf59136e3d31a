//! The protocol, the ABI and the driver, as a host uses them.

mod driver;
mod golden;
mod header;
mod serving;

use ctx_engine_sdk::protocol::{Encoding, decode, service};
use ctx_engine_sdk::{
    Assembled, Engine, Error, Hello, Host, HostTransport, Info, LogLevel, Plan, Result, Row,
    Session,
};
use serde_json::{Value, json};

/// An engine whose behaviour the configuration and the newest message select.
struct Scripted {
    keep: usize,
    ingested: usize,
}

impl Engine for Scripted {
    fn hello(hello: &Hello, _: &mut Host<'_>) -> Result<(Self, Info)> {
        let keep = hello.config.get("keep").map_or(Some(2), Value::as_u64);
        let keep = keep.ok_or_else(|| Error::failed("'keep' must be a number of messages"))?;
        Ok((Self { keep: keep as usize, ingested: 0 }, Info::new("told", "1.0.0")))
    }

    fn assemble(&mut self, session: &Session, host: &mut Host<'_>) -> Result<Assembled> {
        let newest = session.rows().last().map(Row::text).unwrap_or_default();
        match newest.as_str() {
            "panic" => panic!("on request"),
            "wait" => {
                host.log(LogLevel::Debug, "at work");
                while !host.is_cancelled() {
                    std::thread::yield_now();
                }
                Err(Error::new(ctx_engine_sdk::ErrorKind::Cancelled, "on request"))
            }
            "count" => {
                let tokens = host.count(vec!["a text".into()])?;
                Ok(Assembled { estimated_tokens: tokens.first().copied(), ..Assembled::default() })
            }
            "ingested" => {
                let estimated_tokens = Some(self.ingested as u64);
                Ok(Assembled { estimated_tokens, ..Assembled::default() })
            }
            _ => Ok(Plan::keep_last(self.keep).into()),
        }
    }

    fn ingest(&mut self, _: &Session, _: &Row, _: bool, _: &mut Host<'_>) -> Result<bool> {
        self.ingested += 1;
        Ok(true)
    }
}

/// A host that counts seven tokens for every text.
struct Sevens;

impl HostTransport for Sevens {
    fn call(&mut self, host_call: &[u8]) -> Result<Vec<u8>> {
        let call: Value = decode(host_call)?;
        assert_eq!(call["host"], service::COUNT);
        Encoding::of(host_call).encode(&json!({"id": call["id"], "reply": {"tokens": [7]}}))
    }
}

fn hello(config: &Value) -> Value {
    json!({"id": 1, "verb": "hello", "params": {
        "protocol": "1.0", "host": {"name": "test", "version": "0"},
        "features": [service::COUNT, service::LOG], "config": config, "isNew": "and ignored"}})
}

fn row(id: &str, text: &str) -> Value {
    json!({"id": id, "role": "user", "tokens": 3, "group": 1,
        "message": {"role": "user", "blocks": [{"type": "text", "text": text}]}})
}

/// Adds one more message to the session "s" and requests `assemble`.
fn assemble(id: u64, text: &str, rows: usize) -> Value {
    json!({"id": id, "verb": "assemble", "params": {"sessionId": "s", "update": {
        "added": [row(&format!("e{id}"), text)], "rows": rows}}})
}
