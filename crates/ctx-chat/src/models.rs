//! Selects the models of a conversation.

use std::sync::Arc;

use ctx_config::Config;
use ctx_core::{ChatModel, Error, ErrorKind};
use ctx_runtime::ModelChain;
use ctx_terminal::failure::misuse;
use ctx_terminal::out::Out;

use super::Options;

/// Default models, and the variables with their keys.
const DEFAULT_MODELS: [(&str, &str); 2] =
    [("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5"), ("OPENAI_API_KEY", "openai/gpt-5.4")];

/// A one-line hint on how to set up a model.
const SETUP_HINT: &str = "export ANTHROPIC_API_KEY or OPENAI_API_KEY; or OPENAI_BASE_URL for your \
                          own server, with --model openai/NAME; or try `ctx chat --demo`, which \
                          needs neither";

/// The hint if a custom server is configured.
const SERVER_HINT: &str = "name a model of the server at OPENAI_BASE_URL: --model openai/NAME";

/// The models, the primary one first.
pub(crate) type Models = Vec<Arc<dyn ChatModel>>;

/// Connects the models of the command line, else the configured ones, else the default model whose
/// key is set. Warns of models that are missing or whose window is assumed.
pub(crate) fn connect(options: &Options, config: &Config, out: &Out) -> anyhow::Result<Models> {
    let chain = match ModelChain::connect(config, &options.models) {
        Ok(None) => {
            let default = default_model(|name| std::env::var(name).ok());
            let Some(name) = default else {
                let error = Error::new(ErrorKind::NotFound, "no model available");
                let has_server = std::env::var("OPENAI_BASE_URL").is_ok_and(|url| !url.is_empty());
                return Err(error.hint(if has_server { SERVER_HINT } else { SETUP_HINT }).into());
            };
            ModelChain::connect(config, &[name.to_owned()])
        }
        chain => chain,
    };
    let chain = chain.map_err(|error| match error.kind() {
        // The hint of the error names the missing variable.
        ErrorKind::Capability => {
            let own = error.hint_text().map(|own| format!("{own}; ")).unwrap_or_default();
            error.hint(format!("{own}or try `ctx chat --demo`, which needs no key")).into()
        }
        ErrorKind::NotFound if !options.models.is_empty() => misuse(error),
        _ => error.into(),
    })?;
    let Some(chain) = chain else { return Ok(Vec::new()) };
    for error in chain.missing {
        out.warn(format!("model skipped: {error}"));
    }
    if options.window.is_none() {
        for facts in &chain.assumed {
            out.note(facts.assumed_window());
        }
    }
    Ok(chain.models)
}

/// Returns the first default model whose key is set. Skips OpenAI's model if `OPENAI_BASE_URL`
/// names a custom server, which has its own models.
fn default_model(variable: impl Fn(&str) -> Option<String>) -> Option<&'static str> {
    let is_set = |name: &str| variable(name).is_some_and(|value| !value.trim().is_empty());
    let usable = |(key, _): &&(&str, &'static str)| {
        is_set(key) && !(*key == "OPENAI_API_KEY" && is_set("OPENAI_BASE_URL"))
    };
    DEFAULT_MODELS.iter().find(usable).map(|(_, model)| *model)
}

#[cfg(test)]
mod tests {
    use ctx_model::Catalogue;

    use super::*;

    #[test]
    fn the_default_model_is_one_whose_key_is_set() {
        let with = |set: &'static [&str]| {
            default_model(move |name| set.contains(&name).then(|| "value".to_owned()))
        };
        assert_eq!(with(&[]), None);
        assert_eq!(with(&["OPENAI_API_KEY"]), Some("openai/gpt-5.4"));
        assert_eq!(with(&["OPENAI_API_KEY", "OPENAI_BASE_URL"]), None);
        assert_eq!(
            with(&["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]),
            Some("anthropic/claude-sonnet-5")
        );
        assert_eq!(default_model(|_| Some(" ".to_owned())), None);
        for (_, model) in DEFAULT_MODELS {
            assert!(Catalogue::embedded().find(model).is_some(), "{model}");
        }
    }
}
