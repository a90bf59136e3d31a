//! Converts the providers of the configuration.

use ctx_config::{ModelConfig, Models, ProviderConfig};
use ctx_core::Result;
use ctx_model::{KeyRef, Prices, Provider, ProviderModel};

/// Converts the providers of the configuration for ctx-model.
pub(super) fn providers(models: &Models) -> Result<Vec<Provider>> {
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
        prices: configured_prices(model),
        reasoning: model.reasoning,
    }
}

/// Returns the configured prices of a model.
pub(crate) fn configured_prices(model: &ModelConfig) -> Option<Prices> {
    model.cost.map(|cost| Prices {
        input: cost.input,
        output: cost.output,
        cache_read: cost.cache_read,
        cache_write: cost.cache_write,
    })
}
