//! A built-in model that follows rules. It needs no key and no server, and shows what ctx does
//! around a model.

mod rules;

use std::time::Duration;

use async_trait::async_trait;
use ctx_config::Config;
use ctx_core::{
    Block, ChatModel, ChatRequest, ChatStop, Counter, Delta, Deltas, Error, ErrorKind, Message,
    ModelCard, Reply, Result, Role, Tokens, Usage,
};
use ctx_session::Home;
use serde_json::json;

/// Its default window. It is small and fills quickly.
const WINDOW: Tokens = Tokens(16_000);

/// The model. It answers from the request alone.
pub(crate) struct Demo {
    card: ModelCard,
    window: Tokens,
    pace: Duration,
}

impl Demo {
    /// Creates the model. It takes `pace` per word. `None` selects the default window.
    pub(crate) fn new(window: Option<Tokens>, pace: Duration) -> Self {
        let window = window.unwrap_or(WINDOW);
        Self { card: ModelCard::new("demo/rules", window), window, pace }
    }
}

/// Returns the configuration of a demonstration: memory with recall, a new folder for memory
/// flushes, and a guard that accepts small windows.
///
/// # Errors
///
/// If that folder cannot be created.
pub fn config(home: &Home) -> Result<Config> {
    let workspace = home.root.join("demo-workspace");
    std::fs::create_dir_all(&workspace).map_err(|error| {
        Error::new(ErrorKind::Io, "cannot create the folder of the demonstration")
            .with("path", workspace.display())
            .source(error)
            .hint("set CTX_HOME to a folder that ctx may write to")
    })?;
    let workspace = std::path::absolute(&workspace).unwrap_or(workspace);
    Config::from_value(json!({
        "agents": { "defaults": {
            "workspace": workspace,
            "memoryContext": { "enabled": true, "autoRecallMinScore": 0.2 },
            "windowGuard": { "hardMinTokens": 4_000, "warnBelowTokens": 4_000 },
        } },
    }))
}

/// Counts the tokens of a request, including its tools.
fn measure(request: &ChatRequest) -> Tokens {
    let counter = Counter::default();
    let messages: Tokens = request.messages.iter().map(|message| counter.message(message)).sum();
    let tools = request.tools.iter().map(|tool| {
        let texts = [tool.name.as_str(), &tool.description, tool.parameters.as_str()];
        texts.into_iter().map(|text| counter.text(text)).sum::<Tokens>()
    });
    let system = request.system.as_deref().map_or(Tokens::ZERO, |text| counter.text(text));
    messages + system + tools.sum()
}

#[async_trait]
impl ChatModel for Demo {
    fn card(&self) -> &ModelCard {
        &self.card
    }

    async fn answer(&self, request: ChatRequest, deltas: Deltas<'_>) -> Result<Reply> {
        let prompt = measure(&request);
        if prompt > self.window {
            let error = Error::new(ErrorKind::Overflow, "the prompt is too long");
            return Err(error.with("tokens", prompt).with("window", self.window));
        }
        let blocks = rules::answer(&request);
        for block in &blocks {
            match block {
                Block::Text { text } => {
                    for word in text.split_inclusive(' ') {
                        deltas(Delta::Text(word));
                        if !self.pace.is_zero() {
                            tokio::time::sleep(self.pace).await;
                        }
                    }
                }
                Block::ToolCall(call) => deltas(Delta::Call(&call.name)),
                _ => {}
            }
        }
        let mut message = Message::new(Role::Assistant, blocks);
        let stop = match message.tool_calls().next() {
            Some(_) => ChatStop::ToolUse,
            None => ChatStop::End,
        };
        let output = Counter::default().message(&message).get();
        message.meta.usage = Some(Usage { input: prompt.get(), output, ..Usage::default() });
        Ok(Reply { message, stop })
    }
}
