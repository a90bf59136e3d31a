//! A chat model that gives scripted answers, and tools that give scripted results.
//!
//! It uses no network and never waits.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;

use async_trait::async_trait;
use ctx_core::{
    Block, ChatModel, ChatRequest, ChatStop, Counter, Delta, Deltas, Error, ErrorKind, Message,
    ModelCard, RawJson, Reply, Result, Role, Tokens, ToolCall, ToolOutput, ToolSpec, Toolbox,
    Usage,
};

use crate::locked;

/// Computes the answer to a request.
type Act = Box<dyn FnOnce(&ChatRequest) -> Result<Reply> + Send>;

/// Computes the step for a request.
type Always = Box<dyn Fn(&ChatRequest) -> Step + Send + Sync>;

/// What a [`ScriptedChat`] does with one request.
pub enum Step {
    /// Answers with a text.
    Text(String),
    /// Answers with a text, streamed in these pieces.
    Pieces(Vec<String>),
    /// Calls tools: name and arguments of each.
    Calls(Vec<(String, String)>),
    /// Fails.
    Fail(Error),
    /// Streams this text and then stalls.
    Hang(String),
    /// Streams this text and then loses the connection.
    Break(String),
    /// Runs a closure.
    Do(Act),
}

impl Step {
    /// Answers with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Calls one tool.
    pub fn call(name: impl Into<String>, arguments: impl Into<String>) -> Self {
        Self::Calls(vec![(name.into(), arguments.into())])
    }

    /// Refuses the prompt as too long.
    pub fn overflow() -> Self {
        Self::Fail(Error::new(ErrorKind::Overflow, "the prompt is too long"))
    }
}

/// A model that follows a script. After the end of the script it answers every request with the
/// request's number, or as set by [`always`](Self::always).
#[must_use]
pub struct ScriptedChat {
    card: ModelCard,
    steps: Mutex<VecDeque<Step>>,
    always: Option<Always>,
    requests: Mutex<Vec<ChatRequest>>,
    calls: AtomicUsize,
    hesitant: bool,
}

impl ScriptedChat {
    /// Creates a model with this name and window.
    pub fn new(name: impl Into<String>, window: u32) -> Self {
        Self {
            card: ModelCard::new(name, Tokens(window)),
            steps: Mutex::default(),
            always: None,
            requests: Mutex::default(),
            calls: AtomicUsize::new(0),
            hesitant: false,
        }
    }

    /// Adds steps for the next requests.
    pub fn with(self, steps: impl IntoIterator<Item = Step>) -> Self {
        locked(&self.steps).extend(steps);
        self
    }

    /// Sets the behaviour after the end of the script.
    pub fn always(mut self, step: impl Fn(&ChatRequest) -> Step + Send + Sync + 'static) -> Self {
        self.always = Some(Box::new(step));
        self
    }

    /// Makes the model yield once before it starts and once before it finishes, so that a caller
    /// can be interrupted in between.
    pub fn hesitant(mut self) -> Self {
        self.hesitant = true;
        self
    }

    /// Adds a step for the next request.
    pub fn then(&self, step: Step) {
        locked(&self.steps).push_back(step);
    }

    /// Removes the next step of the script. Returns whether there was one.
    pub fn forget_next(&self) -> bool {
        locked(&self.steps).pop_front().is_some()
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<ChatRequest> {
        locked(&self.requests).clone()
    }

    /// Returns the number of requests so far.
    pub fn asked(&self) -> usize {
        locked(&self.requests).len()
    }

    /// Returns the tokens of a request.
    pub fn measure(request: &ChatRequest) -> Tokens {
        let counter = Counter::default();
        let messages = request.messages.iter().map(|message| counter.message(message));
        let system = request.system.as_deref().map_or(Tokens::ZERO, |text| counter.text(text));
        messages.sum::<Tokens>() + system
    }

    fn reply(&self, blocks: Vec<Block>, prompt: Tokens) -> Reply {
        let mut message = Message::new(Role::Assistant, blocks);
        let stop = match message.tool_calls().next() {
            Some(_) => ChatStop::ToolUse,
            None => ChatStop::End,
        };
        message.meta.usage = Some(Usage {
            input: prompt.get(),
            output: Counter::default().message(&message).get(),
            ..Usage::default()
        });
        Reply { message, stop }
    }
}

#[async_trait]
impl ChatModel for ScriptedChat {
    fn card(&self) -> &ModelCard {
        &self.card
    }

    async fn answer(&self, request: ChatRequest, deltas: Deltas<'_>) -> Result<Reply> {
        let prompt = Self::measure(&request);
        pause(self.hesitant).await;
        let number = {
            let mut requests = locked(&self.requests);
            requests.push(request.clone());
            requests.len()
        };
        let step = locked(&self.steps).pop_front();
        let step = step.unwrap_or_else(|| match &self.always {
            Some(always) => always(&request),
            None => Step::Text(format!("answer {number}")),
        });
        match step {
            Step::Text(text) => {
                deltas(Delta::Text(&text));
                pause(self.hesitant).await;
                Ok(self.reply(vec![Block::text(text)], prompt))
            }
            Step::Pieces(pieces) => {
                pieces.iter().for_each(|piece| deltas(Delta::Text(piece)));
                Ok(self.reply(vec![Block::text(pieces.concat())], prompt))
            }
            Step::Calls(calls) => {
                let mut blocks = Vec::new();
                for (name, arguments) in calls {
                    deltas(Delta::Call(&name));
                    let id = self.calls.fetch_add(1, Ordering::Relaxed);
                    blocks.push(Block::ToolCall(ToolCall::new(
                        format!("call_{id}"),
                        name,
                        RawJson::from_text(arguments),
                    )));
                }
                pause(self.hesitant).await;
                Ok(self.reply(blocks, prompt))
            }
            Step::Fail(error) => Err(error),
            Step::Hang(text) => {
                deltas(Delta::Text(&text));
                std::future::pending().await
            }
            Step::Break(text) => {
                deltas(Delta::Text(&text));
                Err(Error::new(ErrorKind::Upstream, "the connection was lost").retryable())
            }
            Step::Do(act) => act(&request),
        }
    }
}

type Run = Box<dyn Fn(&ToolCall) -> ToolOutput + Send + Sync>;

/// Tools implemented as closures.
#[derive(Default)]
pub struct ScriptedTools {
    specs: Vec<ToolSpec>,
    runs: Vec<Run>,
    ran: Mutex<Vec<ToolCall>>,
    hesitant: bool,
}

impl ScriptedTools {
    /// Adds a tool.
    pub fn with(
        mut self,
        name: impl Into<String>,
        run: impl Fn(&ToolCall) -> ToolOutput + Send + Sync + 'static,
    ) -> Self {
        self.specs.push(ToolSpec {
            name: name.into(),
            description: "a scripted tool".into(),
            parameters: RawJson::from_text(r#"{"type":"object"}"#),
        });
        self.runs.push(Box::new(run));
        self
    }

    /// Makes each call yield once before the tool runs and once before its result is returned.
    pub fn hesitant(mut self) -> Self {
        self.hesitant = true;
        self
    }

    /// Returns the calls that were run.
    pub fn ran(&self) -> Vec<ToolCall> {
        locked(&self.ran).clone()
    }
}

#[async_trait]
impl Toolbox for ScriptedTools {
    fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    async fn run(&self, call: &ToolCall) -> ToolOutput {
        pause(self.hesitant).await;
        locked(&self.ran).push(call.clone());
        let output = match self.specs.iter().position(|spec| spec.name == call.name) {
            Some(at) => self.runs[at](call),
            None => ToolOutput::error("unknown tool"),
        };
        pause(self.hesitant).await;
        output
    }
}

/// Yields once.
async fn pause(wanted: bool) {
    let mut waited = !wanted;
    std::future::poll_fn(|context| {
        if std::mem::replace(&mut waited, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

/// Returns a scripted model both as itself, for inspection, and as a trait object.
pub fn shared(model: ScriptedChat) -> (Arc<ScriptedChat>, Arc<dyn ChatModel>) {
    let model = Arc::new(model);
    (model.clone(), model)
}
