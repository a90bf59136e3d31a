//! Registers the layer and the sections of its configuration.

use ctx_config::{ConfigSection, Section};
use ctx_core::{Layer, Result};
use ctx_engine_registry::{BuildContext, LayerRegistration};

use crate::{Config, WorkspaceAccess, WorkspaceFolder, WorkspaceLayer};

impl Section for WorkspaceFolder {
    const PATH: &'static str = "agents.defaults.workspace";
    fn check(&self) -> Result<()> {
        WorkspaceFolder::check(self)
    }
}

impl Section for WorkspaceAccess {
    const PATH: &'static str = "agents.defaults.workspaceAccess";
}

impl Section for Config {
    const PATH: &'static str = "agents.defaults.workspaceContext";
    fn check(&self) -> Result<()> {
        Config::check(self)
    }
}

fn build(context: &BuildContext<'_>) -> Result<Option<Box<dyn Layer>>> {
    let folder: WorkspaceFolder = context.config.section()?;
    let config: Config = context.config.section()?;
    let services = context.services;
    let search = services.workspace.clone().filter(|_| folder.0.is_some());
    let layer = |search| WorkspaceLayer::new(config, search, services.memory.clone());
    Ok(search.map(|search| Box::new(layer(search)) as Box<dyn Layer>))
}

ctx_config::inventory::submit! { ConfigSection::of::<WorkspaceFolder>(env!("CARGO_PKG_NAME")) }
ctx_config::inventory::submit! { ConfigSection::of::<WorkspaceAccess>(env!("CARGO_PKG_NAME")) }
ctx_config::inventory::submit! { ConfigSection::of::<Config>(env!("CARGO_PKG_NAME")) }
ctx_engine_registry::inventory::submit! {
    LayerRegistration {
        id: WorkspaceLayer::ID,
        source: env!("CARGO_PKG_NAME"),
        order: 410,
        about: "includes workspace files that a message asks for; off by default",
        build,
    }
}
