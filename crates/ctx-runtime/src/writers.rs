//! The models that write summaries, from names and configuration.

use std::sync::Arc;

use ctx_core::{Error, ErrorKind, Result, Summarizer, SummaryModels};
use ctx_engine_registry::{Config, ModelConfig, Models, ProviderConfig};
use ctx_layers::compaction;
use ctx_model::{
    Catalogue, Client, KeyRef, ModelFacts, Prices, Provider, ProviderModel, TokioTimer,
    connect_models,
};

use crate::words::shortened;

/// What stands for "no model": the extractive summariser.
const NONE: &str = "none";

/// How many names of models are offered, and how long they may be.
const LISTED: usize = 8;
const NAME_CHARS: usize = 80;

/// Models that are to write summaries.
#[derive(Debug)]
pub struct Writers {
    /// The one asked for, then its fallbacks.
    pub models: SummaryModels,
    /// Fallbacks that cannot be had, and why.
    pub missing: Vec<Error>,
    /// Models whose window nobody gave.
    pub assumed: Vec<ModelFacts>,
}

impl Writers {
    /// What a person should be told of the fallbacks that cannot be had.
    pub fn left_out(&self) -> impl Iterator<Item = String> {
        self.missing.iter().map(|error| format!("a fallback is left out: {error}"))
    }
}

/// Connects the model that writes summaries and its fallbacks: the one `asked` for, or the one
/// configured, or the session's own where the configuration says how to reach it. `None`: the
/// extractive summariser writes them.
///
/// # Errors
///
/// A model that was asked for by name and cannot be had; a fallback that cannot be had is only
/// told.
pub fn summary_models(
    config: &Config,
    asked: Option<&str>,
    model: Option<&str>,
) -> Result<Option<Writers>> {
    let compaction = compaction::Config::resolve(config)?;
    let models: Models = config.section()?;
    let asked = asked.or(compaction.model.as_deref());
    let reachable = |name: &&str| {
        models.find(None, name).is_some_and(|(provider, _)| {
            models.providers.get(provider).is_some_and(|provider| provider.base_url.is_some())
        })
    };
    let first = match asked {
        Some(NONE) => return Ok(None),
        Some(name) => name,
        None => match model.filter(reachable) {
            Some(name) => name,
            None => return Ok(None),
        },
    };
    let providers = providers(&models)?;
    let client = Arc::new(Client::default());
    let names = compaction.model_chain(first);
    check_is_listed(first, &models)?;
    // The first is what was asked for.
    ctx_model::connect(first, &providers, &client).map_err(|error| near(error, &models))?;
    let (chain, missing) = connect_models(&names, &providers, &client);
    let facts = chain.iter().map(|model| model.facts());
    let assumed = facts.filter(|facts| facts.window_is_assumed).cloned().collect();
    let chain = chain.into_iter().map(|model| model as Arc<dyn Summarizer>).collect();
    let models = SummaryModels { chain, timer: Arc::new(TokioTimer::default()) };
    Ok(Some(Writers { models, missing, assumed }))
}

/// The model that the configuration names to write summaries, connected as far as that can be told
/// without asking it; `None` where it names none.
///
/// # Errors
///
/// A configuration that cannot be read. That the model cannot be had is told beside its name.
pub fn configured_writer(config: &Config) -> Result<Option<(String, Result<ModelFacts>)>> {
    let compaction = compaction::Config::resolve(config)?;
    let models: Models = config.section()?;
    let Some(first) = compaction.model.filter(|name| name != NONE) else { return Ok(None) };
    let providers = providers(&models)?;
    let connected = check_is_listed(&first, &models).and_then(|()| {
        let client = Arc::new(Client::default());
        ctx_model::connect(&first, &providers, &client).map_err(|error| near(error, &models))
    });
    Ok(Some((first, connected.map(|model| model.facts().clone()))))
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

/// The providers of the configuration, as ctx-model takes them.
pub(crate) fn providers(models: &Models) -> Result<Vec<Provider>> {
    models.providers.iter().map(provider).collect()
}

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

#[cfg(test)]
mod tests {
    use ctx_layers::compaction;
    use ctx_model::Catalogue;

    use super::*;

    #[test]
    fn the_models_that_follow_one_that_fails_are_in_the_catalogue() {
        for (model, next) in compaction::Config::default().fallback_models {
            for name in [model, next] {
                assert!(Catalogue::embedded().find(&name).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn names_of_the_configuration_reach_nobody_with_what_terminals_obey() {
        let config = r#"{ models: { providers: { p: {
            baseUrl: "http://127.0.0.1:9/v1",
            api: "openai-completions",
            models: [{ id: "a\u001b[2J", contextWindow: 32000 }],
        } } } }"#;
        let config = Config::parse(config).unwrap();
        let error = summary_models(&config, Some("p/none"), None).unwrap_err();
        let hint = error.hint_text().unwrap();
        assert!(hint.contains(r"p/a\u{1b}[2J") && !hint.contains('\u{1b}'), "{hint}");
    }
}
