//! Engines that are not built in, as the suite starts them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use ctx_core::{
    AssembleRequest, Assembled, CompactRequest, CompactResult, ContextEngine, EngineInfo, Error,
    ErrorKind, IngestRequest, IngestResult, Result,
};
use ctx_engine_registry::find::{CarriedBy, Package, Search};
use ctx_engine_registry::{
    BuildContext, CompactionBy, Config, DEFAULT_ENGINE, EngineConfig, EngineRegistration,
    LayeredEngine, OnFailure, Registry, Slot, Trust,
};
use serde_json::json;
use tempfile::TempDir;

use super::Start;

/// What a compaction may take here, in milliseconds: less than a case, so that the case says which
/// call it was that did not end.
const COMPACT_MS: u64 = 60_000;

/// An engine that is not built in: a library, a program or a script, with or without a manifest.
///
/// It is supervised as in any host, but strictly: what it does wrong is an error, and no other
/// engine serves in its place.
///
/// ```no_run
/// use std::path::Path;
/// use ctx_testkit::conformance::{Level, Options, Plugin, check};
///
/// let plugin = Plugin::read(Path::new("target/release/libmine.so"), None)?;
/// let plugin = plugin.with_engine_host("/usr/local/bin/ctx");
/// let report = check(move |start| plugin.start(start), &Options::new(Level::Core));
/// assert!(report.is_passed(), "{report}");
/// # Ok::<(), ctx_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Plugin {
    id: String,
    search: Search,
    settings: EngineConfig,
    engine_host: Option<PathBuf>,
    /// A copy of it, for as long as it is needed.
    copy: Option<Arc<TempDir>>,
}

impl Plugin {
    /// The engine in a file, or in a folder with a manifest. It is copied: what is checked is what
    /// stands there now. `name` is for a file; without one, it is made of the file's own.
    ///
    /// # Errors
    ///
    /// Why it is refused, before any of its code runs; `Io` if it cannot be copied.
    pub fn read(path: &Path, name: Option<&str>) -> Result<Self> {
        let package = Package::read(path, name)?;
        let copy = tempfile::Builder::new().prefix("ctx-check-").tempdir().map_err(|error| {
            Error::new(ErrorKind::Io, "no folder for a copy of the engine")
                .hint("set TMPDIR to a folder that can be written to")
                .source(error)
        })?;
        package.write_into(copy.path())?;
        let search = Search::default().with_list(copy.path().as_os_str());
        let plugin = Self::installed(package.manifest.name.as_str(), search)?;
        Ok(Self { copy: Some(Arc::new(copy)), ..plugin })
    }

    /// The engine of that name in these places.
    ///
    /// # Errors
    ///
    /// `NotFound` if none has it, else why the first that has it is refused.
    pub fn installed(name: &str, search: Search) -> Result<Self> {
        let found = search.find(name)?;
        Ok(Self {
            id: found.manifest.name.as_str().to_owned(),
            search,
            settings: EngineConfig::default(),
            engine_host: None,
            copy: None,
        })
    }

    /// Treats it as a configuration says, but for what the suite must have otherwise: failures are
    /// errors, and compaction is the engine's if it asks for it.
    #[must_use]
    pub fn with_settings(mut self, settings: EngineConfig) -> Self {
        self.settings = settings;
        self
    }

    /// Gives this configuration to the engine.
    #[must_use]
    pub fn with_config(mut self, config: serde_json::Value) -> Self {
        self.settings.config = config.into();
        self
    }

    /// The `ctx` program that runs a library in a process of its own. Default: the program that is
    /// running, if that is `ctx`; else the one in `PATH`.
    #[must_use]
    pub fn with_engine_host(mut self, program: impl Into<PathBuf>) -> Self {
        self.engine_host = Some(program.into());
        self
    }

    /// The id it is selected by.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The folder with a copy of it, if it was [read](Plugin::read). It is removed with the last of
    /// what is made of this.
    #[must_use]
    pub fn copy(&self) -> Option<&Path> {
        self.copy.as_deref().map(TempDir::path)
    }

    /// How it is carried.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    pub fn carried_by(&self, trust: Trust) -> Result<CarriedBy> {
        Ok(self.search.find(&self.id)?.carried_by(trust))
    }

    /// An instance, as [`check`](super::check) asks for it. None of its code runs yet.
    ///
    /// # Errors
    ///
    /// Why it is refused.
    pub fn start(&self, start: &Start) -> Result<Arc<dyn ContextEngine>> {
        let mut settings = self.settings.clone();
        settings.on_failure = Some(OnFailure::Strict);
        settings.compaction = CompactionBy::Engine;
        settings.deadlines_ms.compact = settings.deadlines_ms.compact.min(COMPACT_MS);
        let mut row = json!(settings);
        // Written out it would be without its secrets.
        row["config"] = settings.config.expose().clone();
        let config = json!({ "plugins": { "engines": { (&*self.id): row } } });
        let config = Config::from_value(config)?;
        let layers = Registry::collect()?.layers().to_vec();
        let registry = Registry::from_parts(layers, [STAND_IN])?.with_search(self.search.clone());
        let registry = match &self.engine_host {
            Some(program) => registry.with_engine_host(program),
            None => registry,
        };
        let context = BuildContext {
            config: &config,
            services: &start.services,
            window: start.window.into(),
            registry: &registry,
        };
        Ok(Arc::new(registry.build_installed(&self.id, &context)?))
    }
}

/// What stands behind a supervised engine here. Hosts have `legacy` there, which would compact for
/// an engine that does not.
const STAND_IN: EngineRegistration = EngineRegistration {
    slot: Slot::ContextEngine,
    id: DEFAULT_ENGINE,
    source: env!("CARGO_PKG_NAME"),
    about: "the host's layers, for engines that only add to them",
    build: |context| {
        let layers = context.registry.build_layers(context)?;
        Ok(Arc::new(StandIn(LayeredEngine::new(DEFAULT_ENGINE, "Layered engine", layers))))
    },
};

struct StandIn(LayeredEngine);

#[async_trait]
impl ContextEngine for StandIn {
    fn info(&self) -> &EngineInfo {
        self.0.info()
    }

    async fn ingest(&self, request: IngestRequest) -> Result<IngestResult> {
        self.0.ingest(request).await
    }

    async fn assemble(&self, request: AssembleRequest) -> Result<Assembled> {
        self.0.assemble(request).await
    }

    async fn compact(&self, _: CompactRequest) -> Result<CompactResult> {
        let error = Error::new(ErrorKind::Contract, "the engine left this compaction to its host");
        Err(error.hint("compact what lies before the newest turns, or do not ask for the lease"))
    }
}
