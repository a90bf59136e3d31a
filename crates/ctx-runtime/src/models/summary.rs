//! Connects the models that write summaries, from names and configuration.

use std::sync::Arc;

use ctx_config::{Config, Models};
use ctx_core::printable::shortened;
use ctx_core::{Error, ErrorKind, Result, Summarizer, SummaryModels};
use ctx_layers::compaction;
use ctx_model::{Catalogue, Client, ModelFacts, TokioTimer, connect_models};

use super::providers::providers;

/// The name for "no model": the extractive summariser.
const NONE: &str = "none";

/// Maximum number of suggested model names, and their maximum length.
const LISTED: usize = 8;
const NAME_CHARS: usize = 80;

/// The models that write summaries.
#[derive(Debug)]
pub struct SummaryModelChain {
    /// The requested model, then its fallbacks.
    pub models: SummaryModels,
    /// Fallbacks that are unavailable, and why.
    pub missing: Vec<Error>,
    /// Models whose context window is unknown and assumed.
    pub assumed: Vec<ModelFacts>,
}

impl SummaryModelChain {
    /// Returns warnings about unavailable fallbacks.
    pub fn warnings(&self) -> impl Iterator<Item = String> {
        self.missing.iter().map(|error| format!("fallback model skipped: {error}"))
    }
}

/// Connects the model that writes summaries and its fallbacks: the one `requested`, or the
/// configured one, or the session's own if the configuration says how to reach it. `None`: the
/// extractive summariser is used.
///
/// # Errors
///
/// A model that was requested by name and is unavailable; an unavailable fallback is only reported.
pub fn summary_models(
    config: &Config,
    requested: Option<&str>,
    model: Option<&str>,
) -> Result<Option<SummaryModelChain>> {
    let compaction = compaction::Config::resolve(config)?;
    let models: Models = config.section()?;
    let requested = requested.or(compaction.model.as_deref());
    let reachable = |name: &&str| {
        models.find(None, name).is_some_and(|(provider, _)| {
            models.providers.get(provider).is_some_and(|provider| provider.base_url.is_some())
        })
    };
    let first = requested.or_else(|| model.filter(reachable));
    let Some(first) = first.filter(|name| *name != NONE) else { return Ok(None) };
    let providers = providers(&models)?;
    let client = Arc::new(Client::default());
    let names = compaction.model_chain(first);
    check_is_listed(first, &models)?;
    // The selected model must be available; a fallback may be missing.
    ctx_model::connect(first, &providers, &client).map_err(|error| with_similar(error, &models))?;
    let (chain, missing) = connect_models(&names, &providers, &client);
    let facts = chain.iter().map(|model| model.facts());
    let assumed = facts.filter(|facts| facts.window_is_assumed).cloned().collect();
    let chain = chain.into_iter().map(|model| model as Arc<dyn Summarizer>).collect();
    let models = SummaryModels { chain, timer: Arc::new(TokioTimer::default()) };
    Ok(Some(SummaryModelChain { models, missing, assumed }))
}

/// Returns the configured summary model, connected as far as possible without contacting it; `None`
/// if none is configured.
///
/// # Errors
///
/// An invalid configuration. If the model is unavailable, its error is returned with its name.
pub fn configured_summary_model(config: &Config) -> Result<Option<(String, Result<ModelFacts>)>> {
    let compaction = compaction::Config::resolve(config)?;
    let models: Models = config.section()?;
    let Some(first) = compaction.model.filter(|name| name != NONE) else { return Ok(None) };
    let providers = providers(&models)?;
    let connected = check_is_listed(&first, &models).and_then(|()| {
        let client = Arc::new(Client::default());
        ctx_model::connect(&first, &providers, &client)
            .map_err(|error| with_similar(error, &models))
    });
    Ok(Some((first, connected.map(|model| model.facts().clone()))))
}

/// Rejects a model that is neither in its provider's list nor in the catalogue. Without its window
/// it is unknown how much can be sent to it.
fn check_is_listed(name: &str, models: &Models) -> Result<()> {
    let Some((provider, model)) = name.split_once('/') else { return Ok(()) };
    let configured = models.providers.iter().find(|(id, _)| id.eq_ignore_ascii_case(provider));
    let Some((id, configured)) = configured else { return Ok(()) };
    let is_listed = configured.models.iter().any(|m| m.id.eq_ignore_ascii_case(model));
    if is_listed || configured.models.is_empty() || Catalogue::embedded().find(model).is_some() {
        return Ok(());
    }
    let error = Error::new(ErrorKind::NotFound, "the provider does not list this model")
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

/// Adds similar configured and catalogued models to an error for an unknown model.
fn with_similar(error: Error, models: &Models) -> Error {
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
    fn control_characters_in_configured_names_are_escaped() {
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
