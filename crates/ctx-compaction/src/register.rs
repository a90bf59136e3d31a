//! Registers the layer.

use ctx_config::{ConfigSection, RunningConfig, Section};
use ctx_core::{Layer, Result};
use ctx_engine_registry::{BuildContext, LayerRegistration};

use crate::{Compaction, Config, HardPrune};

const THEIR_RATIO: &str = "agents.running.memory_compact_ratio";
const THEIR_RESERVE_RATIO: &str = "agents.running.memory_reserve_ratio";
const OWN_KEEP: &str = "agents.defaults.compaction.keepRecentTokens";
const OWN_RATIO: &str = "agents.defaults.compaction.triggerRatio";
const OWN_RESERVES: [&str; 2] =
    ["agents.defaults.compaction.reserveTokens", "agents.defaults.compaction.reserveTokensFloor"];

impl Section for Config {
    const PATH: &'static str = "agents.defaults.compaction";
}

impl Config {
    /// Resolves the section. For the compaction threshold, the section's explicit keys win over
    /// `agents.running.memory_compact_ratio`, which applies where the profile or the user sets it,
    /// and that wins over the profile's ratio.
    ///
    /// # Errors
    ///
    /// As [`ctx_config::Config::section`].
    pub fn resolve(config: &ctx_config::Config) -> Result<Self> {
        let mut section: Self = config.section()?;
        if config.is_explicit(OWN_RATIO) {
            return Ok(section);
        }
        if OWN_RESERVES.iter().any(|key| config.is_explicit(key)) {
            section.trigger_ratio = None;
        } else if config.is_set(THEIR_RATIO) {
            section.trigger_ratio = Some(config.section::<RunningConfig>()?.memory_compact_ratio);
        }
        Ok(section)
    }
}

/// Resolves the section for a window: `agents.running.memory_reserve_ratio` sets how much of it
/// stays verbatim, under the same rule as the threshold's ratio.
fn resolve(context: &BuildContext<'_>) -> Result<Config> {
    let mut section = Config::resolve(context.config)?;
    let config = context.config;
    if config.is_set(THEIR_RESERVE_RATIO) && !config.is_explicit(OWN_KEEP) {
        let ratio = config.section::<RunningConfig>()?.memory_reserve_ratio;
        section.keep_recent_tokens = context.window.tokens.scale(ratio).0;
    }
    Ok(section)
}

fn build_compaction(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let config = resolve(context)?;
    let models = context.services.summary_models.clone();
    Ok(Some(Box::new(Compaction::new(config, models))))
}

fn build_hard_prune(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let config = Config::resolve(context.config)?;
    Ok(config.enabled.then(|| Box::new(HardPrune::new(&config)) as Box<dyn Layer>))
}

ctx_config::inventory::submit! { ConfigSection::of::<Config>(env!("CARGO_PKG_NAME")) }
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: Compaction::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 490,
        about: "replaces old history by a verified summary",
        build: build_compaction,
    }
}
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: HardPrune::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 500,
        about: "keeps the newest history within a share of the window",
        build: build_hard_prune,
    }
}

#[cfg(test)]
mod tests {
    use ctx_core::Tokens;

    use super::*;

    #[test]
    fn shares_outside_their_range_are_refused() {
        let parse = |keys: &str| {
            let text = format!("{{ agents: {{ defaults: {{ compaction: {{ {keys} }} }} }} }}");
            ctx_config::Config::parse(&text)
        };
        for (keys, words) in [
            (
                "maxHistoryShare: 5",
                "maxHistoryShare': expected a number from 0.1 to 0.9 (value: 5)",
            ),
            ("maxHistoryShare: 0.05", "maxHistoryShare"),
            ("triggerRatio: 0", "triggerRatio': expected a number from 0.1 to 1 (value: 0)"),
            ("triggerRatio: 1.1", "triggerRatio"),
            ("maxSpendUsd: -1", "maxSpendUsd"),
            ("targetRatio: 1", "targetRatio"),
            ("identifierPolicy: 'maybe'", "identifierPolicy"),
            ("strategy: 'magic'", "strategy"),
            ("emergency: { targetRatio: 0 }", "emergency.targetRatio"),
            ("reserveTokens: -1", "reserveTokens': expected a whole number from 0 to 4294967295"),
            ("memoryFlush: true", "memoryFlush': expected an object (value: true)"),
        ] {
            let error = parse(keys).unwrap_err();
            assert!(error.to_string().contains(words), "{keys}: {error}");
            assert!(error.hint_text().is_some());
        }
        assert!(parse("maxHistoryShare: 0.9, triggerRatio: 1").is_ok());
        assert!(parse("triggerRatio: null").is_ok());
    }

    #[test]
    fn explicit_keys_win_over_the_profiles_ratio() {
        let reserve = |text: &str| {
            let config = ctx_config::Config::parse(text).unwrap();
            Config::resolve(&config).unwrap().reserve(Tokens(100_000)).0
        };
        assert_eq!(reserve("{}"), 20_000);
        assert_eq!(reserve("{ profile: 'copaw' }"), 25_000);
        assert_eq!(reserve("{ agents: { running: { memory_compact_ratio: 0.9 } } }"), 10_000);
        let own = "agents: { defaults: { compaction: { reserveTokens: 22000 } } }";
        assert_eq!(reserve(&format!("{{ profile: 'ponybunny', {own} }}")), 22_000);
        assert_eq!(reserve(&format!("{{ profile: 'copaw', {own} }}")), 22_000);
        assert_eq!(reserve("{ profile: 'ponybunny' }"), 20_000);
    }
}
