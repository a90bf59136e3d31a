//! The model that a conversation is held with, and the tools it may call.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;

use crate::{Block, CallId, Message, RawJson, Result, Tokens, ToolCall, Usage};

/// Who a model is, and how much it reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCard {
    /// The name it is asked for by, for example `anthropic/claude-sonnet-4-5`.
    pub name: String,
    /// Who serves it, as transcripts say it: `anthropic`.
    pub provider: String,
    /// What its server calls it.
    pub id: String,
    /// The API family, as transcripts say it: `anthropic-messages`, `openai-completions`,
    /// `openai-responses`.
    pub api: String,
    /// Its own window, where known, or what is assumed of it.
    pub window: Option<Tokens>,
    /// The longest answer, where known.
    pub max_output: Option<Tokens>,
}

impl ModelCard {
    /// A model of that name, `provider/id`, and window. It is told of as one behind OpenAI's chat
    /// completions, whose rules for transcripts are the least strict.
    pub fn new(name: impl Into<String>, window: Tokens) -> Self {
        let name = name.into();
        let (provider, id) = name.split_once('/').unwrap_or(("host", &name));
        Self {
            provider: provider.to_owned(),
            id: id.to_owned(),
            api: "openai-completions".to_owned(),
            window: Some(window),
            max_output: None,
            name,
        }
    }
}

/// A tool as the model is told of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// The name it is called by.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The JSON schema of its arguments, an object.
    pub parameters: RawJson,
}

/// One request of a conversation.
#[derive(Clone, Debug, Default)]
pub struct ChatRequest {
    /// The system prompt.
    pub system: Option<String>,
    /// The messages, oldest first. Calls and results are whole pairs.
    pub messages: Vec<Arc<Message>>,
    /// The tools it may call.
    pub tools: Arc<[ToolSpec]>,
    /// The longest answer wanted. Absent: as long as the model and its server will have it, and of
    /// an API that must be told, what a usual reserve leaves room for. A host that knows how much of
    /// the window is left should say so: some providers refuse a prompt that fits, but not together
    /// with the longest answer.
    pub max_tokens: Option<Tokens>,
    /// Names the conversation, for providers that keep their caches by it.
    pub session_id: Option<String>,
    /// How much the model is to think, in the words of its API: `low`, `medium`, `high`. Absent: as it
    /// likes.
    pub thinking: Option<String>,
}

/// A piece of an answer, as it comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// More of the text.
    Text(&'a str),
    /// More of the reasoning.
    Thinking(&'a str),
    /// A tool call began.
    Call(&'a str),
}

/// Takes the pieces of an answer.
pub type Deltas<'a> = &'a mut (dyn for<'d> FnMut(Delta<'d>) + Send);

/// Why an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChatStop {
    /// The model was done.
    #[default]
    End,
    /// It wants its tools run.
    ToolUse,
    /// It reached the limit of the answer.
    Length,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The message, with provider, model, API, usage and stop reason in its
    /// [`Meta`](crate::Meta). It is what is stored.
    pub message: Message,
    /// Why it ended.
    pub stop: ChatStop,
}

impl Reply {
    /// What the provider reported.
    #[must_use]
    pub fn usage(&self) -> Option<&Usage> {
        self.message.meta.usage.as_ref()
    }
}

/// A message that ends the answer, with nothing reported.
impl From<Message> for Reply {
    fn from(message: Message) -> Self {
        Self { message, stop: ChatStop::End }
    }
}

/// A model that a conversation is held with.
///
/// An answer is whole or an error: a stream that breaks off is an error, and so is one that ends in
/// the middle of a tool call. Errors say what to do next by their kind.
/// [`Overflow`](crate::ErrorKind::Overflow): the prompt is too long, said in whatever way the
/// provider says it, an answer that ends at once because the window is full included.
/// [`Capability`](crate::ErrorKind::Capability): key, account, model or content are refused, and
/// another model may do better. One that is [retryable](crate::Error::is_retryable) may pass when
/// tried again. Dropping the future gives the request up.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Who it is.
    fn card(&self) -> &ModelCard;

    /// What a call of that usage costs, in USD; `None` where no price is known.
    fn cost(&self, usage: &Usage) -> Option<f64> {
        let _ = usage;
        None
    }

    /// Answers. The pieces go to `deltas` as they come; where an error follows them, they are void.
    async fn answer(&self, request: ChatRequest, deltas: Deltas<'_>) -> Result<Reply>;
}

/// A model made of a function that gives its answer in one piece: for a host's own, and for tests.
///
/// ```
/// use ctx_core::{Message, ModelCard, Reply, Role, Tokens, model_fn};
///
/// let parrot = model_fn(ModelCard::new("my/parrot", Tokens(32_000)), |request| async move {
///     let heard = request.messages.last().map(|m| m.plain_text()).unwrap_or_default();
///     Ok(Reply::from(Message::text(Role::Assistant, heard)))
/// });
/// # let _: &dyn ctx_core::ChatModel = &parrot;
/// ```
pub fn model_fn<F, Fut>(card: ModelCard, answer: F) -> ModelFn<F>
where
    F: Fn(ChatRequest) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Reply>> + Send,
{
    ModelFn { card, answer }
}

/// See [`model_fn`].
#[derive(Clone)]
pub struct ModelFn<F> {
    card: ModelCard,
    answer: F,
}

impl<F> fmt::Debug for ModelFn<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelFn").field("card", &self.card).finish_non_exhaustive()
    }
}

#[async_trait]
impl<F, Fut> ChatModel for ModelFn<F>
where
    F: Fn(ChatRequest) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Reply>> + Send,
{
    fn card(&self) -> &ModelCard {
        &self.card
    }

    async fn answer(&self, request: ChatRequest, _: Deltas<'_>) -> Result<Reply> {
        (self.answer)(request).await
    }
}

/// What a tool gave back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// Text and images.
    pub content: Vec<Block>,
    /// Whether it failed. The model is told, and may try otherwise.
    pub is_error: bool,
}

impl ToolOutput {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], is_error: false }
    }

    /// A failure, in words for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], is_error: true }
    }

    /// As the message that is stored.
    #[must_use]
    pub fn into_message(self, call: &ToolCall) -> Message {
        let result = crate::ToolResult {
            call_id: CallId::clone(&call.id),
            name: Some(call.name.clone()),
            content: self.content,
            is_error: self.is_error,
        };
        Message::new(crate::Role::ToolResult, vec![Block::ToolResult(result)])
    }
}

/// The tools of a turn.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// What there is. Every request tells the model of all of it, in this order: an order that
    /// changes breaks the provider's cache.
    fn specs(&self) -> &[ToolSpec];

    /// Runs a call. A name that is not among the specs, and arguments that make no sense, are
    /// failures for the model to read.
    async fn run(&self, call: &ToolCall) -> ToolOutput;
}

/// No tools.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTools;

#[async_trait]
impl Toolbox for NoTools {
    fn specs(&self) -> &[ToolSpec] {
        &[]
    }

    async fn run(&self, call: &ToolCall) -> ToolOutput {
        ToolOutput::error(format!("there is no tool {}", call.name))
    }
}
