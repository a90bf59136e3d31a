//! Engines of this workspace.

use std::sync::Arc;

use ctx_config::Config;
use ctx_core::{ContextEngine, Result};
use ctx_engine_registry::{BuildContext, Registry};
use ctx_testkit::conformance::{Level, Options, Start, check};

/// Links the layers, which are registered by being linked.
const _: &[&str] = ctx_layers::LINKED;

fn legacy(start: &Start) -> Result<Arc<dyn ContextEngine>> {
    let (config, registry) = (Config::default(), Registry::collect()?);
    registry.build_engine(
        Some("legacy"),
        &BuildContext {
            config: &config,
            services: &start.services,
            window: start.window.into(),
            registry: &registry,
        },
    )
}

#[test]
fn legacy_passes_the_whole_suite() {
    let report = check(legacy, &Options::new(Level::Full));
    assert!(report.is_passed(), "{report}");
    assert_eq!(report.engine.as_ref().map(|engine| &*engine.id), Some("legacy"));
    assert_eq!(report.count("skipped"), usize::from(!cfg!(target_os = "linux")), "{report}");
}
