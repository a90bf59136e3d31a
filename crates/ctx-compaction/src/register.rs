//! Makes the layer known to the registry.

use ctx_core::{Layer, Profile, Result};
use ctx_engine_registry::{BuildContext, ConfigSection, LayerRegistration, Running, Section};

use crate::{Config, HardPrune};

impl Section for Config {
    const PATH: &'static str = "agents.defaults.compaction";
    fn for_profile(profile: Profile) -> Self {
        Config::for_profile(profile)
    }
}

impl Config {
    /// The section in force: under `copaw` the trigger is that of `agents.running`.
    ///
    /// # Errors
    ///
    /// As [`ctx_engine_registry::Config::section`].
    pub fn resolve(config: &ctx_engine_registry::Config) -> Result<Self> {
        let mut section: Self = config.section()?;
        if config.profile() == Profile::Copaw
            && !config.is_explicit("agents.defaults.compaction.triggerRatio")
        {
            section.trigger_ratio = Some(config.section::<Running>()?.memory_compact_ratio);
        }
        Ok(section)
    }
}

fn build(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let config = Config::resolve(context.config)?;
    Ok(config.enabled.then(|| Box::new(HardPrune::new(&config)) as Box<dyn Layer>))
}

ctx_engine_registry::inventory::submit! { ConfigSection::of::<Config>(env!("CARGO_PKG_NAME")) }
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: HardPrune::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 500,
        about: "keeps the newest history within a share of the window",
        build,
    }
}
