//! Messages about the models that write summaries.

use ctx_config::{Config, Models};
use ctx_core::{Error, ErrorKind, SummaryModels};
use ctx_model::{Api, Endpoint};
use ctx_runtime::configured_summary_model;
use ctx_terminal::failure::misuse;
use ctx_terminal::format::shortened;
use ctx_terminal::out::Out;

use crate::args::{Fit, Summaries};

/// Maximum length of a name.
const NAME_CHARS: usize = 80;

/// Returns the models that write summaries, from [`ctx_runtime::summary_models`]. Notes models that
/// are missing or whose window is assumed.
pub(crate) fn summary_models(
    config: &Config,
    fit: &Fit,
    summaries: &Summaries,
    out: &Out,
) -> anyhow::Result<Option<SummaryModels>> {
    let (asked, model) = (summaries.summary_model.as_deref(), fit.model.as_deref());
    let refused = |error: Error| match asked {
        Some(_) if error.kind() == ErrorKind::NotFound => misuse(error),
        _ => error.into(),
    };
    let chain = ctx_runtime::summary_models(config, asked, model).map_err(refused)?;
    let Some(chain) = chain else { return Ok(None) };
    chain.warnings().for_each(|warning| out.note(warning));
    for facts in &chain.assumed {
        out.note(facts.assumed_window());
    }
    Ok(Some(chain.models))
}

/// Returns the problems of the configured summary models, as far as they can be found without
/// calling them.
pub(crate) fn problems(config: &Config) -> anyhow::Result<Vec<String>> {
    let Some((first, connected)) = configured_summary_model(config)? else { return Ok(Vec::new()) };
    let name = shortened(&first, NAME_CHARS);
    Ok(match connected {
        Ok(facts) if facts.window_is_assumed => vec![facts.assumed_window()],
        Ok(_) => Vec::new(),
        Err(error) => {
            let reason = error.told();
            vec![format!("agents.defaults.compaction.model '{name}' cannot be used: {reason}")]
        }
    })
}

/// Returns the errors in `models.providers`: unknown APIs and invalid base URLs.
pub(crate) fn faults(config: &Config) -> ctx_core::Result<Vec<Error>> {
    let models: Models = config.section()?;
    let wrong = |key: String| move |error: Error| error.with("key", key);
    Ok(models
        .providers
        .iter()
        .flat_map(|(id, provider)| {
            let key =
                |name| wrong(format!("models.providers.{}.{name}", shortened(id, NAME_CHARS)));
            let api = provider.api.as_deref().map(|name| name.parse::<Api>().map(drop));
            let url = provider.base_url.as_deref();
            let url = url.map(|url| Endpoint::new(url, Api::OpenAiCompletions).map(drop));
            let api = api.and_then(Result::err).map(key("api"));
            api.into_iter().chain(url.and_then(Result::err).map(key("baseUrl"))).collect::<Vec<_>>()
        })
        .collect())
}
