//! The models that write summaries, from flags and configuration.

use std::sync::Arc;

use ctx_core::{Result, SummaryModels};
use ctx_engine_registry::{Config, ModelConfig, Models, ProviderConfig};
use ctx_model::{Client, KeyRef, Prices, Provider, ProviderModel, TokioTimer, connect_chain};

use crate::args::Fit;
use crate::out::Out;

/// What stands for "no model" on the command line.
const NONE: &str = "none";

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
    // The first is what was asked for.
    ctx_model::connect(first, &providers, &client)?;
    let (chain, missing) = connect_chain(&names, &providers, &client);
    for error in missing {
        out.note(format!("a fallback is left out: {error}"));
    }
    Ok(Some(SummaryModels { chain, timer: Arc::new(TokioTimer::default()) }))
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
