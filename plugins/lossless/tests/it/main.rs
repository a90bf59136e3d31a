//! Tests the engine behind its driver, as a host uses it.

mod compacting;
mod folding;
mod restarting;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::atomic::AtomicBool;

use ctx_engine_sdk::{Driver, Error, HostTransport, Result};
use lossless::Lossless;
use serde_json::{Value, json};

/// A host with a store, a counter, and a model with a fixed answer.
#[derive(Default)]
struct Services {
    store: BTreeMap<String, Value>,
    written: usize,
    model: Option<String>,
    prompts: Vec<String>,
}

fn measure(text: &str) -> u64 {
    text.len() as u64 / 4 + 4
}

impl HostTransport for Services {
    fn call(&mut self, host_call: &[u8]) -> Result<Vec<u8>> {
        let call: Value = serde_json::from_slice(host_call)?;
        let params = &call["params"];
        let key = params["key"].as_str().unwrap_or_default();
        let reply = match call["host"].as_str() {
            Some("store.get") => json!({"value": self.store.get(key)}),
            Some("store.put") => {
                self.written += params["value"].to_string().len();
                self.store.insert(key.to_owned(), params["value"].clone());
                json!({})
            }
            Some("tokens.count") => {
                let text = params["texts"][0].as_str().unwrap_or_default();
                json!({"tokens": [measure(text)]})
            }
            Some("llm.complete") => {
                self.prompts.push(params["prompt"].as_str().unwrap_or_default().to_owned());
                json!({"text": self.model.as_ref().ok_or(Error::failed("no model today"))?})
            }
            _ => json!({}),
        };
        Ok(json!({"id": call["id"], "reply": reply}).to_string().into_bytes())
    }
}

#[derive(Default)]
struct Driven {
    driver: Driver<Lossless>,
    services: Services,
    /// The host's rows of session "s".
    rows: Vec<Value>,
}

impl Driven {
    fn up(config: &Value) -> Self {
        let mut driven = Self::default();
        driven.hello(config);
        driven
    }

    fn hello(&mut self, config: &Value) {
        let features = ["store.get", "store.put", "tokens.count", "llm.complete"];
        let hello = json!({"protocol": "1.0", "features": features, "config": config});
        assert_eq!(self.ask("hello", &hello)["id"], "lossless");
    }

    /// Replaces the process: only the store remains.
    fn restart(&mut self, config: &Value) {
        self.driver = Driver::default();
        self.hello(config);
    }

    /// Returns the answer's `ok`.
    fn ask(&mut self, verb: &str, params: &Value) -> Value {
        let call = json!({"id": 1, "verb": verb, "params": params}).to_string();
        let cancelled = AtomicBool::new(false);
        let answer = self.driver.answer(call.as_bytes(), &mut self.services, &cancelled);
        let answer: Value = serde_json::from_slice(&answer).expect("JSON");
        assert!(answer["ok"].is_object(), "{verb}: {answer}");
        answer["ok"].clone()
    }

    /// Returns the parameters of a call that sends all rows again.
    fn params(&self, budget: u64) -> Value {
        json!({"sessionId": "s", "budget": {"messages": budget},
            "update": {"reset": true, "added": self.rows, "rows": self.rows.len()}})
    }

    fn assemble(&mut self, budget: u64) -> Value {
        let params = self.params(budget);
        self.ask("assemble", &params)
    }

    /// Applies a plan permanently, like a host that keeps its view during the session.
    fn carry_out(&mut self, plan: &Value) {
        let empty = Vec::new();
        let list = |key: &str| plan[key].as_array().unwrap_or(&empty);
        let dropped: HashSet<&str> = list("drop").iter().filter_map(Value::as_str).collect();
        assert!(self.rows.iter().all(|r| r["keep"] != true || !dropped.contains(id(r))));
        let mut groups: HashMap<u64, HashSet<bool>> = HashMap::new();
        for row in &self.rows {
            let group = row["group"].as_u64().unwrap_or_default();
            groups.entry(group).or_default().insert(dropped.contains(id(row)));
        }
        assert!(groups.values().all(|fates| fates.len() == 1), "a group was split");
        self.rows.retain(|row| !dropped.contains(id(row)));
        for new in list("insert") {
            let text = new["text"].as_str().unwrap_or_default();
            let at = self.rows.iter().position(|row| row["id"] == new["before"]);
            let at = at.unwrap_or(self.rows.len());
            assert!(
                new["before"].is_null() || at < self.rows.len(),
                "inserted before an unknown row"
            );
            assert!(self.rows.iter().all(|row| row["id"] != new["id"]), "inserted with a known id");
            let row = json!({"id": new["id"], "role": "user", "tokens": measure(text),
                "group": 1_000_000 + self.rows.len() + self.services.written,
                "inserted": true, "message": message("user", text)});
            self.rows.insert(at, row);
        }
    }

    fn tokens(&self) -> u64 {
        self.rows.iter().filter_map(|row| row["tokens"].as_u64()).sum()
    }

    /// Returns the entries reachable from the request: rows, and the entries that the summaries
    /// among them cover, found through the store.
    fn in_reach(&self) -> HashSet<String> {
        let mut open: Vec<String> = self.rows.iter().map(|row| id(row).to_owned()).collect();
        let mut reached = HashSet::new();
        while let Some(id) = open.pop() {
            let node = self.services.store.get(&format!("node/s/{id}"));
            for list in node.iter().flat_map(|node| [&node["children"], &node["entries"]]) {
                let ids = list.as_array().into_iter().flatten().filter_map(Value::as_str);
                open.extend(ids.map(str::to_owned));
            }
            reached.insert(id);
        }
        reached
    }
}

fn id(row: &Value) -> &str {
    row["id"].as_str().unwrap_or_default()
}

fn message(role: &str, text: &str) -> Value {
    json!({"role": role, "blocks": [{"type": "text", "text": text}]})
}

/// Returns a session of turns of four messages: a request, a tool call, its result, an answer.
fn session(messages: usize) -> Vec<Value> {
    (0..messages)
        .map(|at| {
            let turn = at / 4;
            let (role, group, text) = match at % 4 {
                0 => ("user", turn * 3, format!("Please do step {turn} of the план, 一步一步 🙂")),
                1 => ("assistant", turn * 3 + 1, format!("I look into src/part{turn}.rs first.")),
                2 => {
                    ("toolResult", turn * 3 + 1, format!("{}\nerror: E{turn}", "line\n".repeat(60)))
                }
                _ => (
                    "assistant",
                    turn * 3 + 2,
                    format!("I decided on way {turn} because it is short."),
                ),
            };
            json!({"id": format!("{at:08x}"), "role": role, "tokens": measure(&text),
                "group": group, "message": message(role, &text)})
        })
        .collect()
}
