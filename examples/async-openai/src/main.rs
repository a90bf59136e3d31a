//! An agent with `async-openai` and the layers of ctx, without its runtime: twelve turns, each reading a big file.
//!
//! `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `MODEL` name the provider. `CTX=off` sends all messages as they are.

use std::env;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use async_openai::Client;
use async_openai::types::chat::{ChatCompletionRequestMessage, CreateChatCompletionRequest};
use ctx_compaction::{CompactOptions, Config, History, compact};
use ctx_core::{
    CompactionTrigger, ContextView, Counter, Entry, Layer, Timestamp, TokenLedger, Tokens,
    TurnContext,
};
use ctx_dialect::openai_chat;
use ctx_tool_guard::ToolGuard;
use serde::Serialize;
use serde_json::json;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The messages of one conversation, kept inside a window.
struct Context {
    view: ContextView,
    guard: ToolGuard,
    compaction: Arc<Config>,
    count: u32,
}

impl Context {
    fn new(window: Tokens, reserve: Tokens) -> Self {
        Self {
            view: ContextView::new(TokenLedger::new(Counter::default(), window, reserve)),
            guard: ToolGuard::new(ctx_tool_guard::Config::default()),
            compaction: Arc::default(),
            count: 0,
        }
    }

    fn next_id(&mut self) -> String {
        self.count += 1;
        format!("{:08x}", self.count)
    }

    /// Appends a message of the API.
    fn push(&mut self, message: &impl Serialize) -> Result<()> {
        let message = openai_chat::parse(&serde_json::to_string(message)?)?;
        let id = self.next_id();
        Ok(self.view.append(Arc::new(Entry::in_memory(id, message)))?)
    }

    /// Returns the messages of the next request: shortens tool results, and compacts if they are still too many.
    async fn fit(&mut self) -> Result<Vec<ChatCompletionRequestMessage>> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_millis();
        let turn = TurnContext::at(Timestamp(i64::try_from(now)?));
        self.guard.apply(&mut self.view, None, &turn)?;
        if self.view.used() > self.compaction.threshold(self.view.ledger()) {
            let options = CompactOptions::new(CompactionTrigger::Threshold, turn.now);
            let done = compact(History::of(&self.view)?, self.compaction.clone(), options).await?;
            if let Some(compacted) = done.result {
                let id = self.next_id();
                self.view.compact(compacted, id, "compaction", "over the threshold")?;
            }
        }
        self.view.finish()?;
        let messages = self.view.messages()?;
        let written = openai_chat::write(messages.iter().map(|message| &**message));
        Ok(written
            .iter()
            .map(|json| serde_json::from_str(json.as_str()))
            .collect::<serde_json::Result<_>>()?)
    }
}

/// Asks the model until it calls no more tools, and returns its answer.
async fn turn(
    context: &mut Context,
    all: &mut Vec<ChatCompletionRequestMessage>,
    words: &str,
) -> Result<String> {
    let client = Client::new();
    let model = env::var("MODEL").unwrap_or_else(|_| "fake-model".to_owned());
    let tools = json!([{ "type": "function", "function": {
        "name": "read_file", "description": "Reads the big file.", "parameters": { "type": "object" },
    } }]);
    let mut news = vec![json!({ "role": "user", "content": words })];
    loop {
        for message in news.drain(..) {
            context.push(&message)?;
            all.push(serde_json::from_value(message)?);
        }
        let messages = match env::var("CTX").is_ok_and(|ctx| ctx == "off") {
            true => all.clone(),
            false => context.fit().await?,
        };
        let request = json!({ "model": model, "messages": messages, "tools": tools });
        let request: CreateChatCompletionRequest = serde_json::from_value(request)?;
        let reply = client.chat().create(request).await?;
        let reply = reply.choices.into_iter().next().ok_or("an answer without choices")?.message;
        news.push(serde_json::to_value(&reply)?);
        let calls = reply.tool_calls.unwrap_or_default();
        if calls.is_empty() {
            let answer = reply.content.unwrap_or_default();
            context.push(&news[0])?;
            all.push(serde_json::from_value(news.remove(0))?);
            return Ok(answer);
        }
        let big: String = (0..240)
            .map(|n| format!("line {n} of the big file lorem ipsum dolor sit amet\n"))
            .collect();
        for call in serde_json::to_value(calls)?.as_array().into_iter().flatten() {
            news.push(json!({ "role": "tool", "tool_call_id": call["id"], "content": big }));
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut context = Context::new(Tokens(16_000), Tokens(4_000));
    let mut all = Vec::new();
    for number in 1..=12 {
        let said = turn(&mut context, &mut all, &format!("BIGREAD {number}")).await;
        let said = said.unwrap_or_else(|error| error.to_string());
        println!("{}", json!({ "ok": said.contains("DONE"), "said": said }));
    }
}
