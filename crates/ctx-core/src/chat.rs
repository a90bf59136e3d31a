//! The model of a conversation, and the tools it may call.

use std::sync::Arc;

use async_trait::async_trait;

use crate::{Block, CallId, Message, RawJson, Result, Tokens, ToolCall};

/// The identity of a model and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCard {
    /// The name that selects the model, for example `anthropic/claude-sonnet-4-5`.
    pub name: String,
    /// The provider, as transcripts name it: `anthropic`.
    pub provider: String,
    /// The model's id at its provider.
    pub id: String,
    /// The API family, as transcripts name it: `anthropic-messages`, `openai-completions`,
    /// `openai-responses`.
    pub api: String,
    /// The context window: known, or an assumed default.
    pub window: Option<Tokens>,
    /// The maximum number of output tokens, where known.
    pub max_output: Option<Tokens>,
}

impl ModelCard {
    /// Creates the card of a model from its name, `provider/id`, and its context window. The API is
    /// OpenAI's chat completions, which has the most permissive rules for transcripts.
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

/// A tool, as it is described to the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSpec {
    /// The name of the tool.
    pub name: String,
    /// A description of what the tool does.
    pub description: String,
    /// The JSON schema of the arguments, an object.
    pub parameters: RawJson,
}

/// One request of a conversation.
#[derive(Clone, Debug, Default)]
pub struct ChatRequest {
    /// The system prompt.
    pub system: Option<String>,
    /// The messages, oldest first. Every call has its result.
    pub messages: Vec<Arc<Message>>,
    /// The tools that the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// The maximum number of output tokens. `None` leaves the limit to the model and its server;
    /// for an API that requires a limit, a typical reserve is used. A host that knows how much of
    /// the window is left should set it: some providers refuse a prompt that fits alone but not
    /// together with the maximum output.
    pub max_tokens: Option<Tokens>,
    /// Identifies the conversation for providers that key their caches by it.
    pub session_id: Option<String>,
    /// The reasoning effort, in the terms of the API: `low`, `medium`, `high`. `None` leaves it to
    /// the model.
    pub thinking: Option<String>,
}

/// One streamed part of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delta<'a> {
    /// More text.
    Text(&'a str),
    /// More reasoning.
    Thinking(&'a str),
    /// The start of a tool call.
    Call(&'a str),
}

/// Receives the streamed parts of an answer.
pub type Deltas<'a> = &'a mut (dyn for<'d> FnMut(Delta<'d>) + Send);

/// The reason why an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChatStop {
    /// The model finished.
    #[default]
    End,
    /// The model requests tool calls.
    ToolUse,
    /// The answer reached its token limit.
    Length,
}

/// A complete answer.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The message as it is stored, with provider, model, API, usage and stop reason in its
    /// [`Meta`](crate::Meta).
    pub message: Message,
    /// The reason why it ended.
    pub stop: ChatStop,
}

/// Converts a message into a finished answer without reported usage.
impl From<Message> for Reply {
    fn from(message: Message) -> Self {
        Self { message, stop: ChatStop::End }
    }
}

/// A model that answers the requests of a conversation.
///
/// An answer is complete or an error: a stream that breaks off, or ends in the middle of a tool
/// call, is an error. The kind of an error says what to do next.
/// [`Overflow`](crate::ErrorKind::Overflow): the prompt is too long, however the provider reports
/// it; this includes an answer that ends at once because the window is full.
/// [`Capability`](crate::ErrorKind::Capability): key, account, model or content are refused, and
/// another model may succeed. A [retryable](crate::Error::is_retryable) error may pass on a retry.
/// Dropping the future cancels the request.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Returns the identity of the model.
    fn card(&self) -> &ModelCard;

    /// Answers a request. The parts are streamed to `deltas`; if an error follows, they are
    /// invalid.
    async fn answer(&self, request: ChatRequest, deltas: Deltas<'_>) -> Result<Reply>;
}

/// Creates a model from a function that returns complete answers: for hosts and for tests.
///
/// ```
/// use ctx_core::{Message, ModelCard, Reply, Role, Tokens, model_fn};
///
/// let parrot = model_fn(ModelCard::new("my/parrot", Tokens(32_000)), |request| async move {
///     let text = request.messages.last().map(|m| m.plain_text()).unwrap_or_default();
///     Ok(Reply::from(Message::text(Role::Assistant, text)))
/// });
/// # let _: &dyn ctx_core::ChatModel = &parrot;
/// ```
pub fn model_fn<F, Fut>(card: ModelCard, answer: F) -> impl ChatModel
where
    F: Fn(ChatRequest) -> Fut + Send + Sync,
    Fut: Future<Output = Result<Reply>> + Send,
{
    ModelFn { card, answer }
}

struct ModelFn<F> {
    card: ModelCard,
    answer: F,
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

/// The output of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// Text and images.
    pub content: Vec<Block>,
    /// Whether the tool failed. The model sees this and can try something else.
    pub is_error: bool,
}

impl ToolOutput {
    /// Creates a text output.
    pub fn text(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], is_error: false }
    }

    /// Creates a failed output with a message for the model.
    pub fn error(text: impl Into<String>) -> Self {
        Self { content: vec![Block::text(text)], is_error: true }
    }

    /// Converts the output into the message that is stored.
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

/// The tools available in a turn.
#[async_trait]
pub trait Toolbox: Send + Sync {
    /// Returns all tools. Every request lists all of them in this order: a different order breaks
    /// the provider's cache.
    fn specs(&self) -> &[ToolSpec];

    /// Runs a call. An unknown tool name or invalid arguments are reported as a failed output that
    /// the model can read.
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
        ToolOutput::error(format!("unknown tool {}", call.name))
    }
}
