//! Models that write summaries or the next message of a conversation.

pub(crate) mod answer_reader;
mod anthropic;
mod completions;
mod converse;
mod limits;
mod parts;
mod quirks;
mod request;
mod responses;

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use ctx_core::printable::thousands;
use ctx_core::{
    Delta, Error, ErrorKind, Message, ModelCard, Result, Role, Summarizer, Summary, SummaryRequest,
    Tokens, Usage,
};
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};

use crate::failure::{ErrorContext, LONGEST_BODY};
use crate::overflow::{Overflow, silent_overflow};
use crate::{Client, Endpoint, Prices, Request, Response, known_providers, provider_error};

use limits::AnswerLimits;
use quirks::Quirks;
use request::ModelRequest;

/// Extra answer tokens for models that think, at most a quarter of the window.
const THINKING: Tokens = Tokens(8_192);

/// The smallest `max_tokens` that every API accepts.
const SHORTEST_ANSWER: u32 = 16;

/// Maximum answer length for a model with an unknown window.
const UNKNOWN_ANSWER: u32 = 8_192;

/// Upper bound of the average number of characters per token over a whole prompt. A server that
/// counts fewer tokens has not read the whole prompt.
const MOST_CHARS_PER_TOKEN: u64 = 12;

/// Prompts shorter than this fit any server.
const SHORT_PROMPT_CHARS: u64 = 8_000;

/// Facts about a model that can be called.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFacts {
    /// `provider/model`, for receipts and logs.
    pub name: String,
    /// The provider's id of the model.
    pub id: String,
    /// The context window, prompt and answer together.
    pub window: Tokens,
    /// Whether the window is unknown, so that `window` is a conservative assumption.
    pub window_is_assumed: bool,
    /// The longest answer, if known.
    pub max_output: Option<Tokens>,
    /// Token prices, if known.
    pub prices: Option<Prices>,
    /// Whether the model thinks before it answers. A low thinking level is then requested, with
    /// extra tokens for it.
    pub reasoning: bool,
    /// Whether the server silently truncates a prompt that is too long (Ollama does). The prompt
    /// tokens it reports are then compared with the length of the prompt.
    pub truncates: bool,
}

impl ModelFacts {
    /// Returns the note that the window is assumed, and which key of the configuration sets it.
    #[must_use]
    pub fn assumed_window(&self) -> String {
        let provider = self.name.split_once('/').map_or("PROVIDER", |(provider, _)| provider);
        format!(
            "unknown window of {}; {} tokens are assumed; set \
             models.providers.{provider}.models[].contextWindow",
            self.name,
            thousands(self.window.get()),
        )
    }
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The model finished.
    End,
    /// The answer reached the requested limit, or the size limit derived from it.
    Length,
    /// The window is full.
    Window,
    /// The provider filtered the answer.
    Filtered,
}

/// A text answer of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextAnswer {
    /// The text.
    pub text: String,
    /// Why the answer ended.
    pub stop: Stop,
    /// The usage reported by the provider.
    pub usage: Option<Usage>,
}

/// A model at an endpoint: a [`Summarizer`] and a [`ctx_core::ChatModel`].
///
/// Request fields that the server refuses are omitted from all later requests of this value.
#[derive(Debug)]
pub struct HttpModel {
    facts: ModelFacts,
    card: ModelCard,
    endpoint: Endpoint,
    client: Arc<Client>,
    learned: AtomicU16,
}

impl HttpModel {
    /// Creates a model at an endpoint.
    #[must_use]
    pub fn new(facts: ModelFacts, endpoint: Endpoint, client: Arc<Client>) -> Self {
        let provider = facts.name.split_once('/').map_or("", |(provider, _)| provider);
        let card = ModelCard {
            name: facts.name.clone(),
            provider: provider.to_owned(),
            id: facts.id.clone(),
            api: endpoint.api().name().to_owned(),
            window: Some(facts.window),
            max_output: facts.max_output,
        };
        Self { facts, card, endpoint, client, learned: AtomicU16::new(0) }
    }

    /// Returns the facts about the model.
    pub fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    /// Returns the endpoint of the model.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the cost of a call with this usage in USD; `None` if the prices are unknown.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        self.facts.prices.map(|prices| prices.cost(usage).0)
    }

    /// Sends one request for a text answer.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Overflow`]: the prompt is too long; includes the token counts if the provider
    /// reports them. [`ErrorKind::Capability`]: the key, account, model or content was refused;
    /// another model may work. [`ErrorKind::Upstream`] and [`ErrorKind::Timeout`]: the provider
    /// failed; [retryable](Error::is_retryable) where a retry may help, with the requested delay.
    pub async fn ask(&self, request: &SummaryRequest) -> Result<TextAnswer> {
        let (headers, secrets) = self.endpoint.headers()?;
        let context = self.error_context(&secrets);
        let max_tokens = self.max_tokens(request.max_tokens);
        let messages = [Arc::new(Message::text(Role::User, request.prompt.as_str()))];
        let model_request = ModelRequest {
            system: Some(request.system.as_str()).filter(|system| !system.is_empty()),
            messages: &messages,
            max_tokens: Some(max_tokens),
            ..self.base_request()
        };
        let mut response = self.send(model_request, headers, &context).await?;
        let limits = AnswerLimits::for_answer(max_tokens);
        let mut ignore = |_: Delta<'_>| {};
        let api = self.endpoint.api();
        let reader = answer_reader::read(api, &mut response, limits, &context, &mut ignore).await?;
        let stop = reader.stop.unwrap_or(Stop::End);
        let answer = TextAnswer { text: reader.parts.text(), stop, usage: reader.usage };
        let sent = (request.system.chars().count() + request.prompt.chars().count()) as u64;
        let is_empty = answer.text.trim().is_empty();
        let window = self.facts.window.get();
        self.check(&context, stop, is_empty, answer.usage.as_ref(), sent, window)
            .map_err(Error::billed)?;
        Ok(answer)
    }

    fn error_context<'a>(&'a self, secrets: &'a [crate::Secret]) -> ErrorContext<'a> {
        ErrorContext { name: &self.facts.name, key: self.endpoint.key(), secrets }
    }

    /// Returns a request without messages.
    fn base_request(&self) -> ModelRequest<'_> {
        let known = known_providers::provider(&self.card.provider);
        ModelRequest {
            provider: &self.card.provider,
            model: &self.facts.id,
            api: self.endpoint.api(),
            system: None,
            messages: &[],
            tools: &[],
            max_tokens: None,
            most_tokens: self.most_tokens(),
            session_id: None,
            reasoning: self.facts.reasoning,
            thinking: None,
            is_conversation: false,
            is_openai: self.endpoint.host() == "api.openai.com",
            // Known providers other than OpenAI have no such field, and some refuse unknown fields.
            takes_cache_key: known.is_none_or(|known| known.id == "openai"),
            quirks: Quirks::default(),
        }
    }

    async fn send(
        &self,
        mut model_request: ModelRequest<'_>,
        mut headers: HeaderMap,
        context: &ErrorContext<'_>,
    ) -> Result<Response> {
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        model_request.quirks = Quirks(self.learned.load(Ordering::Relaxed));
        loop {
            let mut response = self
                .client
                .send(Request {
                    method: Method::POST,
                    url: self.endpoint.chat_url(),
                    headers: headers.clone(),
                    body: Bytes::from(model_request.body()),
                })
                .await
                .map_err(|e| e.with("model", context.name))?;
            if response.status.is_success() {
                return Ok(response);
            }
            let status = response.status.as_u16();
            // A refusal whose body breaks off is still a refusal.
            let text = response.body.read_up_to(LONGEST_BODY).await.unwrap_or_default();
            let error_text = provider_error::read(&String::from_utf8_lossy(&text));
            match model_request.quirks.after(status, &error_text) {
                Some(more) => {
                    model_request.quirks = more;
                    self.learned.fetch_or(more.0, Ordering::Relaxed);
                }
                None => return Err(context.failure(status, &response.headers, &error_text)),
            }
        }
    }

    fn max_tokens(&self, wanted: Tokens) -> u32 {
        let most = self.facts.max_output.map_or(u32::MAX, |most| most.0);
        (wanted + self.answer_overhead()).0.min(most).max(SHORTEST_ANSWER)
    }

    /// Returns the default limit of an answer: an eighth of the window, so that a prompt that fills
    /// the rest is not refused because of an answer length that is never reached.
    fn most_tokens(&self) -> u32 {
        if self.facts.window_is_assumed {
            return self.facts.max_output.map_or(UNKNOWN_ANSWER, |most| most.0.min(UNKNOWN_ANSWER));
        }
        let most = self.facts.max_output.unwrap_or(self.facts.window).min(self.facts.window);
        most.min(self.facts.window.scale(0.125)).0.max(SHORTEST_ANSWER)
    }

    /// Fails for an answer that was filtered, or whose prompt did not fit. Such answers are billed
    /// nevertheless. `sent` is the number of characters in the prompt.
    fn check(
        &self,
        context: &ErrorContext<'_>,
        stop: Stop,
        is_empty: bool,
        usage: Option<&Usage>,
        sent: u64,
        window: u64,
    ) -> Result<()> {
        let name = context.name;
        if stop == Stop::Filtered {
            let error = Error::new(ErrorKind::Capability, "the provider filtered the answer")
                .with("model", name)
                .hint("its content filter refused this conversation: use another model");
            return Err(error);
        }
        if stop == Stop::Window && is_empty {
            let (limit, pattern) = (Some(self.facts.window.get()), "window-exceeded");
            let found = Overflow { limit, pattern, provider: "any", ..Overflow::default() };
            return Err(context.overflow(&found).with("model", name));
        }
        let Some(usage) = usage else { return Ok(()) };
        let cut = stop == Stop::Length;
        if let Some(found) = silent_overflow(usage, window, is_empty && cut) {
            return Err(context.overflow(&found).with("model", name));
        }
        let read = usage.prompt();
        let short = read > 0 && read < sent / MOST_CHARS_PER_TOKEN && sent > SHORT_PROMPT_CHARS;
        if self.facts.truncates && short {
            let error = Error::new(ErrorKind::Overflow, "the server truncated the prompt")
                .with("model", name)
                .with("characters", sent)
                .with("tokens read", read)
                .hint(
                    "give the server a larger context (Ollama: OLLAMA_CONTEXT_LENGTH), and set \
                         contextWindow of the model in ctx.json5 to its length",
                );
            return Err(error);
        }
        Ok(())
    }
}

#[async_trait]
impl Summarizer for HttpModel {
    fn name(&self) -> &str {
        &self.facts.name
    }

    fn window(&self) -> Tokens {
        self.facts.window
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        Self::cost(self, usage)
    }

    fn answer_overhead(&self) -> Tokens {
        match self.facts.reasoning {
            true => THINKING.min(self.facts.window.scale(0.25)),
            false => Tokens::ZERO,
        }
    }

    async fn summarize(&self, request: SummaryRequest) -> Result<Summary> {
        let answer = self.ask(&request).await?;
        let cut_off = matches!(answer.stop, Stop::Length | Stop::Window);
        Ok(Summary { text: answer.text, cut_off, usage: answer.usage })
    }
}
