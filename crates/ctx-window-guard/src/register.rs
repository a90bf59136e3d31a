//! Makes the guard known to the registry, and reads its statements from the configuration.

use ctx_core::{Layer, Profile, Result, Tokens};
use ctx_engine_registry::{
    BuildContext, ConfigSection, ContextTokens, LayerRegistration, ModelConfig, Models, Running,
    Section,
};

use crate::{Candidates, Config, ContextWindowSource, WindowGuard};

const MAX_INPUT_LENGTH: &str = "agents.running.max_input_length";

impl Section for Config {
    const PATH: &'static str = "agents.defaults.windowGuard";
    fn for_profile(profile: Profile) -> Self {
        Config::for_profile(profile)
    }
}

impl Config {
    /// The section in force. Under `copaw` the default window is `agents.running.max_input_length`.
    ///
    /// # Errors
    ///
    /// As [`ctx_engine_registry::Config::section`].
    pub fn resolve(config: &ctx_engine_registry::Config) -> Result<Self> {
        let mut section: Self = config.section()?;
        if config.profile() == Profile::Copaw
            && !config.is_explicit("agents.defaults.windowGuard.defaultTokens")
        {
            section.default_tokens = Tokens(config.section::<Running>()?.max_input_length);
        }
        Ok(section)
    }
}

impl Candidates {
    /// What the configuration says about a model, found as [`Models::find`] does. Add what the
    /// model's metadata says by [`Candidates::with_model`].
    ///
    /// An `agents.running.max_input_length` set by hand counts as the agent's word.
    ///
    /// # Errors
    ///
    /// As [`ctx_engine_registry::Config::section`].
    pub fn from_config(
        config: &ctx_engine_registry::Config,
        provider: Option<&str>,
        model: &str,
    ) -> Result<Self> {
        let models: Models = config.section()?;
        let listed = models.find(provider, model);
        let running = match config.is_explicit(MAX_INPUT_LENGTH) {
            true => Some(config.section::<Running>()?.max_input_length),
            false => None,
        };
        let agent = config.section::<ContextTokens>()?.0.or(running);
        Ok(Self {
            model: None,
            models_config: listed.and_then(|(_, m)| smaller_limit(m)).map(Tokens),
            agent_context_tokens: agent.map(Tokens),
        })
    }
}

/// The smaller of a model's two limits that are set and not zero.
fn smaller_limit(model: &ModelConfig) -> Option<u32> {
    let stated = [model.context_window, model.context_tokens];
    stated.into_iter().flatten().filter(|&tokens| tokens > 0).min()
}

/// The window is settled when layers are built; who stated it is read off the value.
fn source(context: &BuildContext<'_>, config: &Config) -> Result<ContextWindowSource> {
    let said = Candidates::from_config(context.config, None, "")?;
    Ok(if said.agent_context_tokens == Some(context.window) {
        ContextWindowSource::AgentContextTokens
    } else if config.default_tokens == context.window {
        ContextWindowSource::Default
    } else {
        ContextWindowSource::Model
    })
}

fn build(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let config = Config::resolve(context.config)?;
    let source = source(context, &config)?;
    Ok(Some(Box::new(WindowGuard::new(config).with_source(source))))
}

ctx_engine_registry::inventory::submit! { ConfigSection::of::<Config>(env!("CARGO_PKG_NAME")) }
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: WindowGuard::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 100,
        about: "refuses a window that is too small",
        build,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resolve;

    #[test]
    fn the_configuration_states_windows() {
        let config = ctx_engine_registry::Config::parse(
            r#"{ models: { providers: { local: { models: [
                { id: "m", contextWindow: 64000, contextTokens: 40000 } ] } } },
                agents: { defaults: { contextTokens: 24000 } } }"#,
        )
        .unwrap();
        let said = Candidates::from_config(&config, Some("local"), "m").unwrap();
        assert_eq!(said.models_config, Some(Tokens(40_000)));
        assert_eq!(said.agent_context_tokens, Some(Tokens(24_000)));
        let qualified = Candidates::from_config(&config, None, "local/m").unwrap();
        assert_eq!(qualified, said);
        let other = Candidates::from_config(&config, Some("other"), "m").unwrap();
        assert_eq!(other.models_config, None);
    }

    #[test]
    fn copaw_takes_max_input_length() {
        let parse = |text| ctx_engine_registry::Config::parse(text).unwrap();
        let window = |config: &ctx_engine_registry::Config| {
            let said = Candidates::from_config(config, None, "m").unwrap();
            let window = resolve(&said, &Config::resolve(config).unwrap());
            (window.tokens.0, window.source.name())
        };
        assert_eq!(window(&parse(r#"{ profile: "copaw" }"#)), (131_072, "default"));
        let set =
            parse(r#"{ profile: "copaw", agents: { running: { max_input_length: 64000 } } }"#);
        assert_eq!(window(&set), (64_000, "agentContextTokens"));
    }
}
