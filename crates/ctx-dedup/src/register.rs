//! Registers the layer.

use ctx_config::{ConfigSection, Section};
use ctx_core::{Layer, Result};
use ctx_engine_registry::{BuildContext, LayerRegistration};

use crate::{Config, Dedup, Mode};

impl Section for Config {
    const PATH: &'static str = "agents.defaults.contextDedup";
}

fn build(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let config: Config = context.config.section()?;
    Ok((config.mode == Mode::On).then(|| Box::new(Dedup::new(config)) as Box<dyn Layer>))
}

ctx_config::inventory::submit! { ConfigSection::of::<Config>(env!("CARGO_PKG_NAME")) }
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: Dedup::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 600,
        about: "points from repeated lines of tool results to the result that has them; off by default",
        build,
    }
}
