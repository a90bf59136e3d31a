//! The protocol on the wire: a file for each verb and each service, with every field set. The test
//! fails if a field is renamed or removed, or if a new one is not in its file.
//!
//! `CTX_BLESS=1 cargo test -p ctx-engine-sdk` rewrites the files.

mod every;

use std::collections::BTreeSet;
use std::path::PathBuf;

use ctx_engine_sdk::protocol::{Answer, Call, Encoding, HostCall, Reply, decode, verb};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::*;
use every::{others, services, verbs};

/// A call or a host call, and its answer.
struct Exchange {
    name: String,
    asked: Value,
    said: Value,
    /// Parses both in an encoding, with an unknown field added to every object, and serializes them
    /// again.
    again: fn(Encoding, &Value, &Value) -> (Value, Value),
}

fn reread<T: Serialize + DeserializeOwned>(encoding: Encoding, value: &Value) -> Value {
    let bytes = encoding.encode(&with_unknown_fields(value)).expect("it is encoded");
    let read: T = decode(&bytes).expect("unknown fields are ignored");
    let bytes = encoding.encode(&read).expect("it is encoded");
    let read: T = decode(&bytes).expect("it is read again");
    serde_json::to_value(read).expect("JSON")
}

/// Adds an unknown field to every object of the protocol.
fn with_unknown_fields(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            // Opaque contents: their fields do not belong to the protocol.
            let is_opaque =
                |name: &str| matches!(name, "config" | "message" | "details" | "value" | "blocks");
            let mut fields: serde_json::Map<String, Value> = fields
                .iter()
                .map(|(name, value)| match is_opaque(name) {
                    true => (name.clone(), value.clone()),
                    false => (name.clone(), with_unknown_fields(value)),
                })
                .collect();
            fields.insert("fromTheFuture".into(), json!({"x": [1, null]}));
            Value::Object(fields)
        }
        Value::Array(items) => items.iter().map(with_unknown_fields).collect(),
        other => other.clone(),
    }
}

fn answered<P, T>(name: &str, params: P, ok: T) -> Exchange
where
    P: Serialize + DeserializeOwned,
    T: Serialize + DeserializeOwned,
{
    let call = Call { id: 7, verb: name.to_owned(), params };
    let answer = Answer { id: 7, ok: Some(ok), error: None };
    Exchange {
        name: name.to_owned(),
        asked: serde_json::to_value(call).expect("JSON"),
        said: serde_json::to_value(answer).expect("JSON"),
        again: |encoding, asked, said| {
            (reread::<Call<P>>(encoding, asked), reread::<Answer<T>>(encoding, said))
        },
    }
}

fn replied<P, T>(name: &str, params: P, reply: T) -> Exchange
where
    P: Serialize + DeserializeOwned,
    T: Serialize + DeserializeOwned,
{
    let call = HostCall { id: 3, host: name.to_owned(), params };
    let reply = Reply { id: 3, reply: Some(reply), error: None };
    Exchange {
        name: name.to_owned(),
        asked: serde_json::to_value(call).expect("JSON"),
        said: serde_json::to_value(reply).expect("JSON"),
        again: |encoding, asked, said| {
            (reread::<HostCall<P>>(encoding, asked), reread::<Reply<T>>(encoding, said))
        },
    }
}

fn folder() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden"))
}

/// The expected files, by name.
fn wanted() -> Vec<(String, String)> {
    let pretty = |value: &Value| serde_json::to_string_pretty(value).expect("JSON") + "\n";
    let both = |exchange: Exchange| {
        (exchange.name, json!({"asked": exchange.asked, "said": exchange.said}))
    };
    let exchanges = verbs().into_iter().chain(services()).map(both);
    exchanges
        .chain(others())
        .map(|(name, value)| (format!("{name}.json"), pretty(&value)))
        .collect()
}

#[test]
fn every_message_matches_its_golden_file() {
    let bless = std::env::var_os("CTX_BLESS").is_some();
    for (name, text) in wanted() {
        let path = folder().join(&name);
        if bless {
            std::fs::write(&path, &text).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(golden == text, "{name} differs (CTX_BLESS=1 rewrites it):\n{text}");
    }
}

#[test]
fn every_golden_file_belongs_to_a_verb_or_service() {
    let on_disk: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    let names = verb::ALL.iter().chain(&service::ALL).chain(&["errors", "cancel"]);
    let wanted: BTreeSet<String> = names.map(|name| format!("{name}.json")).collect();
    assert_eq!(on_disk, wanted);
}

#[test]
fn every_message_is_the_same_in_both_encodings_and_unknown_fields_are_ignored() {
    for exchange in verbs().into_iter().chain(services()) {
        for encoding in [Encoding::Json, Encoding::MessagePack] {
            let (asked, said) = (exchange.again)(encoding, &exchange.asked, &exchange.said);
            assert_eq!(asked, exchange.asked, "{} in {encoding}", exchange.name);
            assert_eq!(said, exchange.said, "{} in {encoding}", exchange.name);
        }
    }
}

#[test]
fn no_field_of_a_golden_file_is_empty() {
    fn nothings(at: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Null | Value::Bool(false) => found.push(at.to_owned()),
            Value::Array(items) if items.is_empty() => found.push(at.to_owned()),
            Value::String(text) if text.is_empty() => found.push(at.to_owned()),
            Value::Array(items) => items.iter().for_each(|item| nothings(at, item, found)),
            Value::Object(fields) => {
                fields.iter().for_each(|(name, v)| nothings(&format!("{at}.{name}"), v, found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for exchange in verbs().into_iter().chain(services()) {
        nothings(&exchange.name, &exchange.asked, &mut found);
        nothings(&exchange.name, &exchange.said, &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}
