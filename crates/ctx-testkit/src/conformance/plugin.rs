//! Starts engines that are not built in, for the suite.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use ctx_config::Config;
use ctx_core::{
    AssembleRequest, Assembled, CompactRequest, CompactResult, ContextEngine, EngineInfo, Error,
    ErrorKind, IngestRequest, IngestResult, Result,
};
use ctx_engine_registry::find::{Package, Search, TransportKind};
use ctx_engine_registry::{
    BuildContext, CompactionBy, DEFAULT_ENGINE, EngineConfig, EngineRegistration, LayeredEngine,
    OnFailure, Registry, Slot, Trust,
};
use serde_json::json;
use tempfile::TempDir;

use super::Start;

/// The deadline of a compaction here, in milliseconds: shorter than the deadline of a case, so that
/// the case reports which call did not end.
const COMPACT_MS: u64 = 60_000;

/// An engine that is not built in: a library, a program or a script, with or without a manifest.
///
/// It is supervised as in any host, but strictly: a failure is an error, without a fallback.
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
#[must_use]
pub struct Plugin {
    id: String,
    search: Search,
    settings: EngineConfig,
    engine_host: Option<PathBuf>,
    /// The folder with a copy of the engine.
    copy: Option<Arc<TempDir>>,
}

impl Plugin {
    /// Reads the engine from a file, or from a folder with a manifest. It is copied, so that later
    /// changes of the file have no effect. `name` is the name of the engine in a file; `None`
    /// derives it from the file name.
    ///
    /// # Errors
    ///
    /// Why it is rejected, before any of its code runs; `Io` if it cannot be copied.
    pub fn read(path: &Path, name: Option<&str>) -> Result<Self> {
        let package = Package::read(path, name)?;
        let copy = tempfile::Builder::new().prefix("ctx-check-").tempdir().map_err(|error| {
            Error::new(ErrorKind::Io, "no folder for a copy of the engine")
                .hint("set TMPDIR to a writable folder")
                .source(error)
        })?;
        package.write_into(copy.path())?;
        let search = Search::default().with_list(copy.path().as_os_str());
        let plugin = Self::installed(package.manifest.name.as_str(), search)?;
        Ok(Self { copy: Some(Arc::new(copy)), ..plugin })
    }

    /// Searches these places for the engine of that name.
    ///
    /// # Errors
    ///
    /// `NotFound` if no place contains it; otherwise why the first match is rejected.
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

    /// Applies the settings of a configuration, with two exceptions required by the suite: failures
    /// are errors, and the engine is granted the lease on compaction if it requests it.
    pub fn with_settings(mut self, settings: EngineConfig) -> Self {
        self.settings = settings;
        self
    }

    /// Sets where a library runs. Default: in a process of the engine host, if there is one.
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.settings.trust = Some(trust);
        self
    }

    /// Sets the `ctx` program that runs a library in its own process. Default: as in
    /// [`Registry::with_engine_host`].
    pub fn with_engine_host(mut self, program: impl Into<PathBuf>) -> Self {
        self.engine_host = Some(program.into());
        self
    }

    /// Returns its id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns the folder with its copy, if it was [read](Plugin::read). It is removed when this
    /// and everything created from it is dropped.
    pub fn copy(&self) -> Option<&Path> {
        self.copy.as_deref().map(TempDir::path)
    }

    /// Returns its transport.
    ///
    /// # Errors
    ///
    /// Why it is rejected.
    pub fn transport(&self, trust: Trust) -> Result<TransportKind> {
        Ok(self.search.find(&self.id)?.transport(trust))
    }

    /// Creates an instance, for [`check`](super::check). None of its code runs yet.
    ///
    /// # Errors
    ///
    /// Why it is rejected.
    pub fn start(&self, start: &Start) -> Result<Arc<dyn ContextEngine>> {
        let mut settings = self.settings.clone();
        settings.on_failure = Some(OnFailure::Strict);
        settings.compaction = CompactionBy::Engine;
        settings.deadlines_ms.compact = settings.deadlines_ms.compact.min(COMPACT_MS);
        let mut row = json!(settings);
        // Serialization hides the secrets of the configuration.
        row["config"] = settings.config.expose().clone();
        let config = json!({ "plugins": { "engines": { (&*self.id): row } } });
        let config = Config::from_value(config)?;
        let layers = Registry::collect()?.layers().to_vec();
        let registry = Registry::from_parts(layers, [FALLBACK])?.with_search(self.search.clone());
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

/// The fallback of a supervised engine in the suite. Hosts use `legacy`, which would compact for an
/// engine that does not.
const FALLBACK: EngineRegistration = EngineRegistration {
    slot: Slot::ContextEngine,
    id: DEFAULT_ENGINE,
    source: env!("CARGO_PKG_NAME"),
    about: "the host's layers, for engines that only add to them",
    build: |context| {
        let layers = context.registry.build_layers(context)?;
        Ok(Arc::new(Fallback(LayeredEngine::new(DEFAULT_ENGINE, "Layered engine", layers))))
    },
};

struct Fallback(LayeredEngine);

#[async_trait]
impl ContextEngine for Fallback {
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
        Err(error.hint("compact the messages before the newest turns, or do not request the lease"))
    }
}
