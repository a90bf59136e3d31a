//! Makes the guard known to the registry, and reads its statements from the configuration.

use ctx_core::{Layer, Profile, Result, Tokens};
use ctx_engine_registry::{
    BuildContext, ConfigSection, ContextTokens, LayerRegistration, ModelConfig, Models, Running,
    Section, wrong_value,
};

use crate::{Candidates, Config, ContextWindowSource, Rule, WindowGuard};

const MAX_INPUT_LENGTH: &str = "agents.running.max_input_length";

impl Section for Config {
    const PATH: &'static str = "agents.defaults.windowGuard";
    fn for_profile(profile: Profile) -> Self {
        Config::for_profile(profile)
    }
    fn check(&self) -> Result<()> {
        let (least, warn) = (self.hard_min_tokens, self.warn_below_tokens);
        if self.rule == Rule::Fixed && least > warn {
            let expected = format!("no more than warnBelowTokens, which is {warn}");
            return Err(wrong_value::<Self>("hardMinTokens", least, &expected)
                .hint(format!("set warnBelowTokens to {least} or more as well")));
        }
        Ok(())
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
    /// model's metadata says by [`Candidates::model`].
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

fn build(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let config = Config::resolve(context.config)?;
    let source = ContextWindowSource::from_name(context.window.source).unwrap_or_default();
    let guard = WindowGuard::new(config).with_source(source);
    Ok(Some(Box::new(match context.window.native {
        Some(native) => guard.with_native_window(native),
        None => guard,
    })))
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
    fn a_minimum_that_makes_no_sense_is_refused() {
        let parse = |keys: &str| {
            let text = format!("{{ agents: {{ defaults: {{ windowGuard: {{ {keys} }} }} }} }}");
            ctx_engine_registry::Config::parse(&text)
        };
        for (keys, words) in [
            ("hardMinTokens: 0", "hardMinTokens': expected a whole number from 1"),
            ("defaultTokens: 0", "defaultTokens"),
            ("hardMinTokens: 64000", "no more than warnBelowTokens, which is 32000 (value: 64000)"),
            ("hardMinTokens: 9000, warnBelowTokens: 8000", "hardMinTokens"),
            ("rule: 'fixd'", "rule': expected fixed or proportional"),
            ("order: 5", "order': expected agentFirst or modelFirst"),
        ] {
            let error = parse(keys).unwrap_err();
            assert!(error.to_string().contains(words), "{keys}: {error}");
            assert!(error.hint_text().is_some());
        }
        assert!(parse("hardMinTokens: 64000, warnBelowTokens: 64000").is_ok());
        assert!(parse("rule: 'proportional', hardMinTokens: 64000").is_ok());
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
