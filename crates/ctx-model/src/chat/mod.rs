//! Models that are asked for a summary, or for the next message of a conversation.

mod anthropic;
mod asking;
mod completions;
mod converse;
mod limits;
mod parts;
mod quirks;
pub(crate) mod reading;
mod responses;

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use ctx_core::{
    Delta, Error, ErrorKind, Message, ModelCard, Result, Role, Summarizer, Summary, SummaryRequest,
    Tokens, Usage,
};
use reqwest::Method;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};

use crate::failure::{Asked, LONGEST_BODY};
use crate::overflow::{Overflow, silent_overflow};
use crate::{Client, Endpoint, Prices, Request, Response, known, provider_error};

use asking::Asking;
use limits::Limits;
use quirks::Quirks;

/// Models that think spend some of what they may answer on it: this much is added, but no more than
/// a quarter of the window.
const THINKING: Tokens = Tokens(8_192);

/// The smallest limit that every API takes.
const SHORTEST_ANSWER: u32 = 16;

/// What an answer may be of a model of whose window nothing is known.
const UNKNOWN_ANSWER: u32 = 8_192;

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

/// A model at an endpoint: a [`Summarizer`], and a [`ctx_core::ChatModel`] that converses.
///
/// What a server refuses in a request that others take is left out from then on, as long as this
/// value lives.
#[derive(Debug)]
pub struct HttpModel {
    facts: ModelFacts,
    card: ModelCard,
    endpoint: Endpoint,
    client: Arc<Client>,
    learned: AtomicU16,
}

impl HttpModel {
    /// A model at an endpoint.
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

    /// What a call of that usage costs, in USD; `None` where no price is known.
    #[must_use]
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        self.facts.prices.map(|prices| prices.cost(usage).0)
    }

    /// Asks once, for a text.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Overflow`]: the prompt is too long, with the numbers where the provider gives
    /// them. [`ErrorKind::Capability`]: key, account, model or content are refused; another model
    /// may do better. [`ErrorKind::Upstream`] and [`ErrorKind::Timeout`]: the provider failed;
    /// [retryable](Error::is_retryable) where that helps, with the wait it asks for.
    pub async fn ask(&self, request: &SummaryRequest) -> Result<Answer> {
        let (headers, secrets) = self.endpoint.headers()?;
        let asked = self.asked(&secrets);
        let max_tokens = self.max_tokens(request.max_tokens);
        let messages = [Arc::new(Message::text(Role::User, request.prompt.as_str()))];
        let asking = Asking {
            system: Some(request.system.as_str()).filter(|system| !system.is_empty()),
            messages: &messages,
            max_tokens: Some(max_tokens),
            ..self.asking()
        };
        let mut response = self.send(asking, headers, &asked).await?;
        let limits = Limits::for_answer(max_tokens);
        let mut ignore = |_: Delta<'_>| {};
        let api = self.endpoint.api();
        let reading = reading::read(api, &mut response, limits, &asked, &mut ignore).await?;
        let stop = reading.stop.unwrap_or(Stop::End);
        let answer = Answer { text: reading.parts.text(), stop, usage: reading.usage };
        let sent = (request.system.chars().count() + request.prompt.chars().count()) as u64;
        let is_empty = answer.text.trim().is_empty();
        let window = self.facts.window.get();
        self.check(&asked, stop, is_empty, answer.usage.as_ref(), sent, window)
            .map_err(Error::billed)?;
        Ok(answer)
    }

    fn asked<'a>(&'a self, secrets: &'a [crate::Secret]) -> Asked<'a> {
        Asked { name: &self.facts.name, key: self.endpoint.key(), secrets }
    }

    /// A request in which nothing is asked yet.
    fn asking(&self) -> Asking<'_> {
        let known = known::provider(&self.card.provider);
        Asking {
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
            // Who is known and not OpenAI has no such field, and some refuse what they do not know.
            takes_cache_key: known.is_none_or(|known| known.id == "openai"),
            quirks: Quirks::default(),
        }
    }

    async fn send(
        &self,
        mut asking: Asking<'_>,
        mut headers: HeaderMap,
        asked: &Asked<'_>,
    ) -> Result<Response> {
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        asking.quirks = Quirks(self.learned.load(Ordering::Relaxed));
        loop {
            let mut response = self
                .client
                .send(Request {
                    method: Method::POST,
                    url: self.endpoint.chat_url(),
                    headers: headers.clone(),
                    body: Bytes::from(asking.body()),
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
            match asking.quirks.after(status, &said) {
                Some(more) => {
                    asking.quirks = more;
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

    /// What an answer may be at most where nobody says how long: an eighth of the window, so that
    /// a prompt that fills the rest is not refused for the sake of an answer that is never so long.
    fn most_tokens(&self) -> u32 {
        if self.facts.window_is_assumed {
            return self.facts.max_output.map_or(UNKNOWN_ANSWER, |most| most.0.min(UNKNOWN_ANSWER));
        }
        let most = self.facts.max_output.unwrap_or(self.facts.window).min(self.facts.window);
        most.min(self.facts.window.scale(0.125)).0.max(SHORTEST_ANSWER)
    }

    /// Finds answers that are none: held back, or given to a prompt that did not fit. They are paid
    /// for all the same. `sent` are the characters of the prompt.
    fn check(
        &self,
        asked: &Asked<'_>,
        stop: Stop,
        is_empty: bool,
        usage: Option<&Usage>,
        sent: u64,
        window: u64,
    ) -> Result<()> {
        let name = asked.name;
        if stop == Stop::Filtered {
            let error = Error::new(ErrorKind::Capability, "the provider held the answer back")
                .with("model", name)
                .hint("its content filter refused this conversation: take another model");
            return Err(error);
        }
        if stop == Stop::Window && is_empty {
            let limit = Some(self.facts.window.get());
            let found = Overflow {
                used: None,
                prompt: None,
                limit,
                pattern: "window-exceeded",
                provider: "any",
            };
            return Err(asked.overflow(&found).with("model", name));
        }
        let Some(usage) = usage else { return Ok(()) };
        let cut = stop == Stop::Length;
        if let Some(found) = silent_overflow(usage, window, is_empty && cut) {
            return Err(asked.overflow(&found).with("model", name));
        }
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
