//! A model that is asked for a text.

mod anthropic;
mod completions;
mod limits;
pub(crate) mod reading;
mod responses;

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use ctx_core::{Error, ErrorKind, Result, Summarizer, Summary, SummaryRequest, Tokens, Usage};
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use serde_json::Value;

use crate::failure::{Asked, LONGEST_BODY};
use crate::overflow::{Overflow, overflow_of, silent_overflow};
use crate::provider_error::{self, ErrorText};
use crate::{Api, Client, Endpoint, Prices, Request, Response};

use limits::Limits;

/// Models that think spend some of what they may answer on it: this much is added, but no more than
/// a quarter of the window.
const THINKING: Tokens = Tokens(8_192);

/// The smallest limit that every API takes.
const SHORTEST_ANSWER: u32 = 16;

/// No text has more characters to a token than this on average, over the length of a prompt. A
/// server that counts fewer tokens has not read all of it.
const MOST_CHARS_PER_TOKEN: u64 = 12;

/// Prompts shorter than this fit any server.
const SHORT_PROMPT_CHARS: u64 = 8_000;

/// What is known of a model that can be called.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelFacts {
    /// For receipts and logs: `provider/model`.
    pub name: String,
    /// What the provider calls it.
    pub id: String,
    /// Its window, prompt and answer together.
    pub window: Tokens,
    /// Whether nobody gave its window, so that `window` is a guess on the safe side.
    pub window_is_assumed: bool,
    /// The longest answer, where known.
    pub max_output: Option<Tokens>,
    /// What its tokens cost, where known.
    pub prices: Option<Prices>,
    /// Whether it thinks before it answers: then it is asked to think little, and given room for
    /// that.
    pub reasoning: bool,
    /// Whether its server shortens a prompt that is too long without a word (Ollama does). Then
    /// the prompt tokens it reports are held against the length of the prompt.
    pub truncates: bool,
}

/// Why an answer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Stop {
    /// The model was done.
    End,
    /// It reached the limit given with the request, or all that such a limit can mean.
    Length,
    /// It filled the window.
    Window,
    /// The provider held it back.
    Filtered,
}

/// A text a model gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The text.
    pub text: String,
    /// Why it ended.
    pub stop: Stop,
    /// What the provider reported.
    pub usage: Option<Usage>,
}

/// A model at an endpoint.
#[derive(Debug)]
pub struct ChatModel {
    facts: ModelFacts,
    endpoint: Endpoint,
    client: Arc<Client>,
    learned: AtomicU8,
}

/// What servers that call themselves compatible do not take. Learned from their refusals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Quirks(u8);

impl Quirks {
    const OTHER_LIMIT_FIELD: u8 = 1;
    const NO_STREAM_OPTIONS: u8 = 2;
    const NO_EFFORT: u8 = 4;

    fn has(self, bit: u8) -> bool {
        self.0 & bit != 0
    }

    /// With what a refusal teaches; `None` if it teaches nothing new. Each is learned once, so
    /// that no server can be asked for ever.
    fn after(self, status: u16, said: &ErrorText) -> Option<Self> {
        if !matches!(status, 400 | 422) || overflow_of(status, said).is_some() {
            return None;
        }
        let lessons = [
            (Self::OTHER_LIMIT_FIELD, "max_completion_tokens"),
            (Self::NO_STREAM_OPTIONS, "stream_options"),
            (Self::NO_EFFORT, "reasoning"),
        ];
        let new = lessons.iter().find(|(bit, word)| !self.has(*bit) && said.says(&[word]))?;
        Some(Self(self.0 | new.0))
    }
}

/// One request, as each API writes it its own way.
struct Asking<'a> {
    model: &'a str,
    system: &'a str,
    prompt: &'a str,
    max_tokens: u32,
    think_little: bool,
    is_openai: bool,
    quirks: Quirks,
}

impl ChatModel {
    /// A model at an endpoint.
    #[must_use]
    pub fn new(facts: ModelFacts, endpoint: Endpoint, client: Arc<Client>) -> Self {
        Self { facts, endpoint, client, learned: AtomicU8::new(0) }
    }

    /// What is known of it.
    #[must_use]
    pub fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    /// Where it is.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Asks once.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Overflow`]: the prompt is too long, with the numbers where the provider gives
    /// them. [`ErrorKind::Capability`]: key, account, model or content are refused; another model
    /// may do better. [`ErrorKind::Upstream`] and [`ErrorKind::Timeout`]: the provider failed;
    /// [retryable](Error::is_retryable) where that helps, with the wait it asks for.
    pub async fn answer(&self, request: &SummaryRequest) -> Result<Answer> {
        let (headers, secrets) = self.endpoint.headers()?;
        let asked = Asked { name: &self.facts.name, key: self.endpoint.key(), secrets: &secrets };
        let max_tokens = self.max_tokens(request.max_tokens);
        let mut response = self.send(request, max_tokens, headers, &asked).await?;
        let limits = Limits::for_answer(max_tokens);
        let reading = reading::read(self.endpoint.api(), &mut response, limits, &asked).await?;
        let stop = reading.stop.unwrap_or(Stop::End);
        let answer = Answer { text: reading.text, stop, usage: reading.usage };
        self.check(request, &answer, &asked).map_err(Error::billed)?;
        Ok(answer)
    }

    async fn send(
        &self,
        request: &SummaryRequest,
        max_tokens: u32,
        mut headers: HeaderMap,
        asked: &Asked<'_>,
    ) -> Result<Response> {
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        let mut quirks = Quirks(self.learned.load(Ordering::Relaxed));
        loop {
            let asking = Asking {
                model: &self.facts.id,
                system: &request.system,
                prompt: &request.prompt,
                max_tokens,
                think_little: self.facts.reasoning,
                is_openai: self.endpoint.host() == "api.openai.com",
                quirks,
            };
            let mut response = self
                .client
                .send(Request {
                    method: Method::POST,
                    url: self.endpoint.chat_url(),
                    headers: headers.clone(),
                    body: Bytes::from(body(self.endpoint.api(), &asking).to_string()),
                })
                .await
                .map_err(|e| e.with("model", asked.name))?;
            if response.status.is_success() {
                return Ok(response);
            }
            let status = response.status.as_u16();
            // A refusal whose reasons break off is a refusal all the same.
            let text = response.body.read_up_to(LONGEST_BODY).await.unwrap_or_default();
            let said = provider_error::read(&String::from_utf8_lossy(&text));
            match quirks.after(status, &said) {
                Some(more) => {
                    quirks = more;
                    self.learned.fetch_or(more.0, Ordering::Relaxed);
                }
                None => return Err(asked.failure(status, &response.headers, &said)),
            }
        }
    }

    fn max_tokens(&self, wanted: Tokens) -> u32 {
        let most = self.facts.max_output.map_or(u32::MAX, |most| most.0);
        (wanted + self.answer_overhead()).0.min(most).max(SHORTEST_ANSWER)
    }

    /// Finds answers that are none: held back, or given to a prompt that did not fit. They are paid
    /// for all the same.
    fn check(&self, request: &SummaryRequest, answer: &Answer, asked: &Asked<'_>) -> Result<()> {
        let name = asked.name;
        if answer.stop == Stop::Filtered {
            let error = Error::new(ErrorKind::Capability, "the provider held the answer back")
                .with("model", name)
                .hint("its content filter refused this conversation: take another model");
            return Err(error);
        }
        let window = self.facts.window.get();
        let is_empty = answer.text.trim().is_empty();
        if answer.stop == Stop::Window && is_empty {
            let limit = Some(window);
            let found = Overflow { used: None, limit, pattern: "window-exceeded", provider: "any" };
            return Err(asked.overflow(&found).with("model", name));
        }
        let Some(usage) = &answer.usage else { return Ok(()) };
        let cut = answer.stop == Stop::Length;
        if let Some(found) = silent_overflow(usage, window, is_empty && cut) {
            return Err(asked.overflow(&found).with("model", name));
        }
        let sent = (request.system.chars().count() + request.prompt.chars().count()) as u64;
        let read = usage.prompt();
        let short = read > 0 && read < sent / MOST_CHARS_PER_TOKEN && sent > SHORT_PROMPT_CHARS;
        if self.facts.truncates && short {
            let error =
                Error::new(ErrorKind::Overflow, "the server read only a part of the prompt")
                    .with("model", name)
                    .with("characters", sent)
                    .with("tokens read", read)
                    .hint(
                        "give the server a larger context (Ollama: OLLAMA_CONTEXT_LENGTH) and the \
                     model that contextWindow in ctx.json5",
                    );
            return Err(error);
        }
        Ok(())
    }
}

fn body(api: Api, asking: &Asking<'_>) -> Value {
    match api {
        Api::OpenAiCompletions => completions::body(asking),
        Api::OpenAiResponses => responses::body(asking),
        Api::AnthropicMessages => anthropic::body(asking),
    }
}

#[async_trait]
impl Summarizer for ChatModel {
    fn name(&self) -> &str {
        &self.facts.name
    }

    fn window(&self) -> Tokens {
        self.facts.window
    }

    fn cost(&self, usage: &Usage) -> Option<f64> {
        self.facts.prices.map(|prices| prices.cost(usage).0)
    }

    fn answer_overhead(&self) -> Tokens {
        match self.facts.reasoning {
            true => THINKING.min(self.facts.window.scale(0.25)),
            false => Tokens::ZERO,
        }
    }

    async fn summarize(&self, request: SummaryRequest) -> Result<Summary> {
        let answer = self.answer(&request).await?;
        let cut_off = matches!(answer.stop, Stop::Length | Stop::Window);
        Ok(Summary { text: answer.text, cut_off, usage: answer.usage })
    }
}
