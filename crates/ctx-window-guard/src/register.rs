//! Registers the guard, and reads window sizes from the configuration.

use ctx_config::{
    ConfigSection, ContextTokens, ModelConfig, Models, RunningConfig, Section, invalid_value,
};
use ctx_core::{Layer, Result, Tokens};
use ctx_engine_registry::{BuildContext, LayerRegistration};

use crate::{Config, ContextWindowSource, MinimumRule, WindowGuard, WindowSizes};

const MAX_INPUT_LENGTH: &str = "agents.running.max_input_length";

impl Section for Config {
    const PATH: &'static str = "agents.defaults.windowGuard";
    fn check(&self) -> Result<()> {
        let (least, warn) = (self.hard_min_tokens, self.warn_below_tokens);
        if self.rule == MinimumRule::Fixed && least > warn {
            let expected = format!("at most warnBelowTokens, which is {warn}");
            return Err(invalid_value::<Self>("hardMinTokens", least, &expected)
                .hint(format!("set warnBelowTokens to {least} or more as well")));
        }
        Ok(())
    }
}

impl WindowSizes {
    /// Returns the configured window sizes of a model, found as [`Models::find`] does. Add the size
    /// from the model's metadata with [`WindowSizes::model`].
    ///
    /// An explicit `agents.running.max_input_length` counts as the agent's setting.
    ///
    /// # Errors
    ///
    /// As [`ctx_config::Config::section`].
    pub fn from_config(
        config: &ctx_config::Config,
        provider: Option<&str>,
        model: &str,
    ) -> Result<Self> {
        let models: Models = config.section()?;
        let listed = models.find(provider, model);
        let running = match config.is_explicit(MAX_INPUT_LENGTH) {
            true => Some(config.section::<RunningConfig>()?.max_input_length),
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

/// Returns the smaller of a model's two limits, ignoring unset and zero ones.
fn smaller_limit(model: &ModelConfig) -> Option<u32> {
    let stated = [model.context_window, model.context_tokens];
    stated.into_iter().flatten().filter(|&tokens| tokens > 0).min()
}

fn build(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let config: Config = context.config.section()?;
    let source = ContextWindowSource::from_name(context.window.source).unwrap_or_default();
    let guard = WindowGuard::new(config).with_source(source);
    Ok(Some(Box::new(match context.window.native {
        Some(native) => guard.with_native_window(native),
        None => guard,
    })))
}

ctx_config::inventory::submit! { ConfigSection::of::<Config>(env!("CARGO_PKG_NAME")) }
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
        let config = ctx_config::Config::parse(
            r#"{ models: { providers: { local: { models: [
                { id: "m", contextWindow: 64000, contextTokens: 40000 } ] } } },
                agents: { defaults: { contextTokens: 24000 } } }"#,
        )
        .unwrap();
        let sizes = WindowSizes::from_config(&config, Some("local"), "m").unwrap();
        assert_eq!(sizes.models_config, Some(Tokens(40_000)));
        assert_eq!(sizes.agent_context_tokens, Some(Tokens(24_000)));
        let qualified = WindowSizes::from_config(&config, None, "local/m").unwrap();
        assert_eq!(qualified, sizes);
        let other = WindowSizes::from_config(&config, Some("other"), "m").unwrap();
        assert_eq!(other.models_config, None);
    }

    #[test]
    fn an_invalid_minimum_is_refused() {
        let parse = |keys: &str| {
            let text = format!("{{ agents: {{ defaults: {{ windowGuard: {{ {keys} }} }} }} }}");
            ctx_config::Config::parse(&text)
        };
        for (keys, words) in [
            ("hardMinTokens: 0", "hardMinTokens': expected a whole number from 1"),
            ("defaultTokens: 0", "defaultTokens"),
            ("hardMinTokens: 64000", "at most warnBelowTokens, which is 32000 (value: 64000)"),
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
        let parse = |text| ctx_config::Config::parse(text).unwrap();
        let window = |config: &ctx_config::Config| {
            let sizes = WindowSizes::from_config(config, None, "m").unwrap();
            let window = resolve(&sizes, &config.section().unwrap());
            (window.tokens.0, window.source.name())
        };
        assert_eq!(window(&parse(r#"{ profile: "copaw" }"#)), (131_072, "default"));
        let set =
            parse(r#"{ profile: "copaw", agents: { running: { max_input_length: 64000 } } }"#);
        assert_eq!(window(&set), (64_000, "agentContextTokens"));
    }
}
