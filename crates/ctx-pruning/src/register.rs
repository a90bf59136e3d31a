//! Makes the layer known to the registry.

use ctx_core::{Layer, Profile, Result};
use ctx_engine_registry::{BuildContext, ConfigSection, LayerRegistration, Section};

use crate::{Config, Mode, Pruning};

impl Section for Config {
    const PATH: &'static str = "agents.defaults.contextPruning";
    fn for_profile(profile: Profile) -> Self {
        Config::for_profile(profile)
    }
}

fn build(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let config: Config = context.config.section()?;
    if config.mode == Mode::Off {
        return Ok(None);
    }
    Ok(Some(Box::new(Pruning::new(config)?)))
}

ctx_engine_registry::inventory::submit! { ConfigSection::of::<Config>(env!("CARGO_PKG_NAME")) }
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
            ctx_engine_registry::Config::parse(&text)?.section::<Config>()
        };
        let config = parse(r#"mode: "turn-age", ttl: 90, tools: { deny: ["bash"] }"#).unwrap();
        assert_eq!((config.mode, config.ttl.to_string()), (Mode::TurnAge, "90m".to_owned()));
        assert_eq!(parse(r#"ttl: "1h""#).unwrap().ttl.to_string(), "1h");
        for wrong in ["ttl: \"soon\"", "ttl: true", "mode: \"on\"", "softTrim: { max: 1 }"] {
            let error = parse(wrong).unwrap_err();
            assert!(error.to_string().contains("contextPruning"), "{wrong}: {error}");
        }
    }
}
