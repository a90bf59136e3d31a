//! Summaries by the provider that a request is for, with its model and its key.
//!
//! An engine is built once for a conversation, a key comes with each request. So the engine gets a
//! model that asks whoever is in its [`Slot`], and a request puts itself there for as long as it is
//! prepared.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use axum::http::HeaderMap;
use ctx_core::{
    Error, ErrorKind, Result, Summarizer, Summary, SummaryModels, SummaryRequest, Tokens,
};
use ctx_dialect::wire::Protocol;
use ctx_engine_registry::Config;
use ctx_model::{
    Api, Catalogue, Client, Endpoint, HttpModel, KeyRef, ModelFacts, Secret, TokioTimer, Url,
};

/// Refuses a configuration that names no model to write summaries, or one that cannot be had.
pub(super) fn check_configured(config: &Config) -> Result<()> {
    match ctx_runtime::configured_writer(config)? {
        Some((_, model)) => model.map(drop),
        None => Err(Error::new(
            ErrorKind::Config,
            "server.summaries is \"model\", and none is configured",
        )
        .with("key", "agents.defaults.compaction.model")
        .hint("name a model there, or set server.summaries to \"upstream\" or \"extractive\"")),
    }
}

/// Headers of a request that its summary is asked for with.
const SAME: [&str; 10] = [
    "authorization",
    "x-api-key",
    "api-key",
    "anthropic-beta",
    "anthropic-version",
    "openai-organization",
    "openai-project",
    "x-goog-user-project",
    "chatgpt-account-id",
    "user-agent",
];

/// Where the models of the requests in hand are, the newest last.
#[derive(Clone, Default)]
pub(super) struct Slot(Arc<Mutex<Vec<Arc<HttpModel>>>>);

/// A model in its slot, until this goes.
pub(super) struct Placed(Slot, Option<Arc<HttpModel>>);

impl Slot {
    /// Puts a model there.
    pub(super) fn place(&self, model: Option<HttpModel>) -> Placed {
        let model = model.map(Arc::new);
        self.models_there().extend(model.clone());
        Placed(self.clone(), model)
    }

    fn models_there(&self) -> MutexGuard<'_, Vec<Arc<HttpModel>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The models that an engine is built with.
    pub(super) fn models(&self, window: Tokens) -> SummaryModels {
        let model = BySlot { slot: self.clone(), window };
        SummaryModels { chain: vec![Arc::new(model)], timer: Arc::new(TokioTimer::default()) }
    }

    fn model(&self) -> Option<Arc<HttpModel>> {
        self.models_there().last().cloned()
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        if let Some(own) = &self.1 {
            self.0.models_there().retain(|model| !Arc::ptr_eq(model, own));
        }
    }
}

/// Asks whoever is in the slot.
struct BySlot {
    slot: Slot,
    window: Tokens,
}

#[async_trait]
impl Summarizer for BySlot {
    fn name(&self) -> &str {
        "upstream"
    }

    fn window(&self) -> Tokens {
        self.window
    }

    async fn summarize(&self, request: SummaryRequest) -> Result<Summary> {
        match self.slot.model() {
            Some(model) => model.summarize(request).await,
            None => {
                let what =
                    "the request names no model, or brings no key, to ask for a summary with";
                Err(Error::new(ErrorKind::Capability, what))
            }
        }
    }
}

/// Who is asked for the summary of a request, and where.
pub(super) struct Asking<'a> {
    pub(super) protocol: Protocol,
    pub(super) model: &'a str,
    pub(super) window: Tokens,
    /// The address of the request.
    pub(super) url: &'a Url,
    pub(super) headers: &'a HeaderMap,
}

impl Asking<'_> {
    /// The model at its endpoint, if it can be asked in a way that is known here.
    pub(super) fn model(&self, client: Arc<Client>) -> Option<HttpModel> {
        let mut base = self.url.clone();
        let api = match self.protocol {
            Protocol::Chat => Api::OpenAiCompletions,
            Protocol::Responses => Api::OpenAiResponses,
            Protocol::Messages => Api::AnthropicMessages,
            // Google's models are reached by its endpoint for OpenAI's clients.
            Protocol::Gemini => {
                let before = base.path().split("/v1").next().unwrap_or_default();
                let path = format!("{before}/v1beta/openai");
                base.set_path(&path);
                base.set_query(None);
                Api::OpenAiCompletions
            }
        };
        let mut endpoint = Endpoint::new(base.as_str(), api).ok()?;
        let text = |name: &str| self.headers.get(name).and_then(|value| value.to_str().ok());
        for name in SAME {
            if let Some(value) = text(name) {
                endpoint = endpoint.with_header(name, KeyRef::Literal(Secret::new(value)));
            }
        }
        if self.protocol == Protocol::Gemini {
            let in_query =
                || self.url.query()?.split('&').find_map(|pair| pair.strip_prefix("key="));
            match text("x-goog-api-key").or_else(in_query) {
                Some(key) => endpoint = endpoint.with_key(KeyRef::Literal(Secret::new(key))),
                // Who shows a token of Google's shows it there as well.
                None => drop(text("authorization")?),
            }
        }
        let known = Catalogue::embedded().find(self.model);
        let facts = ModelFacts {
            name: format!("upstream/{}", self.model),
            id: self.model.to_owned(),
            window: self.window,
            window_is_assumed: false,
            max_output: known.and_then(|model| model.max_output),
            prices: known.map(|model| model.prices),
            reasoning: false,
            truncates: false,
        };
        Some(HttpModel::new(facts, endpoint, client))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(name: &str) -> Option<HttpModel> {
        let asking = Asking {
            protocol: Protocol::Chat,
            model: name,
            window: Tokens(8_000),
            url: &Url::parse("http://127.0.0.1:9").expect("an address"),
            headers: &HeaderMap::new(),
        };
        asking.model(Arc::default())
    }

    #[test]
    fn a_request_that_ends_takes_no_other_ones_model_along() {
        let slot = Slot::default();
        let name = || slot.model().map(|model| model.name().to_owned());
        let first = slot.place(model("a"));
        let second = slot.place(model("b"));
        drop(first);
        assert_eq!(name().as_deref(), Some("upstream/b"));
        let third = slot.place(model("c"));
        drop(third);
        assert_eq!(name().as_deref(), Some("upstream/b"));
        drop(second);
        assert_eq!(name(), None);
    }
}
