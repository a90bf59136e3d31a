//! A model with every kind of failure.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::{
    Block, ChatModel, ChatRequest, ChatStop, Delta, Deltas, Error, ErrorKind, Message, ModelCard,
    RawJson, Reply, Result, Role, Tokens, ToolCall, ToolOutput, ToolSpec, Toolbox, Usage,
};
use ctx_testkit::Random;
use ctx_testkit::chat::ScriptedChat;

/// Whether the model fails. A calm model answers, and calls known tools.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mood {
    Wild,
    Calm,
}

pub(crate) struct Moody {
    card: ModelCard,
    mood: Mood,
    /// The beginning of its answers, unique to this life.
    life: String,
    random: Mutex<Random>,
    answers: AtomicU64,
    /// Number of requests to reject before it answers again.
    rejections: AtomicU64,
    /// Requests that were larger than the window.
    pub(crate) too_large: Mutex<Vec<String>>,
}

impl Moody {
    pub(crate) fn new(name: &str, window: u32, life: &str, seed: u64, mood: Mood) -> Arc<Self> {
        Arc::new(Self {
            card: ModelCard {
                name: format!("moody/{name}"),
                provider: "moody".into(),
                id: name.to_owned(),
                api: "openai-completions".into(),
                window: Some(Tokens(window)),
                max_output: None,
            },
            mood,
            life: format!("{life}-{name}"),
            random: Mutex::new(Random::seeded(seed)),
            answers: AtomicU64::new(0),
            rejections: AtomicU64::new(0),
            too_large: Mutex::default(),
        })
    }

    fn dice(&self, sides: usize) -> usize {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).below(sides)
    }

    fn overflow() -> Error {
        Error::new(ErrorKind::Overflow, "the prompt is too long")
    }

    /// Returns a unique answer.
    fn answer(&self) -> String {
        let n = self.answers.fetch_add(1, Ordering::Relaxed);
        let words = self.dice(600);
        let mut text = format!("answer {}-{n}.", self.life);
        for word in 0..words {
            text.push_str([" the", " window", " holds", " what", " fits"][word % 5]);
        }
        text
    }

    fn calls(&self) -> Vec<Block> {
        let n = self.answers.fetch_add(1, Ordering::Relaxed);
        let calls = (0..1 + self.dice(3)).map(|at| {
            let name = match self.dice(12) {
                0 if self.mood == Mood::Wild => "fly",
                _ => "read",
            };
            let arguments = format!("{{\"file\":{n},\"tokens\":{}}}", self.dice(4_000));
            Block::ToolCall(ToolCall::new(
                format!("call-{}-{n}-{at}", self.life),
                name,
                RawJson::from_text(arguments),
            ))
        });
        calls.collect()
    }

    fn reply(request: &ChatRequest, blocks: Vec<Block>) -> Reply {
        let mut message = Message::new(Role::Assistant, blocks);
        let stop = match message.tool_calls().next() {
            Some(_) => ChatStop::ToolUse,
            None => ChatStop::End,
        };
        let input = ScriptedChat::measure(request).get();
        message.meta.usage = Some(Usage { input, output: 10, ..Usage::default() });
        Reply { message, stop }
    }
}

#[async_trait]
impl ChatModel for Moody {
    fn card(&self) -> &ModelCard {
        &self.card
    }

    async fn answer(&self, request: ChatRequest, deltas: Deltas<'_>) -> Result<Reply> {
        let size = ScriptedChat::measure(&request);
        if Some(size) > self.card.window {
            let mut too_large = self.too_large.lock().unwrap_or_else(PoisonError::into_inner);
            too_large.push(format!("{}: {size}", self.card.name));
        }
        let pairs = ctx_core::check_pairs(request.messages.iter().map(|message| &**message));
        if let Err(broken) = pairs {
            let mut too_large = self.too_large.lock().unwrap_or_else(PoisonError::into_inner);
            too_large.push(format!("{}: {broken}", self.card.name));
        }
        tokio::task::yield_now().await;
        let is_flush = request.tools.iter().any(|tool| tool.name == "append_memory");
        let wild = if self.mood == Mood::Wild { self.dice(100) } else { 99 };
        if self.rejections.load(Ordering::Relaxed) > 0 {
            self.rejections.fetch_sub(1, Ordering::Relaxed);
            return Err(Self::overflow());
        }
        match wild {
            0..4 => return Err(Self::overflow()),
            4 => {
                self.rejections.store(5, Ordering::Relaxed);
                return Err(Self::overflow());
            }
            5..9 => {
                deltas(Delta::Text("answer that brea"));
                tokio::time::sleep(Duration::from_millis(30)).await;
                return Err(
                    Error::new(ErrorKind::Upstream, "the connection was closed").retryable()
                );
            }
            9..12 => {
                // Slow, but within the timeout for silence.
                for _ in 0..1 + self.dice(4) {
                    let seconds = self.dice(290);
                    tokio::time::sleep(Duration::from_secs(seconds as u64)).await;
                    deltas(Delta::Thinking("hm"));
                }
            }
            12 => std::future::pending::<()>().await,
            13 => {
                let half = ToolCall::new("half", "read", RawJson::from_text("{\"fi"));
                return Ok(Self::reply(&request, vec![Block::ToolCall(half)]));
            }
            14 => return Err(Error::new(ErrorKind::Capability, "not with this key")),
            15 => return Ok(Self::reply(&request, vec![Block::text(" ")])),
            16 => return Err(Error::new(ErrorKind::Upstream, "busy").retry_after(HALF_MINUTE)),
            _ => {}
        }
        if is_flush {
            return Ok(Self::reply(&request, vec![Block::text("NO_REPLY")]));
        }
        let calls_tools = !request.tools.is_empty() && self.dice(10) < 4;
        let blocks = match calls_tools {
            true => self.calls(),
            false => {
                let text = self.answer();
                let middle = text.len() / 2;
                deltas(Delta::Text(&text[..middle]));
                tokio::task::yield_now().await;
                deltas(Delta::Text(&text[middle..]));
                vec![Block::text(text)]
            }
        };
        Ok(Self::reply(&request, blocks))
    }
}

const HALF_MINUTE: Duration = Duration::from_secs(30);

/// Reads files of the requested size.
pub(crate) struct Files([ToolSpec; 1]);

impl Files {
    pub(crate) fn new() -> Self {
        Self([ToolSpec {
            name: "read".into(),
            description: "Reads a file.".into(),
            parameters: RawJson::from_text(r#"{"type":"object"}"#),
        }])
    }
}

#[async_trait]
impl Toolbox for Files {
    fn specs(&self) -> &[ToolSpec] {
        &self.0
    }

    async fn run(&self, call: &ToolCall) -> ToolOutput {
        tokio::task::yield_now().await;
        #[derive(serde::Deserialize)]
        struct Arguments {
            tokens: usize,
        }
        let arguments = serde_json::from_str::<Arguments>(call.arguments.as_str());
        let lines = arguments.map_or(1, |arguments| arguments.tokens / 8);
        let text: String = (0..lines).map(|n| format!("line {n} of a file on disk\n")).collect();
        ToolOutput::text(format!("{}\n{text}", call.arguments.as_str()))
    }
}
