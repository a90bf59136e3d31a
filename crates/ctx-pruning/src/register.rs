//! Registers the layer.

use ctx_config::{ConfigSection, Section};
use ctx_core::{Layer, Result};
use ctx_engine_registry::{BuildContext, LayerRegistration};

use crate::{Config, Mode, Pruning};

impl Section for Config {
    const PATH: &'static str = "agents.defaults.contextPruning";
    fn check(&self) -> Result<()> {
        Pruning::new(self.clone()).map(drop)
    }
}

fn build(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let config: Config = context.config.section()?;
    if config.mode == Mode::Off {
        return Ok(None);
    }
    Ok(Some(Box::new(Pruning::new(config)?)))
}

ctx_config::inventory::submit! { ConfigSection::of::<Config>(env!("CARGO_PKG_NAME")) }
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: Pruning::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 300,
        about: "trims stale tool results, in memory; off by default",
        build,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_section_is_read_and_checked() {
        let parse = |keys: &str| {
            let text = format!("{{ agents: {{ defaults: {{ contextPruning: {{ {keys} }} }} }} }}");
            ctx_config::Config::parse(&text)?.section::<Config>()
        };
        let config = parse(r#"mode: "turn-age", ttl: 90, tools: { deny: ["bash"] }"#).unwrap();
        assert_eq!((config.mode, config.ttl.to_string()), (Mode::TurnAge, "90m".to_owned()));
        assert_eq!(parse(r#"ttl: "1h""#).unwrap().ttl.to_string(), "1h");
        for wrong in ["ttl: \"soon\"", "ttl: true", "mode: \"on\"", "softTrim: { max: 1 }"] {
            let error = parse(wrong).unwrap_err();
            assert!(error.to_string().contains("contextPruning"), "{wrong}: {error}");
            assert!(error.hint_text().is_some());
        }
    }

    #[test]
    fn invalid_values_are_refused_in_any_mode() {
        for (keys, words) in [
            ("softTrimRatio: 1.1", "softTrimRatio': expected a number from 0 to 1 (value: 1.1)"),
            ("hardClearRatio: -1", "hardClearRatio': expected a number from 0 to 1 (value: -1)"),
            ("softTrimRatio: 0.6", "at most hardClearRatio, which is 0.5 (value: 0.6)"),
            ("hardClearRatio: 0.2", "softTrimRatio"),
            ("mode: 'of'", "mode': expected off, cache-ttl or turn-age (value: \"of\")"),
            ("ttl: 'soon'", "invalid duration 'soon'"),
            ("ttl: -5", "invalid duration: -5 minutes"),
            ("ttl: 1e300", "a duration of at most a year"),
            ("ttl: '500d'", "a duration of at most a year (value: 500d)"),
            ("tools: { allow: ['read['] }", "invalid tool pattern 'read['"),
            ("tools: { deny: ['{a'] }", "contextPruning.tools.deny"),
            ("tools: { deny: 'bash' }", "tools.deny': expected a list"),
            ("tools: { deny: [7] }", "tools.deny[0]': expected text"),
            ("hardClear: { placeholder: ' ' }", "hardClear.placeholder': expected some text"),
        ] {
            let text = format!("{{ agents: {{ defaults: {{ contextPruning: {{ {keys} }} }} }} }}");
            let error = ctx_config::Config::parse(&text).unwrap_err();
            assert!(error.to_string().contains(words), "{keys}: {error}");
            assert!(error.hint_text().is_some(), "{keys}");
        }
    }
}
