//! Registers the guard.

use ctx_config::{ConfigSection, RunningConfig, Section};
use ctx_core::{Layer, Result};
use ctx_engine_registry::{BuildContext, LayerRegistration};

use crate::{Config, ToolGuard};

const ENABLED: &str = "agents.running.enable_tool_result_compact";
const KEEP_N: &str = "agents.running.tool_result_compact_keep_n";
const OWN_ENABLED: &str = "agents.defaults.toolGuard.offload.enabled";
const OWN_KEEP_N: &str = "agents.defaults.toolGuard.offload.keepN";

impl Section for Config {
    const PATH: &'static str = "agents.defaults.toolGuard";
}

impl Config {
    /// Resolves the section. CoPaw's keys of `agents.running` apply if the profile or the user sets
    /// them, unless the user sets the section's own keys.
    ///
    /// # Errors
    ///
    /// As [`ctx_config::Config::section`].
    pub fn resolve(config: &ctx_config::Config) -> Result<Self> {
        let mut section: Self = config.section()?;
        let running: RunningConfig = config.section()?;
        let counts = |theirs, own| config.is_set(theirs) && !config.is_explicit(own);
        if counts(ENABLED, OWN_ENABLED) {
            section.offload.enabled = running.enable_tool_result_compact;
        }
        if counts(KEEP_N, OWN_KEEP_N) {
            section.offload.keep_n = running.tool_result_compact_keep_n;
        }
        Ok(section)
    }
}

fn build(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let config = Config::resolve(context.config)?;
    Ok(Some(Box::new(ToolGuard::new(config).with_services(context.services))))
}

ctx_config::inventory::submit! { ConfigSection::of::<Config>(env!("CARGO_PKG_NAME")) }
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: ToolGuard::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 200,
        about: "bounds each tool result, and all of them together",
        build,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copaws_keys_switch_the_offload() {
        let offload = |text| {
            let config = ctx_config::Config::parse(text).unwrap();
            let offload = Config::resolve(&config).unwrap().offload;
            (offload.enabled, offload.keep_n)
        };
        assert_eq!(offload("{}"), (false, 5));
        assert_eq!(offload(r#"{ profile: "copaw" }"#), (false, 5));
        let theirs = r#"{ agents: { running: { enable_tool_result_compact: true,
            tool_result_compact_keep_n: 3 } } }"#;
        assert_eq!(offload(theirs), (true, 3));
        let both = r#"{ agents: { running: { enable_tool_result_compact: true },
            defaults: { toolGuard: { offload: { enabled: false, keepN: 2 } } } } }"#;
        assert_eq!(offload(both), (false, 2));
    }

    #[test]
    fn the_section_is_read_and_checked() {
        let parse = |keys: &str| {
            let text = format!("{{ agents: {{ defaults: {{ toolGuard: {{ {keys} }} }} }} }}");
            ctx_config::Config::parse(&text).and_then(|c| Config::resolve(&c))
        };
        let config = parse("maxResultChars: 8000, offload: { thresholdChars: 500 }").unwrap();
        assert_eq!(config.max_result_chars, Some(ctx_core::Chars(8_000)));
        assert_eq!(config.offload.threshold_chars, ctx_core::Chars(500));
        let error = parse("maxResultChar: 8000").unwrap_err();
        assert!(error.to_string().contains("maxResultChar"), "{error}");
        for share in ["maxContextShare", "preemptiveShare", "aggregateShare"] {
            for value in ["\"half\"", "-0.1", "1.5", "null"] {
                let error = parse(&format!("{share}: {value}")).unwrap_err();
                let words = format!("{share}': expected a number from 0 to 1 (value: {value})");
                assert!(error.to_string().contains(&words), "{error}");
            }
            assert!(parse(&format!("{share}: 0")).is_ok() && parse(&format!("{share}: 1")).is_ok());
        }
        let error = parse("maxResultChars: 1.5").unwrap_err();
        assert!(error.to_string().contains("expected a whole number from 0"), "{error}");
    }
}
