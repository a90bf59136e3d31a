//! The settings of a fake provider.

use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result, Tokens};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;

use super::FakeProvider;
use super::ledger::{Ledger, Observer};
use super::loopback::Loopback;
use super::playbook::{Playbook, Respond};
use super::request::Request;
use super::server::{Shared, connection};
use super::step::Step;
use super::strict::Strict;
use super::words::Words;

/// A fake provider as data: the contents of a script file.
///
/// ```json
/// {
///   "window": 8000,
///   "models": ["fake-model"],
///   "script": [
///     { "reply": { "error": { "kind": "overloaded" } }, "times": 2 },
///     { "reply": { "text": "hello" }, "wait": { "millis": 500 } },
///     { "reply": "summary", "times": null }
///   ]
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Scenario {
    /// The model's window in tokens: a completion whose prompt and answer do not fit is refused.
    /// Default: no window.
    pub window: Option<Tokens>,
    /// Maximum characters of a prompt, tools included; longer ones are refused. Default: no limit.
    pub limit_chars: Option<u64>,
    /// Whether to refuse requests that the real providers refuse. Default: false.
    pub strict: bool,
    /// The provider whose wording an overflow error has. Default: the API's.
    pub words: Option<Words>,
    /// The required API key. Default: none.
    pub key: Option<String>,
    /// The server whose documented endpoint reports the window, by its name in `data/windows.json`;
    /// other `GET`s are answered by 404. Default: none, and `/v1/models` lists `models`.
    pub server: Option<String>,
    /// The names listed by `/v1/models`. Default: `fake-model`. Requests may name any model.
    pub models: Vec<String>,
    /// Dimensions of embeddings. Default: 64.
    pub dimensions: usize,
    /// The steps. After the last one, every answer is a summary of the prompt.
    pub script: Vec<Step>,
}

impl Default for Scenario {
    fn default() -> Self {
        Self {
            window: None,
            limit_chars: None,
            strict: false,
            words: None,
            key: None,
            server: None,
            models: vec!["fake-model".to_owned()],
            dimensions: 64,
            script: Vec::new(),
        }
    }
}

impl Scenario {
    /// Parses it from JSON.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidInput`], with the line and what was expected there.
    pub fn from_json(json: &str) -> Result<Self> {
        serde_json::from_str(json).map_err(|error| {
            Error::new(ErrorKind::InvalidInput, "invalid script")
                .with("line", error.line())
                .with("column", error.column())
                .with("reason", &error)
                .hint("a script looks like {\"script\": [{\"reply\": {\"text\": \"hello\"}}]}")
        })
    }
}

/// Sets up a [`FakeProvider`].
#[derive(Clone, Default)]
#[must_use]
pub struct Builder {
    scenario: Scenario,
    respond: Option<Respond>,
    observer: Option<Observer>,
    port: u16,
}

impl From<Scenario> for Builder {
    fn from(scenario: Scenario) -> Self {
        Self { scenario, ..Self::default() }
    }
}

impl Builder {
    /// Adds steps to the script.
    pub fn script(mut self, steps: impl IntoIterator<Item = Step>) -> Self {
        self.scenario.script.extend(steps);
        self
    }

    /// Answers completions that no step of the script takes. The function runs on the provider's
    /// thread, so it must not wait for another request.
    pub fn respond(self, with: impl Fn(&Request) -> Step + Send + Sync + 'static) -> Self {
        Self { respond: Some(Arc::new(with)), ..self }
    }

    /// Calls a function with each finished request. The function runs on the provider's thread, so
    /// it must not wait for another request.
    pub fn observe(self, with: impl Fn(&Request) + Send + Sync + 'static) -> Self {
        Self { observer: Some(Arc::new(with)), ..self }
    }

    /// Sets the model's window, which the prompt plus the requested answer length may not exceed.
    pub fn window(mut self, window: Tokens) -> Self {
        self.scenario.window = Some(window);
        self
    }

    /// Refuses prompts with more characters than this as too long.
    pub fn limit_chars(mut self, most: u64) -> Self {
        self.scenario.limit_chars = Some(most);
        self
    }

    /// Refuses the requests that the real providers refuse, each with its own wording: results
    /// without a call, calls without results, wrong order of roles, invalid ids and signatures,
    /// empty messages. See [`strict`](super::strict).
    pub fn strict(mut self, strict: bool) -> Self {
        self.scenario.strict = strict;
        self
    }

    /// Gives overflow errors the wording of that provider.
    pub fn words(mut self, words: Words) -> Self {
        self.scenario.words = Some(words);
        self
    }

    /// Refuses requests without this key with 401.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.scenario.key = Some(key.into());
        self
    }

    /// Reports the window as that server does.
    pub fn server(mut self, name: impl Into<String>) -> Self {
        self.scenario.server = Some(name.into());
        self
    }

    /// Sets the names listed by `/v1/models`.
    pub fn models<S: Into<String>>(mut self, models: impl IntoIterator<Item = S>) -> Self {
        self.scenario.models = models.into_iter().map(Into::into).collect();
        self
    }

    /// Sets the dimensions of embeddings.
    pub fn dimensions(mut self, dimensions: usize) -> Self {
        self.scenario.dimensions = dimensions;
        self
    }

    /// Sets the port on loopback. The default 0 is any free port.
    pub fn port(self, port: u16) -> Self {
        Self { port, ..self }
    }

    /// Starts the provider on its own thread. When this returns, it is listening. It may be called
    /// with or without an async runtime.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Io`] if the port is in use or no thread can be started.
    pub fn start(self) -> Result<FakeProvider> {
        let Self { mut scenario, respond, observer, port } = self;
        let strict = scenario.strict.then(|| Strict::new(scenario.words));
        let script = std::mem::take(&mut scenario.script);
        let shared = Arc::new(Shared {
            scenario,
            strict,
            playbook: Playbook::new(script, respond),
            ledger: Arc::new(Ledger::new(observer)),
            releases: Arc::new(Semaphore::new(0)),
        });
        let served = Arc::clone(&shared);
        let serve = move |stream| connection(stream, Arc::clone(&served));
        let server = Loopback::start("fake-provider", port, serve).map_err(|error| {
            Error::new(ErrorKind::Io, "the fake provider cannot listen")
                .with("port", port)
                .source(error)
        })?;
        Ok(FakeProvider { shared, server })
    }
}
