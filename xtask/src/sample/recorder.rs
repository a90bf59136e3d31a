//! Writes a pi session, version 3, entry by entry.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::clock::Clock;
use super::random::Random;

/// What the provider reads before the first message: system prompt and tools, in tokens.
const FIXED_TOKENS: u64 = 3_150;

/// How long the provider keeps a prompt in its cache, in milliseconds.
const CACHE_MS: i64 = 300_000;

/// The session as it grows.
pub(crate) struct Recorder {
    lines: Vec<String>,
    leaf: Option<String>,
    pub(crate) clock: Clock,
    ids: Random,
    /// Characters in the model's context.
    context: usize,
    /// The same right after each entry, to go back to.
    contexts: HashMap<String, usize>,
    last_prompt: u64,
    last_request: i64,
}

impl Recorder {
    pub(crate) fn new(started: i64, cwd: &str) -> Self {
        let mut recorder = Self {
            lines: Vec::new(),
            leaf: None,
            clock: Clock(started),
            ids: Random::new(0x7e57_5e55_1011),
            context: 0,
            contexts: HashMap::new(),
            last_prompt: 0,
            last_request: 0,
        };
        let header = json!({
            "type": "session", "version": 3, "id": recorder.ids.uuid(),
            "timestamp": recorder.clock.iso(), "cwd": cwd,
        });
        recorder.lines.push(header.to_string());
        recorder
    }

    /// The whole file.
    pub(crate) fn text(&self) -> String {
        self.lines.join("\n") + "\n"
    }

    /// The newest entry.
    pub(crate) fn leaf(&self) -> String {
        self.leaf.clone().unwrap_or_default()
    }

    /// Goes on from an earlier entry.
    pub(crate) fn branch(&mut self, from: &str) {
        self.context = self.contexts.get(from).copied().unwrap_or(0);
        self.leaf = Some(from.to_owned());
        self.last_prompt = 0;
    }

    /// An entry of any type, as a child of the newest.
    pub(crate) fn entry(&mut self, kind: &str, fields: Value) {
        let id = self.ids.hex8();
        let mut entry = Map::new();
        entry.insert("type".to_owned(), kind.into());
        entry.insert("id".to_owned(), id.as_str().into());
        entry.insert("parentId".to_owned(), self.leaf.clone().into());
        entry.insert("timestamp".to_owned(), self.clock.iso().into());
        if let Value::Object(fields) = fields {
            entry.extend(fields);
        }
        self.lines.push(Value::Object(entry).to_string());
        self.contexts.insert(id.clone(), self.context);
        self.leaf = Some(id);
    }

    /// A message that is not the model's. `chars` is what the model reads of it.
    pub(crate) fn message(&mut self, mut message: Value, chars: usize) {
        message["timestamp"] = self.clock.0.into();
        self.context += chars;
        self.entry("message", json!({ "message": message }));
    }

    /// An answer of the model, with the usage it would have reported.
    pub(crate) fn assistant(&mut self, content: &Value, chars: usize, stop: &str) {
        let prompt = FIXED_TOKENS + self.context as u64 * 10 / 33;
        let warm = self.clock.0 - self.last_request < CACHE_MS;
        let read = if warm { self.last_prompt.min(prompt) } else { 0 };
        let fresh = if read == prompt { 0 } else { 4 };
        let usage = usage(fresh, chars as u64 * 10 / 33 + 9, read, prompt - read - fresh);
        (self.last_prompt, self.last_request) = (prompt, self.clock.0);
        let message = json!({
            "role": "assistant", "content": content, "api": "anthropic-messages",
            "provider": "anthropic", "model": "claude-sonnet-4-5", "usage": usage, "stopReason": stop,
            "timestamp": self.clock.0,
        });
        self.context += chars;
        self.entry("message", json!({ "message": message }));
    }

    /// A compaction by the agent: what was before `kept` is replaced by the summary.
    pub(crate) fn compaction(&mut self, kept: &str, summary: &str, details: &Value) {
        let before = FIXED_TOKENS + self.context as u64 * 10 / 33;
        let dropped = self.contexts.get(kept).copied().unwrap_or(0);
        self.context = self.context - dropped.min(self.context) + summary.len();
        self.last_prompt = FIXED_TOKENS;
        self.entry(
            "compaction",
            json!({
                "summary": summary, "firstKeptEntryId": kept, "tokensBefore": before,
                "details": details, "fromHook": false,
            }),
        );
    }

    /// A new id for a tool call.
    pub(crate) fn call_id(&mut self) -> String {
        format!("toolu_01{}", self.ids.letters(22))
    }

    /// A provider's proof that it wrote a thought.
    pub(crate) fn signature(&mut self) -> String {
        format!("Eu8CCkYICxgCKkB{}==", self.ids.letters(88))
    }
}

/// Usage with its cost at the model's prices of 3, 15, 0.30 and 3.75 dollars per million.
fn usage(input: u64, output: u64, read: u64, write: u64) -> Value {
    let cost = |tokens: u64, cents: u64| (tokens * cents) as f64 / 1e8;
    json!({
        "input": input, "output": output, "cacheRead": read, "cacheWrite": write,
        "totalTokens": input + output + read + write,
        "cost": {
            "input": cost(input, 300), "output": cost(output, 1_500), "cacheRead": cost(read, 30),
            "cacheWrite": cost(write, 375),
            "total": (input * 300 + output * 1_500 + read * 30 + write * 375) as f64 / 1e8,
        },
    })
}
