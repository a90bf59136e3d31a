//! What is said of the models that write summaries.

use ctx_core::{Error, ErrorKind, SummaryModels};
use ctx_engine_registry::{Config, Models};
use ctx_model::{Api, Endpoint, ModelFacts};
use ctx_runtime::configured_writer;

use crate::args::{Fit, Summaries};
use crate::failure::misuse;
use crate::out::Out;
use crate::words::{shortened, thousands};

/// How long a name may be.
const NAME_CHARS: usize = 80;

/// The models that write summaries, as [`ctx_runtime::summary_models`] finds them. What is missing
/// or assumed is said.
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
    let writers = ctx_runtime::summary_models(config, asked, model).map_err(refused)?;
    let Some(writers) = writers else { return Ok(None) };
    writers.left_out().for_each(|told| out.note(told));
    for facts in &writers.assumed {
        out.note(window_is_assumed(facts));
    }
    Ok(Some(writers.models))
}

/// What is wrong with the models that are to write summaries, as far as that can be told without
/// asking them.
pub(crate) fn problems(config: &Config) -> anyhow::Result<Vec<String>> {
    let Some((first, connected)) = configured_writer(config)? else { return Ok(Vec::new()) };
    let name = shortened(&first, NAME_CHARS);
    Ok(match connected {
        Ok(facts) if facts.window_is_assumed => vec![window_is_assumed(&facts)],
        Ok(_) => Vec::new(),
        Err(error) => {
            let told = error.told();
            vec![format!("agents.defaults.compaction.model '{name}' cannot be used: {told}")]
        }
    })
}

/// What is wrong with providers, whatever they are used for: families of APIs that nobody here speaks,
/// and addresses that are no web server's.
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

/// What is to be said of a model whose window nobody gave.
pub(crate) fn window_is_assumed(model: &ModelFacts) -> String {
    let provider = model.name.split_once('/').map_or("PROVIDER", |(provider, _)| provider);
    format!(
        "the window of {} is not known; {} tokens are assumed; set \
         models.providers.{provider}.models[].contextWindow",
        model.name,
        thousands(model.window.get()),
    )
}
