//! Creates callable models from `provider/model` and a configuration.

use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result, Summarizer, Tokens};

use reqwest::Url;

use crate::endpoint::shown;
use crate::known_providers::{self, KnownProvider};
use crate::{
    Api, Catalogue, Client, EmbedApi, Endpoint, HttpEmbedder, HttpModel, KeyRef, ModelFacts, Prices,
};

/// The assumed window of an unknown model: the minimum that the guard accepts.
const UNKNOWN_WINDOW: Tokens = Tokens(16_000);

/// A configured provider. Unset fields default to the built-in provider with that id, if any.
#[derive(Clone, Default)]
pub struct Provider {
    /// The name before the slash.
    pub id: String,
    /// The base URL of its API.
    pub base_url: Option<String>,
    /// Its API: a name of [`Api`].
    pub api: Option<String>,
    /// The source of its key.
    pub api_key: Option<KeyRef>,
    /// Additional headers.
    pub headers: Vec<(String, KeyRef)>,
    /// Its models.
    pub models: Vec<ProviderModel>,
}

// Shows the base URL without its secret parts, such as a password.
ctx_core::partial_debug!(
    Provider,
    it,
    id = it.id,
    base_url = it
        .base_url
        .as_deref()
        .map(|url| Url::parse(url).map_or_else(|_| "invalid URL".to_owned(), |url| shown(&url))),
    api = it.api,
    api_key = it.api_key,
    headers = it.headers,
    models = it.models
);

/// A configured model of a provider. Unset fields default to the catalogue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderModel {
    /// The provider's id of the model.
    pub id: String,
    /// The context window.
    pub context_window: Option<u32>,
    /// The part of the window to use.
    pub context_tokens: Option<u32>,
    /// The longest answer.
    pub max_tokens: Option<u32>,
    /// Prices of its tokens.
    pub prices: Option<Prices>,
    /// Whether it thinks before it answers.
    pub reasoning: Option<bool>,
}

/// Creates a model from its name: `provider/model`, or a bare id. A bare id is looked up among the
/// configured models, then in the catalogue, which determines the provider.
///
/// If the configuration has no base URL, `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL` override the
/// servers of these two providers. If it has no key, the key comes from the variable that the
/// provider's own SDK reads, such as `OPENAI_API_KEY`.
///
/// If neither configuration nor catalogue has a window, 16,000 tokens are assumed and
/// [`ModelFacts::window_is_assumed`] is set.
///
/// # Errors
///
/// [`ErrorKind::NotFound`] for an unknown provider or an unknown bare id,
/// [`ErrorKind::Capability`] for a missing key (the hint names the variable),
/// [`ErrorKind::InvalidInput`] for invalid settings.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
/// use ctx_core::Summarizer;
/// use ctx_model::{Client, connect};
///
/// let client = Arc::new(Client::default());
/// let model = connect("ollama/qwen3:8b", &[], &client)?;
/// assert_eq!(model.name(), "ollama/qwen3:8b");
/// # Ok::<(), ctx_core::Error>(())
/// ```
pub fn connect(name: &str, providers: &[Provider], client: &Arc<Client>) -> Result<HttpModel> {
    let found = find(name, providers)?;
    let endpoint = found.endpoint()?;
    let facts = found.facts();
    Ok(HttpModel::new(facts, endpoint, client.clone()))
}

/// Like [`connect`], for a model and its fallbacks. Models that cannot be created are skipped and
/// returned as errors. A bare name that is not found elsewhere belongs to the provider of the
/// preceding model. For conversations, use a client with
/// [`Timeouts::conversation`](crate::Timeouts::conversation).
#[must_use]
pub fn connect_models(
    names: &[String],
    providers: &[Provider],
    client: &Arc<Client>,
) -> (Vec<Arc<HttpModel>>, Vec<Error>) {
    let mut chain: Vec<Arc<HttpModel>> = Vec::new();
    let mut missing = Vec::new();
    let mut before: Option<String> = None;
    for name in names {
        let model = connect(name, providers, client).or_else(|error| match &before {
            Some(provider) if !name.contains('/') => {
                connect(&format!("{provider}/{name}"), providers, client).map_err(|_| error)
            }
            _ => Err(error),
        });
        match model {
            Ok(model) => {
                before = model.name().split_once('/').map(|(provider, _)| provider.to_owned());
                chain.push(Arc::new(model));
            }
            Err(error) => missing.push(error),
        }
    }
    (chain, missing)
}

/// Creates an embedding model from its name, `provider/model`. `dimensions` may be omitted for
/// models known by name. If it is set, OpenAI models that can shorten their vectors return vectors
/// of that length.
///
/// # Errors
///
/// See [`connect`].
pub fn connect_embedder(
    name: &str,
    dimensions: Option<usize>,
    providers: &[Provider],
    client: &Arc<Client>,
) -> Result<HttpEmbedder> {
    let found = find(name, providers)?;
    let native = known_providers::dimensions(&found.model);
    let Some(wanted) = dimensions.or(native) else {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "the number of dimensions of this model is unknown",
        )
        .with("model", name)
        .hint("set the number of dimensions"));
    };
    let api = if found.provider.eq_ignore_ascii_case("ollama") {
        EmbedApi::Ollama
    } else {
        EmbedApi::OpenAi
    };
    let endpoint = found.endpoint()?;
    if endpoint.api() == Api::AnthropicMessages {
        return Err(Error::new(ErrorKind::Capability, "this provider has no embeddings")
            .with("provider", &found.provider)
            .hint("use a provider with OpenAI's embeddings, or Ollama"));
    }
    let embedder =
        HttpEmbedder::new(&found.provider, &found.model, wanted, api, endpoint, client.clone())?;
    let can_cut = found.model.starts_with("text-embedding-3");
    Ok(if can_cut && native != Some(wanted) { embedder.with_dimensions() } else { embedder })
}

struct ConfiguredModel<'a> {
    provider: String,
    model: String,
    configured: Option<&'a Provider>,
    known: Option<&'static KnownProvider>,
}

fn find<'a>(name: &str, providers: &'a [Provider]) -> Result<ConfiguredModel<'a>> {
    let configured = |id: &str| providers.iter().find(|p| p.id.eq_ignore_ascii_case(id));
    let found = |provider: &str, model: &str| ConfiguredModel {
        provider: configured(provider).map_or(provider, |p| p.id.as_str()).to_owned(),
        model: model.to_owned(),
        configured: configured(provider),
        known: known_providers::provider(provider),
    };
    let name = name.trim();
    if let Some((provider, model)) = name.split_once('/')
        && !model.is_empty()
        && (configured(provider).is_some() || known_providers::provider(provider).is_some())
    {
        return Ok(found(provider, model));
    }
    if let Some(lists) = providers.iter().find(|p| p.models.iter().any(|m| m.id == name)) {
        return Ok(found(&lists.id, name));
    }
    let row = Catalogue::embedded().find(name).filter(|_| !name.contains('/'));
    if let Some(row) = row
        && (configured(&row.provider).is_some()
            || known_providers::provider(&row.provider).is_some())
    {
        return Ok(found(&row.provider, name));
    }
    let mut names: Vec<&str> = providers.iter().map(|p| p.id.as_str()).collect();
    names.extend(
        known_providers::PROVIDERS
            .iter()
            .map(|p| p.id.as_str())
            .filter(|id| configured(id).is_none()),
    );
    let near = Catalogue::embedded().nearest(name);
    let near = near.first().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
    Err(Error::new(ErrorKind::NotFound, "unknown model")
        .with("model", ctx_core::text::head_chars(name, 100))
        .hint(format!("write it as provider/model; providers: {}{near}", names.join(", "))))
}

impl ConfiguredModel<'_> {
    fn endpoint(&self) -> Result<Endpoint> {
        let named = |e: Error| e.with("provider", &self.provider);
        let set = self.configured.and_then(|p| p.base_url.clone()).or_else(|| {
            self.known.and_then(|known| known.base_url_of(|name| std::env::var(name).ok()))
        });
        let usual = self.known.map(|known| known.base_url.as_str());
        let Some(base_url) = set.as_deref().or(usual) else {
            return Err(Error::new(ErrorKind::InvalidInput, "missing base URL of a provider")
                .with("provider", &self.provider)
                .hint(format!("set models.providers.{}.baseUrl in ctx.json5", self.provider)));
        };
        let api = match self.configured.and_then(|p| p.api.as_deref()) {
            Some(name) => name.parse().map_err(named)?,
            // OpenAI-compatible servers support at least Chat Completions.
            None if set.is_some() && self.known.is_none_or(|k| k.id == "openai") => {
                Api::OpenAiCompletions
            }
            None => self.known.map_or(Api::OpenAiCompletions, |k| k.api),
        };
        let mut endpoint = Endpoint::new(base_url, api).map_err(named)?;
        let headers = self.configured.map_or(&[][..], |p| p.headers.as_slice());
        for (name, value) in headers {
            endpoint = endpoint.with_header(name.clone(), value.clone());
        }
        let key = self.configured.and_then(|p| p.api_key.clone());
        let usual = self.known.and_then(|k| k.key.clone()).map(KeyRef::Env);
        match (key, usual) {
            (Some(key), _) => endpoint = endpoint.with_key(key),
            // A custom gateway, or one authenticated by headers, may need no key.
            (None, Some(usual)) if set.is_some() => {
                if usual.resolve().is_ok() {
                    endpoint = endpoint.with_key(usual);
                }
            }
            (None, Some(usual)) => endpoint = endpoint.with_key(usual),
            (None, None) => {}
        }
        // A missing key is an error here, not at the first request.
        endpoint.headers().map_err(named)?;
        Ok(endpoint)
    }

    fn facts(&self) -> ModelFacts {
        let is_ollama = self.provider.eq_ignore_ascii_case("ollama");
        let set = self
            .configured
            .and_then(|p| p.models.iter().find(|m| m.id.eq_ignore_ascii_case(&self.model)));
        // A local server sets its own window, even if a cloud model has the same name.
        let row = Catalogue::embedded().find(&self.model).filter(|_| !is_ollama);
        let window = set.and_then(|m| m.context_window).map(Tokens).or(row.map(|r| r.window));
        let used = set.and_then(|m| m.context_tokens).map(Tokens);
        let known = window.or(used);
        let window = known.unwrap_or(UNKNOWN_WINDOW);
        let free = Prices { input: 0.0, output: 0.0, cache_read: None, cache_write: None };
        let listed = row.map(|r| r.prices).or(is_ollama.then_some(free));
        let is_maker = row.is_some_and(|r| r.provider.eq_ignore_ascii_case(&self.provider));
        ModelFacts {
            name: format!("{}/{}", self.provider, self.model),
            // `Claude-Opus-4.5` is a common spelling; the provider only knows the id.
            id: match row {
                Some(row) if is_maker && known_providers::same_name(&row.id, &self.model) => {
                    row.id.clone()
                }
                _ => self.model.clone(),
            },
            window: used.map_or(window, |used| used.min(window)),
            window_is_assumed: known.is_none(),
            max_output: set
                .and_then(|m| m.max_tokens)
                .map(Tokens)
                .or(row.and_then(|r| r.max_output)),
            prices: set.and_then(|m| m.prices).filter(Prices::is_valid).or(listed),
            reasoning: set
                .and_then(|m| m.reasoning)
                .unwrap_or_else(|| known_providers::thinks(&self.model)),
            truncates: is_ollama,
        }
    }
}
