//! The services that an engine can call during a call, and their answers.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ctx_core::{Counter, Store, SummaryModels, SummaryRequest, Tokens};
use ctx_engine_sdk::protocol::{
    Complete, Completion, Count, Counts, Done, Error, ErrorKind, Head, Key, KeyPrefix, Keys,
    LogLevel, LogLine, Result, StoredValue, Value, service,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::cancel::CancelFlag;
use super::envelope;
use super::fault::tidy;

/// Default maximum length of a model's answer, in tokens.
const MAX_COMPLETION: u64 = 4_096;

/// Total time for all models that are tried for one answer. The call that the engine is serving has
/// its own deadline; an engine that gets an error before that can continue without the model.
const MODEL_DEADLINE: Duration = Duration::from_secs(60);

/// Maximum length of a key, in bytes.
const MAX_KEY: usize = 512;

/// Maximum length of a log line, in characters.
const MAX_LOG_LINE: usize = 2_000;

/// The services offered to one engine: always the log, the others if the host has them.
///
/// They are answered on the engine's own thread, one at a time, and end with the call during which
/// they are called.
#[derive(Clone)]
#[must_use]
pub struct HostServices {
    engine: String,
    models: Option<SummaryModels>,
    counter: Option<Counter>,
    store: Option<Arc<dyn Store>>,
}

impl HostServices {
    /// Offers the log, to the engine with this id.
    pub fn new(engine: impl Into<String>) -> Self {
        Self { engine: engine.into(), models: None, counter: None, store: None }
    }

    /// Also offers `llm.complete`, answered by the first model that succeeds. Not offered if there
    /// is no model.
    pub fn with_models(mut self, models: SummaryModels) -> Self {
        self.models = (!models.chain.is_empty()).then_some(models);
        self
    }

    /// Also offers `tokens.count`.
    pub fn with_counter(mut self, counter: Counter) -> Self {
        self.counter = Some(counter);
        self
    }

    /// Also offers `store.*`, with keys that begin with `engines/ID/`.
    pub fn with_store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    /// Returns the offered services, as in [`Hello::features`](ctx_engine_sdk::Hello::features).
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

    /// Replies to a host call. Every host call gets a reply.
    pub(super) fn answer(&self, host_call: &[u8], cancelled: &CancelFlag) -> Vec<u8> {
        let head = match Head::read(host_call) {
            Ok(head) => head,
            Err(error) => return envelope::reply(0, Err::<Done, _>(error)),
        };
        let id = head.id;
        let work = AssertUnwindSafe(|| self.reply(&head, host_call, cancelled));
        catch_unwind(work).unwrap_or_else(|_| {
            let error = Error::failed("the host's service panicked");
            envelope::reply(id, Err::<Done, _>(error))
        })
    }

    fn reply(&self, head: &Head, call: &[u8], cancelled: &CancelFlag) -> Vec<u8> {
        let id = head.id;
        match head.host.as_deref().unwrap_or_default() {
            service::COMPLETE => envelope::reply(id, self.complete(call, cancelled)),
            service::COUNT => envelope::reply(id, self.count(call)),
            service::GET => envelope::reply(id, self.get(call, cancelled)),
            service::PUT => envelope::reply(id, self.put(call, cancelled)),
            service::LIST => envelope::reply(id, self.list(call, cancelled)),
            service::LOG => envelope::reply(id, self.log(call)),
            other => envelope::reply(id, Err::<Done, _>(not_offered(other))),
        }
    }

    fn complete(&self, call: &[u8], cancelled: &CancelFlag) -> Result<Completion> {
        let models = self.models.as_ref().ok_or_else(|| not_offered(service::COMPLETE))?;
        let params: Complete = params(call)?;
        let max_tokens = params.max_tokens.unwrap_or(MAX_COMPLETION);
        let request = SummaryRequest {
            system: params.system.unwrap_or_default(),
            prompt: params.prompt,
            max_tokens: Tokens::saturating_from(max_tokens),
        };
        let mut first_error = None;
        let begin = models.timer.elapsed();
        for (at, model) in models.chain.iter().enumerate() {
            let spent = models.timer.elapsed().saturating_sub(begin);
            let left = MODEL_DEADLINE.saturating_sub(spent);
            // Leaves time for the next models.
            let limit = if at + 1 < models.chain.len() { left / 2 } else { left };
            let summary = || {
                self.fits(&request, model.window(), model.answer_overhead())?;
                let late = (models.timer.sleep(limit), limit);
                wait(cancelled, with_timeout(late, model.summarize(request.clone())))
            };
            match summary() {
                Ok(summary) => {
                    return Ok(Completion { text: summary.text, cut_off: summary.cut_off });
                }
                Err(error) if error.kind == ErrorKind::Cancelled => return Err(error),
                Err(error) => {
                    let (engine, model) = (&self.engine, model.name());
                    tracing::debug!(target: "ctx::engine", engine, model, "{}", error.message);
                    // The error of the preferred model is the most useful one.
                    first_error.get_or_insert(error);
                }
            }
        }
        Err(first_error.unwrap_or_else(|| not_offered(service::COMPLETE)))
    }

    /// Checks that a request and its answer fit the window of the model.
    fn fits(&self, request: &SummaryRequest, window: Tokens, overhead: Tokens) -> Result<()> {
        let counter = self.counter.unwrap_or_default();
        let sizes = [counter.text(&request.system), counter.text(&request.prompt)];
        let all = sizes.iter().chain([&request.max_tokens, &overhead]);
        let needed: u64 = all.map(|tokens| u64::from(tokens.0)).sum();
        if needed <= u64::from(window.0) {
            return Ok(());
        }
        let window = window.0;
        let message =
            format!("prompt and answer need {needed} tokens, the model's window is {window}");
        Err(Error::new(ErrorKind::BadRequest, message)
            .hint("use a shorter prompt or a lower maxTokens"))
    }

    fn count(&self, call: &[u8]) -> Result<Counts> {
        let counter = self.counter.ok_or_else(|| not_offered(service::COUNT))?;
        let params: Count = params(call)?;
        let tokens = params.texts.iter().map(|text| u64::from(counter.text(text).0)).collect();
        Ok(Counts { tokens })
    }

    fn get(&self, call: &[u8], cancelled: &CancelFlag) -> Result<Value> {
        let store = self.store.as_ref().ok_or_else(|| not_offered(service::GET))?;
        let params: Key = params(call)?;
        let key = self.key(&params.key)?;
        let Some(stored) = wait(cancelled, store.get(&key))? else { return Ok(Value::default()) };
        let value = serde_json::from_slice(&stored)
            .map_err(|error| Error::failed(format!("the stored value is damaged: {error}")))?;
        Ok(Value { value })
    }

    fn put(&self, call: &[u8], cancelled: &CancelFlag) -> Result<Done> {
        let store = self.store.as_ref().ok_or_else(|| not_offered(service::PUT))?;
        let params: StoredValue = params(call)?;
        let key = self.key(&params.key)?;
        let value = serde_json::to_vec(&params.value)?;
        wait(cancelled, store.put(&key, &value))?;
        Ok(Done {})
    }

    fn list(&self, call: &[u8], cancelled: &CancelFlag) -> Result<Keys> {
        let store = self.store.as_ref().ok_or_else(|| not_offered(service::LIST))?;
        let params: KeyPrefix = params(call)?;
        let own = self.key("")?;
        let keys = wait(cancelled, store.list(&self.key(&params.prefix)?))?;
        let keys = keys.iter().filter_map(|key| key.strip_prefix(&own)).map(str::to_owned);
        Ok(Keys { keys: keys.collect() })
    }

    /// Returns the key in the host's store.
    fn key(&self, key: &str) -> Result<String> {
        if key.len() > MAX_KEY || key.chars().any(char::is_control) {
            let message = format!("invalid key: at most {MAX_KEY} bytes, no control characters");
            return Err(Error::new(ErrorKind::BadRequest, message));
        }
        Ok(format!("engines/{}/{key}", self.engine))
    }

    fn log(&self, call: &[u8]) -> Result<Done> {
        let line: LogLine = params(call)?;
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

ctx_core::partial_debug!(HostServices, it, engine = it.engine, features = it.features());

fn wait<T>(cancelled: &CancelFlag, future: impl Future<Output = ctx_core::Result<T>>) -> Result<T> {
    let gone = || Error::new(ErrorKind::Cancelled, "the call was cancelled");
    cancelled.block_on(future).ok_or_else(gone)?.map_err(|error| {
        let failed = Error::failed(error.to_string());
        match error.hint_text() {
            Some(hint) => failed.hint(hint),
            None => failed,
        }
    })
}

/// Returns a model's answer, unless the time limit is reached first.
async fn with_timeout<T>(
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

/// Parses the parameters of a host call, which is JSON.
fn params<T: DeserializeOwned>(call: &[u8]) -> Result<T> {
    #[derive(Deserialize)]
    struct WithParams<T> {
        params: T,
    }
    Ok(serde_json::from_slice::<WithParams<T>>(call)?.params)
}
