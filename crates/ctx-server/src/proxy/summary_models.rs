//! Summaries by the provider of the request, with its model and key.
//!
//! An engine is created once per conversation, but each request has its own key. The engine's model
//! therefore delegates to the model in its [`SummaryModelSlot`], which each request sets while it
//! is prepared.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use axum::http::HeaderMap;
use ctx_config::Config;
use ctx_core::{
    Error, ErrorKind, Result, Summarizer, Summary, SummaryModels, SummaryRequest, Tokens,
};
use ctx_dialect::wire::Protocol;
use ctx_model::{
    Api, Catalogue, Client, Endpoint, HttpModel, KeyRef, ModelFacts, Secret, TokioTimer, Url,
};

/// Refuses a configuration whose summary model is missing or unavailable.
pub(super) fn check_configured(config: &Config) -> Result<()> {
    match ctx_runtime::configured_summary_model(config)? {
        Some((_, model)) => model.map(drop),
        None => Err(Error::new(
            ErrorKind::Config,
            "server.summaries is \"model\", but no model is configured",
        )
        .with("key", "agents.defaults.compaction.model")
        .hint("set it, or set server.summaries to \"upstream\" or \"extractive\"")),
    }
}

/// Request headers that are copied to the summary request.
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

/// The models of the current requests, newest last.
#[derive(Clone, Default)]
pub(super) struct SummaryModelSlot(Arc<Mutex<Vec<Arc<HttpModel>>>>);

/// Keeps a model in its slot until dropped.
pub(super) struct SlotGuard(SummaryModelSlot, Option<Arc<HttpModel>>);

impl SummaryModelSlot {
    /// Adds a model.
    pub(super) fn insert(&self, model: Option<HttpModel>) -> SlotGuard {
        let model = model.map(Arc::new);
        self.lock().extend(model.clone());
        SlotGuard(self.clone(), model)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Arc<HttpModel>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the models for an engine.
    pub(super) fn models(&self, window: Tokens) -> SummaryModels {
        let model = SlotSummarizer { slot: self.clone(), window };
        SummaryModels { chain: vec![Arc::new(model)], timer: Arc::new(TokioTimer::default()) }
    }

    fn model(&self) -> Option<Arc<HttpModel>> {
        self.lock().last().cloned()
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        if let Some(own) = &self.1 {
            self.0.lock().retain(|model| !Arc::ptr_eq(model, own));
        }
    }
}

/// Delegates to the model in the slot.
struct SlotSummarizer {
    slot: SummaryModelSlot,
    window: Tokens,
}

#[async_trait]
impl Summarizer for SlotSummarizer {
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
                let what = "the request has no model or no key for a summary, or is of Bedrock";
                Err(Error::new(ErrorKind::Capability, what))
            }
        }
    }
}

/// The target of a summary request.
pub(super) struct SummaryTarget<'a> {
    pub(super) protocol: Protocol,
    pub(super) model: &'a str,
    pub(super) window: Tokens,
    /// The URL of the request.
    pub(super) url: &'a Url,
    /// Whether the provider has chat completions only.
    pub(super) speaks_chat: bool,
    pub(super) headers: &'a HeaderMap,
}

impl SummaryTarget<'_> {
    /// Creates the model at its endpoint, if its API and credentials are supported.
    pub(super) fn model(&self, client: Arc<Client>) -> Option<HttpModel> {
        let mut base = self.url.clone();
        // Ollama has OpenAI's API beside its own.
        if let Some(before) = self.url.path().strip_suffix("/api/chat") {
            base.set_path(&format!("{before}/v1"));
        }
        if self.speaks_chat
            && let Some(before) = self.url.path().strip_suffix("/responses")
        {
            base.set_path(before);
        }
        let api = match self.protocol {
            Protocol::Responses if self.speaks_chat => Api::OpenAiCompletions,
            Protocol::Chat => Api::OpenAiCompletions,
            Protocol::Responses => Api::OpenAiResponses,
            Protocol::Messages => Api::AnthropicMessages,
            Protocol::Converse => return None,
            // Google's models are called through its OpenAI-compatible endpoint.
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
                // That endpoint also accepts Google's access tokens, which are copied above.
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
        let target = SummaryTarget {
            protocol: Protocol::Chat,
            model: name,
            window: Tokens(8_000),
            url: &Url::parse("http://127.0.0.1:9").expect("an address"),
            speaks_chat: false,
            headers: &HeaderMap::new(),
        };
        target.model(Arc::default())
    }

    #[test]
    fn dropping_a_model_leaves_the_models_of_other_requests() {
        let slot = SummaryModelSlot::default();
        let name = || slot.model().map(|model| model.name().to_owned());
        let first = slot.insert(model("a"));
        let second = slot.insert(model("b"));
        drop(first);
        assert_eq!(name().as_deref(), Some("upstream/b"));
        let third = slot.insert(model("c"));
        drop(third);
        assert_eq!(name().as_deref(), Some("upstream/b"));
        drop(second);
        assert_eq!(name(), None);
    }
}
