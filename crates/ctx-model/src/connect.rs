//! From `provider/model` and a configuration to a model that can be called.

use std::fmt;
use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result, Summarizer, Tokens};

use reqwest::Url;

use crate::endpoint::shown;
use crate::known::{self, Known};
use crate::{
    Api, Catalogue, Client, EmbedApi, Endpoint, HttpEmbedder, HttpModel, KeyRef, ModelFacts, Prices,
};

/// The window of a model of which nothing is known: the least that the guard lets pass.
const UNKNOWN_WINDOW: Tokens = Tokens(16_000);

/// A provider as a configuration describes it. What is left out comes from the built-in provider of
/// that id, if there is one.
#[derive(Clone, Default)]
pub struct Provider {
    /// The name before the slash.
    pub id: String,
    /// Where its API is.
    pub base_url: Option<String>,
    /// What it speaks: a name of [`Api`].
    pub api: Option<String>,
    /// Where its key comes from.
    pub api_key: Option<KeyRef>,
    /// Headers to send besides.
    pub headers: Vec<(String, KeyRef)>,
    /// Its models.
    pub models: Vec<ProviderModel>,
}

impl fmt::Debug for Provider {
    /// A base URL may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base_url = self.base_url.as_deref().map(|url| match Url::parse(url) {
            Ok(url) => shown(&url),
            Err(_) => "no URL".to_owned(),
        });
        f.debug_struct("Provider")
            .field("id", &self.id)
            .field("base_url", &base_url)
            .field("api", &self.api)
            .field("api_key", &self.api_key)
            .field("headers", &self.headers)
            .field("models", &self.models)
            .finish()
    }
}

/// A model of a provider as a configuration describes it. What is left out comes from the
/// catalogue.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderModel {
    /// What the provider calls it.
    pub id: String,
    /// Its window.
    pub context_window: Option<u32>,
    /// How much of its window to use.
    pub context_tokens: Option<u32>,
    /// Its longest answer.
    pub max_tokens: Option<u32>,
    /// What its tokens cost.
    pub prices: Option<Prices>,
    /// Whether it thinks before it answers.
    pub reasoning: Option<bool>,
}

/// Makes a model from its name: `provider/model`; or a bare id, which is looked for among the
/// configured models, then in the catalogue, whose maker is then asked.
///
/// Where the configuration gives no base URL, `OPENAI_BASE_URL` and `ANTHROPIC_BASE_URL` move these
/// two providers to a server of one's own; and where it gives no key, it is that of the variable
/// that the provider's own SDK reads, such as `OPENAI_API_KEY`.
///
/// Without a window in configuration and catalogue it is taken to be 16,000 tokens, and
/// [`ModelFacts::window_is_assumed`] says so.
///
/// # Errors
///
/// [`ErrorKind::NotFound`] for a name of no provider, [`ErrorKind::Capability`] for a missing key
/// (the hint names the variable), [`ErrorKind::InvalidInput`] for settings that make no sense.
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

/// As [`connect`], for a model and its fallbacks. Those that cannot be had are left out, and come
/// back as errors. A bare name that only the provider of the model before it may know is looked for
/// there. For a conversation the client should give answers the time of
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

/// Makes a model for vectors from its name, `provider/model`. The number of dimensions may be left
/// out for models that are known by name; where it is given and OpenAI's models can cut their
/// vectors to it, they are asked to.
///
/// # Errors
///
/// As [`connect`].
pub fn connect_embedder(
    name: &str,
    dimensions: Option<usize>,
    providers: &[Provider],
    client: &Arc<Client>,
) -> Result<HttpEmbedder> {
    let found = find(name, providers)?;
    let native = known::dimensions(&found.model);
    let Some(wanted) = dimensions.or(native) else {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "the length of this model's vectors is not known",
        )
        .with("model", name)
        .hint("give the number of dimensions"));
    };
    let api = if found.provider.eq_ignore_ascii_case("ollama") {
        EmbedApi::Ollama
    } else {
        EmbedApi::OpenAi
    };
    let endpoint = found.endpoint()?;
    if endpoint.api() == Api::AnthropicMessages {
        return Err(Error::new(ErrorKind::Capability, "this provider makes no vectors")
            .with("provider", &found.provider)
            .hint("take a provider with OpenAI's embeddings, or Ollama"));
    }
    let embedder =
        HttpEmbedder::new(&found.provider, &found.model, wanted, api, endpoint, client.clone())?;
    let can_cut = found.model.starts_with("text-embedding-3");
    Ok(if can_cut && native != Some(wanted) { embedder.asking_for_dimensions() } else { embedder })
}

/// A provider and a model, found by name.
struct Found<'a> {
    provider: String,
    model: String,
    configured: Option<&'a Provider>,
    known: Option<&'static Known>,
}

fn find<'a>(name: &str, providers: &'a [Provider]) -> Result<Found<'a>> {
    let configured = |id: &str| providers.iter().find(|p| p.id.eq_ignore_ascii_case(id));
    let found = |provider: &str, model: &str| Found {
        provider: configured(provider).map_or(provider, |p| p.id.as_str()).to_owned(),
        model: model.to_owned(),
        configured: configured(provider),
        known: known::provider(provider),
    };
    let name = name.trim();
    if let Some((provider, model)) = name.split_once('/')
        && !model.is_empty()
        && (configured(provider).is_some() || known::provider(provider).is_some())
    {
        return Ok(found(provider, model));
    }
    if let Some(lists) = providers.iter().find(|p| p.models.iter().any(|m| m.id == name)) {
        return Ok(found(&lists.id, name));
    }
    let row = Catalogue::embedded().find(name).filter(|_| !name.contains('/'));
    if let Some(row) = row
        && (configured(&row.provider).is_some() || known::provider(&row.provider).is_some())
    {
        return Ok(found(&row.provider, name));
    }
    let mut names: Vec<&str> = providers.iter().map(|p| p.id.as_str()).collect();
    names.extend(known::PROVIDERS.iter().map(|p| p.id).filter(|id| configured(id).is_none()));
    let near = Catalogue::embedded().nearest(name);
    let near = match near.first() {
        Some(near) => format!("; did you mean {near}?"),
        None => String::new(),
    };
    Err(Error::new(ErrorKind::NotFound, "no provider has this model")
        .with("model", name.chars().take(100).collect::<String>())
        .hint(format!("name it as provider/model; providers: {}{near}", names.join(", "))))
}

impl Found<'_> {
    fn endpoint(&self) -> Result<Endpoint> {
        let named = |e: Error| e.with("provider", &self.provider);
        let set = self.configured.and_then(|p| p.base_url.clone()).or_else(|| {
            self.known.and_then(|known| known.base_url_of(|name| std::env::var(name).ok()))
        });
        let usual = self.known.map(|known| known.base_url);
        let Some(base_url) = set.as_deref().or(usual) else {
            return Err(Error::new(ErrorKind::InvalidInput, "a provider has no base URL")
                .with("provider", &self.provider)
                .hint(format!("set models.providers.{}.baseUrl in ctx.json5", self.provider)));
        };
        let api = match self.configured.and_then(|p| p.api.as_deref()) {
            Some(name) => name.parse().map_err(named)?,
            // What is compatible with OpenAI is so with its chat completions first of all.
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
        let usual = self.known.and_then(|k| k.key).map(|name| KeyRef::Env(name.to_owned()));
        match (key, usual) {
            (Some(key), _) => endpoint = endpoint.with_key(key),
            // A gateway of one's own, or one that headers open, may want no key.
            (None, Some(usual)) if set.is_some() => {
                if usual.resolve().is_ok() {
                    endpoint = endpoint.with_key(usual);
                }
            }
            (None, Some(usual)) => endpoint = endpoint.with_key(usual),
            (None, None) => {}
        }
        // A key that is missing is better known before the work than after.
        endpoint.headers().map_err(named)?;
        Ok(endpoint)
    }

    fn facts(&self) -> ModelFacts {
        let is_ollama = self.provider.eq_ignore_ascii_case("ollama");
        let set = self
            .configured
            .and_then(|p| p.models.iter().find(|m| m.id.eq_ignore_ascii_case(&self.model)));
        // A local server runs a model of its own size, whatever cloud model has that name.
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
            // `Claude-Opus-4.5` is a name people use; its maker knows the model by its id.
            id: match row {
                Some(row) if is_maker && known::same_name(&row.id, &self.model) => row.id.clone(),
                _ => self.model.clone(),
            },
            window: used.map_or(window, |used| used.min(window)),
            window_is_assumed: known.is_none(),
            max_output: set
                .and_then(|m| m.max_tokens)
                .map(Tokens)
                .or(row.and_then(|r| r.max_output)),
            prices: set.and_then(|m| m.prices).filter(Prices::is_valid).or(listed),
            reasoning: set.and_then(|m| m.reasoning).unwrap_or_else(|| known::thinks(&self.model)),
            truncates: is_ollama,
        }
    }
}
