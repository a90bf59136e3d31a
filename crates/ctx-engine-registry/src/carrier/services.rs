//! What an engine may ask of its host from inside a call, and the answers.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ctx_core::{Counter, Store, SummaryModels, SummaryRequest, Tokens};
use ctx_engine_sdk::protocol::{
    Complete, Completion, Count, Counts, Done, Error, ErrorKind, Key, KeyPrefix, Keys, LogLevel,
    LogLine, Result, StoredValue, Value, service,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use super::envelope;
use super::fault::tidy;
use super::wait::Cancelled;

/// The longest answer of a model, in tokens, to an engine that does not say.
const MAX_COMPLETION: u64 = 4_096;

/// How long models are waited for, all that are asked for one answer together. A call has a deadline of its own, but an engine that is told can
/// still do without the model.
const MODEL_DEADLINE: Duration = Duration::from_secs(60);

/// The longest key, in bytes.
const MAX_KEY: usize = 512;

/// The longest line of a log, in characters.
const MAX_LOG_LINE: usize = 2_000;

/// The services that one engine is offered: the log always, the rest where the host has it.
///
/// They are answered on the engine's own thread, one at a time, and end with the call that they are
/// asked from.
#[derive(Clone)]
pub struct Offer {
    engine: String,
    models: Option<SummaryModels>,
    counter: Option<Counter>,
    store: Option<Arc<dyn Store>>,
}

impl Offer {
    /// The log, for the engine of this id.
    #[must_use]
    pub fn new(engine: impl Into<String>) -> Self {
        Self { engine: engine.into(), models: None, counter: None, store: None }
    }

    /// Also `llm.complete`, answered by the first of the models that can; not at all if there is
    /// none.
    #[must_use]
    pub fn with_models(mut self, models: SummaryModels) -> Self {
        self.models = (!models.chain.is_empty()).then_some(models);
        self
    }

    /// Also `tokens.count`.
    #[must_use]
    pub fn with_counter(mut self, counter: Counter) -> Self {
        self.counter = Some(counter);
        self
    }

    /// Also `store.*`, under keys that begin with `engines/ID/`.
    #[must_use]
    pub fn with_store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// What is offered, as [`Hello::features`](ctx_engine_sdk::Hello::features) has it.
    #[must_use]
    pub fn features(&self) -> Vec<String> {
        let stores = self.store.is_some();
        let offered = [
            (service::COMPLETE, self.models.is_some()),
            (service::COUNT, self.counter.is_some()),
            (service::GET, stores),
            (service::PUT, stores),
            (service::LIST, stores),
            (service::LOG, true),
        ];
        offered.into_iter().filter(|(_, is)| *is).map(|(name, _)| name.to_owned()).collect()
    }

    /// Replies to a host call. Whatever it is, there is a reply.
    pub(super) fn answer(&self, host_call: &[u8], cancelled: &Cancelled) -> Vec<u8> {
        let call: Asked = match serde_json::from_slice(host_call) {
            Ok(call) => call,
            Err(error) => return envelope::reply(0, Err::<Done, _>(error.into())),
        };
        let id = call.id;
        let work = AssertUnwindSafe(|| self.reply(&call, cancelled));
        catch_unwind(work).unwrap_or_else(|_| {
            envelope::reply(id, Err::<Done, _>(Error::failed("the host's service panicked")))
        })
    }

    fn reply(&self, call: &Asked, cancelled: &Cancelled) -> Vec<u8> {
        let id = call.id;
        match call.host.as_str() {
            service::COMPLETE => envelope::reply(id, self.complete(call, cancelled)),
            service::COUNT => envelope::reply(id, self.count(call)),
            service::GET => envelope::reply(id, self.get(call, cancelled)),
            service::PUT => envelope::reply(id, self.put(call, cancelled)),
            service::LIST => envelope::reply(id, self.list(call, cancelled)),
            service::LOG => envelope::reply(id, self.log(call)),
            other => envelope::reply(id, Err::<Done, _>(not_offered(other))),
        }
    }

    fn complete(&self, call: &Asked, cancelled: &Cancelled) -> Result<Completion> {
        let models = self.models.as_ref().ok_or_else(|| not_offered(service::COMPLETE))?;
        let asked: Complete = call.params()?;
        let max_tokens = asked.max_tokens.unwrap_or(MAX_COMPLETION);
        let request = SummaryRequest {
            system: asked.system.unwrap_or_default(),
            prompt: asked.prompt,
            max_tokens: Tokens::saturating_from(max_tokens),
        };
        let mut first_error = None;
        let begin = models.timer.elapsed();
        for (at, model) in models.chain.iter().enumerate() {
            let spent = models.timer.elapsed().saturating_sub(begin);
            let left = MODEL_DEADLINE.saturating_sub(spent);
            // Those that come after it get their share.
            let limit = if at + 1 < models.chain.len() { left / 2 } else { left };
            let asked = || {
                self.fits(&request, model.window(), model.answer_overhead())?;
                let late = (models.timer.sleep(limit), limit);
                wait(cancelled, within(late, model.summarize(request.clone())))
            };
            match asked() {
                Ok(summary) => {
                    return Ok(Completion { text: summary.text, cut_off: summary.cut_off });
                }
                Err(error) if error.kind == ErrorKind::Cancelled => return Err(error),
                Err(error) => {
                    let (engine, model) = (&self.engine, model.name());
                    tracing::debug!(target: "ctx::engine", engine, model, "{}", error.message);
                    // Of the model that was wanted it is worth the most.
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or_else(|| not_offered(service::COMPLETE)))
    }

    /// No request to a model may be larger than its window, its answer included.
    fn fits(&self, request: &SummaryRequest, window: Tokens, overhead: Tokens) -> Result<()> {
        let counter = self.counter.unwrap_or_default();
        let asked = [counter.text(&request.system), counter.text(&request.prompt)];
        let all = asked.iter().chain([&request.max_tokens, &overhead]);
        let needed: u64 = all.map(|tokens| u64::from(tokens.0)).sum();
        if needed <= u64::from(window.0) {
            return Ok(());
        }
        let window = window.0;
        let message =
            format!("{needed} tokens with the answer, and the model's window is {window}");
        Err(Error::new(ErrorKind::BadRequest, message).hint("ask for less at a time"))
    }

    fn count(&self, call: &Asked) -> Result<Counts> {
        let counter = self.counter.ok_or_else(|| not_offered(service::COUNT))?;
        let asked: Count = call.params()?;
        let tokens = asked.texts.iter().map(|text| u64::from(counter.text(text).0)).collect();
        Ok(Counts { tokens })
    }

    fn get(&self, call: &Asked, cancelled: &Cancelled) -> Result<Value> {
        let store = self.store.as_ref().ok_or_else(|| not_offered(service::GET))?;
        let asked: Key = call.params()?;
        let key = self.key(&asked.key)?;
        let Some(stored) = wait(cancelled, store.get(&key))? else { return Ok(Value::default()) };
        let value = serde_json::from_slice(&stored)
            .map_err(|error| Error::failed(format!("what is stored is damaged: {error}")))?;
        Ok(Value { value })
    }

    fn put(&self, call: &Asked, cancelled: &Cancelled) -> Result<Done> {
        let store = self.store.as_ref().ok_or_else(|| not_offered(service::PUT))?;
        let asked: StoredValue = call.params()?;
        let key = self.key(&asked.key)?;
        let value = serde_json::to_vec(&asked.value)?;
        wait(cancelled, store.put(&key, &value))?;
        Ok(Done {})
    }

    fn list(&self, call: &Asked, cancelled: &Cancelled) -> Result<Keys> {
        let store = self.store.as_ref().ok_or_else(|| not_offered(service::LIST))?;
        let asked: KeyPrefix = call.params()?;
        let own = self.key("")?;
        let keys = wait(cancelled, store.list(&self.key(&asked.prefix)?))?;
        let keys = keys.iter().filter_map(|key| key.strip_prefix(&own)).map(str::to_owned);
        Ok(Keys { keys: keys.collect() })
    }

    /// The key in the host's store.
    fn key(&self, key: &str) -> Result<String> {
        if key.len() > MAX_KEY || key.chars().any(char::is_control) {
            let message = format!("a key is at most {MAX_KEY} bytes, without control characters");
            return Err(Error::new(ErrorKind::BadRequest, message));
        }
        Ok(format!("engines/{}/{key}", self.engine))
    }

    fn log(&self, call: &Asked) -> Result<Done> {
        let line: LogLine = call.params()?;
        let (engine, message) = (&self.engine, tidy(&line.message, MAX_LOG_LINE));
        match line.level {
            LogLevel::Error => tracing::error!(target: "ctx::engine", engine, "{message}"),
            LogLevel::Warn => tracing::warn!(target: "ctx::engine", engine, "{message}"),
            LogLevel::Info => tracing::info!(target: "ctx::engine", engine, "{message}"),
            LogLevel::Debug => tracing::debug!(target: "ctx::engine", engine, "{message}"),
        }
        Ok(Done {})
    }
}

impl fmt::Debug for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Offer")
            .field("engine", &self.engine)
            .field("features", &self.features())
            .finish()
    }
}

/// A host call whose parameters are read when it is known what they are.
#[derive(Deserialize)]
struct Asked {
    #[serde(default)]
    id: u64,
    host: String,
    #[serde(default)]
    params: Option<Box<RawValue>>,
}

impl Asked {
    fn params<T: DeserializeOwned>(&self) -> Result<T> {
        Ok(serde_json::from_str(self.params.as_deref().map_or("{}", RawValue::get))?)
    }
}

fn wait<T>(cancelled: &Cancelled, future: impl Future<Output = ctx_core::Result<T>>) -> Result<T> {
    let gone = || Error::new(ErrorKind::Cancelled, "the call was cancelled");
    cancelled.or(future).ok_or_else(gone)?.map_err(|error| {
        let failed = Error::failed(error.to_string());
        match error.hint_text() {
            Some(hint) => failed.hint(hint),
            None => failed,
        }
    })
}

/// What a model answers, unless the limit is over before.
async fn within<T>(
    (late, limit): (impl Future<Output = ()>, Duration),
    answer: impl Future<Output = ctx_core::Result<T>>,
) -> ctx_core::Result<T> {
    let (mut late, mut answer) = (pin!(late), pin!(answer));
    std::future::poll_fn(|context| match answer.as_mut().poll(context) {
        Poll::Ready(answer) => Poll::Ready(answer),
        Poll::Pending => late.as_mut().poll(context).map(|()| {
            let seconds = limit.as_secs();
            let message = format!("the model did not answer within {seconds} s");
            Err(ctx_core::Error::new(ctx_core::ErrorKind::Timeout, message))
        }),
    })
    .await
}

fn not_offered(service: &str) -> Error {
    let message = format!("this host does not offer {}", tidy(service, 40));
    Error::new(ErrorKind::Unsupported, message).hint("see 'features' of 'hello'")
}
