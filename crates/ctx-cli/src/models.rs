//! The models that write summaries, from flags and configuration.

use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result, Summarizer, SummaryModels};
use ctx_engine_registry::{Config, ModelConfig, Models, ProviderConfig};
use ctx_model::{
    Catalogue, Client, KeyRef, ModelFacts, Prices, Provider, ProviderModel, TokioTimer,
    connect_models,
};

use crate::args::Fit;
use crate::failure::misuse;
use crate::out::Out;
use crate::words::{shortened, thousands};

/// What stands for "no model" on the command line.
const NONE: &str = "none";

/// How many names of models are offered, and how long they may be.
const LISTED: usize = 8;
const NAME_CHARS: usize = 80;

/// The model that writes summaries and its fallbacks: the one asked for, or the one configured, or
/// the session's own where the configuration says how to reach it. `None`: the extractive
/// summariser writes them.
///
/// A model that was asked for by name and cannot be had is an error; a fallback that cannot be had
/// is a warning.
pub(crate) fn summary_models(
    config: &Config,
    fit: &Fit,
    out: &Out,
) -> anyhow::Result<Option<SummaryModels>> {
    let compaction = ctx_compaction::Config::resolve(config)?;
    let models: Models = config.section()?;
    let asked = fit.summary_model.as_deref().or(compaction.model.as_deref());
    let reachable = |name: &&str| {
        models.find(None, name).is_some_and(|(provider, _)| {
            models.providers.get(provider).is_some_and(|provider| provider.base_url.is_some())
        })
    };
    let first = match asked {
        Some(NONE) => return Ok(None),
        Some(name) => name,
        None => match fit.model.as_deref().filter(reachable) {
            Some(name) => name,
            None => return Ok(None),
        },
    };
    let providers: Vec<Provider> =
        models.providers.iter().map(provider).collect::<Result<_, _>>()?;
    let client = Arc::new(Client::default());
    let names = compaction.model_chain(first);
    let refused = |error: Error| match fit.summary_model {
        Some(_) if error.kind() == ErrorKind::NotFound => misuse(error),
        _ => error.into(),
    };
    check_is_listed(first, &models).map_err(refused)?;
    // The first is what was asked for.
    let connected = ctx_model::connect(first, &providers, &client);
    connected.map_err(|error| refused(near(error, &models)))?;
    let (chain, missing) = connect_models(&names, &providers, &client);
    for error in missing {
        out.note(format!("a fallback is left out: {error}"));
    }
    for model in chain.iter().filter(|model| model.facts().window_is_assumed) {
        out.note(window_is_assumed(model.facts()));
    }
    let chain = chain.into_iter().map(|model| model as Arc<dyn Summarizer>).collect();
    Ok(Some(SummaryModels { chain, timer: Arc::new(TokioTimer::default()) }))
}

/// What is wrong with the models that are to write summaries, as far as that can be told without
/// asking them.
pub(crate) fn problems(config: &Config) -> anyhow::Result<Vec<String>> {
    let compaction = ctx_compaction::Config::resolve(config)?;
    let models: Models = config.section()?;
    let Some(first) = compaction.model.as_deref().filter(|name| *name != NONE) else {
        return Ok(Vec::new());
    };
    let providers: Vec<Provider> =
        models.providers.iter().map(provider).collect::<Result<_, _>>()?;
    let connected = check_is_listed(first, &models).and_then(|()| {
        let client = Arc::new(Client::default());
        ctx_model::connect(first, &providers, &client).map_err(|error| near(error, &models))
    });
    let name = shortened(first, NAME_CHARS);
    Ok(match connected {
        Ok(model) if model.facts().window_is_assumed => vec![window_is_assumed(model.facts())],
        Ok(_) => Vec::new(),
        Err(error) => {
            let hint = error.hint_text().map(|hint| format!("; {hint}")).unwrap_or_default();
            vec![format!("agents.defaults.compaction.model '{name}' cannot be used: {error}{hint}")]
        }
    })
}

/// What is to be said of a model whose window nobody gave.
fn window_is_assumed(model: &ModelFacts) -> String {
    let provider = model.name.split_once('/').map_or("PROVIDER", |(provider, _)| provider);
    format!(
        "the window of {} is not known; {} tokens are assumed; set \
         models.providers.{provider}.models[].contextWindow",
        model.name,
        thousands(model.window.get()),
    )
}

/// Refuses a model that its provider's own list does not have, unless the catalogue does. Without
/// its window there is no telling what may be sent to it.
fn check_is_listed(name: &str, models: &Models) -> Result<()> {
    let Some((provider, model)) = name.split_once('/') else { return Ok(()) };
    let configured = models.providers.iter().find(|(id, _)| id.eq_ignore_ascii_case(provider));
    let Some((id, configured)) = configured else { return Ok(()) };
    let is_listed = configured.models.iter().any(|m| m.id.eq_ignore_ascii_case(model));
    if is_listed || configured.models.is_empty() || Catalogue::embedded().find(model).is_some() {
        return Ok(());
    }
    let error = Error::new(ErrorKind::NotFound, "the provider lists no such model")
        .with("model", shortened(name, NAME_CHARS));
    let listed = configured
        .models
        .iter()
        .take(LISTED)
        .map(|m| format!("{id}/{}", shortened(&m.id, NAME_CHARS)));
    let listed: Vec<_> = listed.collect();
    Err(error.hint(format!(
        "it lists {}; add yours to models.providers.{id}.models, with its contextWindow",
        listed.join(", "),
    )))
}

/// Names configured models beside what the catalogue offers, where one is not found.
fn near(error: Error, models: &Models) -> Error {
    let all = models.providers.iter().flat_map(|(id, provider)| {
        provider.models.iter().map(move |model| format!("{id}/{}", model.id))
    });
    let all: Vec<_> = all.take(LISTED).map(|name| shortened(&name, NAME_CHARS)).collect();
    match error.hint_text() {
        Some(hint) if error.kind() == ErrorKind::NotFound && !all.is_empty() => {
            let hint = format!("{hint}; configured: {}", all.join(", "));
            error.hint(hint)
        }
        _ => error,
    }
}

/// A provider of the configuration, as ctx-model takes it.
fn provider((id, provider): (&String, &ProviderConfig)) -> Result<Provider> {
    let headers = provider.headers.iter();
    let headers = headers.map(|(name, value)| Ok((name.clone(), KeyRef::parse(value.expose())?)));
    Ok(Provider {
        id: id.clone(),
        base_url: provider.base_url.clone(),
        api: provider.api.clone(),
        api_key: provider.api_key.as_ref().map(|key| KeyRef::parse(key.expose())).transpose()?,
        headers: headers.collect::<Result<_>>()?,
        models: provider.models.iter().map(model).collect(),
    })
}

fn model(model: &ModelConfig) -> ProviderModel {
    ProviderModel {
        id: model.id.clone(),
        context_window: model.context_window,
        context_tokens: model.context_tokens,
        max_tokens: model.max_tokens,
        prices: model.cost.map(|cost| Prices {
            input: cost.input,
            output: cost.output,
            cache_read: cost.cache_read,
            cache_write: cost.cache_write,
        }),
        reasoning: model.reasoning,
    }
}
