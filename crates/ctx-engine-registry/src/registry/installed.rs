//! Installed engines, in addition to linked ones.

use std::path::PathBuf;
use std::sync::Arc;

use ctx_core::{ContextEngine, Error, ErrorKind, Result};

use crate::find::{EngineFile, FoundEngine, ListedEngine, Search, TransportKind};
use crate::foreign::transport::{HostServices, own_engine_host};
use crate::foreign::{EngineSpec, InstalledEngine, SupervisedEngine};
use crate::{DEFAULT_ENGINE, EngineConfig, EngineName, Plugins, Slot, Trust};
use ctx_config::{Config, SystemRules};

use super::{BuildContext, EngineEntry, EngineState, Registry};

const MIB: u64 = 1 << 20;

impl Registry {
    /// Replaces the places searched for engines that are not linked.
    pub fn with_search(mut self, search: Search) -> Self {
        self.search = search;
        self
    }

    /// Returns the places searched for engines that are not linked.
    pub fn search(&self) -> &Search {
        &self.search
    }

    /// Finds the installed engine of that id, for the slot `contextEngine`. Linked engines have
    /// precedence and are not searched for.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], with the known ids; otherwise why it is rejected.
    pub fn find_engine(&self, id: &str) -> Result<FoundEngine> {
        self.search.find(id).map_err(|error| match error.kind() {
            // A missing file is an error of the engine that needs it.
            ErrorKind::NotFound if error.context().is_empty() => self.unknown_engine(id),
            ErrorKind::InvalidInput if EngineName::new(id).is_err() => self.unknown_engine(id),
            _ => error,
        })
    }

    pub(super) fn check_installed(&self, id: &str) -> Result<()> {
        self.find_engine(id).map(drop)
    }

    /// Lists the installed engines, except those shadowed by a linked one of the same id.
    pub(super) fn installed(&self, config: &Config, selected: &str) -> Result<Vec<EngineEntry>> {
        let plugins: Plugins = config.section()?;
        let listed = self.search.list().engines.into_iter();
        let unlinked = listed.filter(|engine| self.linked(engine.name.as_str()).is_none());
        let listed = unlinked.map(|engine| {
            let trust = self.trust(&plugins.engine(engine.name.as_str()));
            entry(engine, trust, selected)
        });
        Ok(listed.collect())
    }

    /// Runs libraries in processes of this program, which is `ctx`, or another that calls
    /// [`host_library`](crate::foreign::transport::host_library) when it is run with
    /// `engine-host PATH`. Default: the current program, if it
    /// [declared that](crate::foreign::transport::hosts_libraries); otherwise libraries run inside
    /// the current program.
    pub fn with_engine_host(mut self, program: impl Into<PathBuf>) -> Self {
        self.engine_host = Some(program.into());
        self
    }

    fn engine_host(&self) -> Option<PathBuf> {
        self.engine_host.clone().or_else(own_engine_host)
    }

    /// Returns where a library with these settings runs.
    pub fn trust(&self, settings: &EngineConfig) -> Trust {
        settings.trust.unwrap_or_else(|| match self.engine_host() {
            Some(_) => Trust::Process,
            None => Trust::InProcess,
        })
    }

    /// Builds a supervised installed engine. None of its code runs before its first call.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`] if it is not installed; if it is, why it is rejected.
    /// [`ErrorKind::Config`] for a base that is not built in.
    pub fn build_installed(
        &self,
        id: &str,
        context: &BuildContext<'_>,
    ) -> Result<SupervisedEngine> {
        let found = self.find_engine(id)?;
        let plugins: Plugins = context.config.section()?;
        let config = plugins.engine(id);
        let spec = EngineSpec {
            id: id.to_owned(),
            version: found.manifest.version.clone(),
            sha256: found.manifest.file().ok().map(|file| file.sha256.clone()),
            on_failure: plugins.on_failure(id),
            compaction: config.compaction,
            encoding: config.encoding,
            config: config.config.clone(),
            deadlines: config.deadlines_ms,
        };
        let fallback = self.build_linked(DEFAULT_ENGINE, context)?;
        let base = match config.base.as_ref().or(found.manifest.base.as_ref()) {
            None => None,
            Some(base) if base == DEFAULT_ENGINE => Some(fallback.clone()),
            Some(base) => Some(self.build_linked(base, context).map_err(|error| {
                Error::new(ErrorKind::Config, "the base of an engine must be built in")
                    .with("engine", id)
                    .with("base", base)
                    .hint("set plugins.engines.<id>.base to 'legacy', or remove it")
                    .source(error)
            })?),
        };
        let (transport, host) = (found.transport(self.trust(&config)), self.engine_host());
        if host.is_none()
            && transport == TransportKind::Process
            && let EngineFile::Library(library) = &found.file
        {
            let what = "missing engine host: the library cannot run in its own process";
            return Err(Error::new(ErrorKind::Config, what)
                .with("engine", id)
                .with("library", library.display())
                .hint(
                    "set one with Registry::with_engine_host, or remove \
                     plugins.engines.<id>.trust: the library then runs inside this program",
                ));
        }
        let installed = InstalledEngine {
            id: id.to_owned(),
            transport,
            found: Arc::new(found),
            services: host_services(id, context)?,
            memory: u64::from(config.memory_limit_mb).saturating_mul(MIB),
            host,
        };
        let supervised = SupervisedEngine::new(spec, Box::new(installed), fallback)
            .with_layers(self.memory_layers(context)?);
        Ok(match base {
            Some(base) => supervised.with_base(base),
            None => supervised,
        })
    }

    fn build_linked(&self, id: &str, context: &BuildContext<'_>) -> Result<Arc<dyn ContextEngine>> {
        let linked = self.linked(id).ok_or_else(|| self.unknown_engine(id))?;
        (linked.build)(context)
    }
}

fn host_services(id: &str, context: &BuildContext<'_>) -> Result<HostServices> {
    let counter = context.config.section::<SystemRules>()?.counter;
    let mut services = HostServices::new(id).with_counter(counter);
    if let Some(models) = &context.services.summary_models {
        services = services.with_models(models.clone());
    }
    if let Some(store) = &context.services.store {
        services = services.with_store(store.clone());
    }
    Ok(services)
}

fn entry(listed: ListedEngine, trust: Trust, selected: &str) -> EngineEntry {
    let id = listed.name.to_string();
    let mut entry = EngineEntry {
        selected: id == selected,
        slot: Slot::ContextEngine,
        source: listed.manifest_path.display().to_string(),
        carrier: "process".to_owned(),
        version: None,
        sha256: None,
        state: EngineState::Ok,
        reason: None,
        hint: None,
        about: String::new(),
        id,
    };
    match listed.found {
        Ok(found) => {
            entry.slot = found.manifest.slot;
            entry.selected &= entry.slot == Slot::ContextEngine;
            entry.carrier = found.transport(trust).name().to_owned();
            entry.sha256 = found.manifest.file().ok().map(|file| file.sha256.clone());
            entry.version = Some(found.manifest.version);
            entry.about = found.manifest.about;
        }
        Err(error) => {
            entry.state = EngineState::Refused;
            entry.hint = error.hint_text().map(str::to_owned);
            entry.reason = Some(error.to_string());
        }
    }
    entry
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::find::sha256_of;

    /// Returns a registry that finds a script of that name.
    fn with_script(name: &str) -> (Registry, tempfile::TempDir) {
        let folder = tempfile::TempDir::new().unwrap();
        let script = b"#!/bin/sh\n";
        let manifest = format!(
            "manifest_version = 1\nname = \"{name}\"\nversion = \"0.3.0\"\n\
             contract = [\"1.0\"]\n[platform.any]\ncommand = \"run\"\nsha256 = \"{}\"\n",
            sha256_of(script)
        );
        let put = |file: &str, bytes: &[u8], mode| {
            fs::write(folder.path().join(file), bytes).unwrap();
            let rights = Permissions::from_mode(mode);
            fs::set_permissions(folder.path().join(file), rights).unwrap();
        };
        put("run", script, 0o755);
        put(&format!("{name}.toml"), manifest.as_bytes(), 0o644);
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        let search = Search::default().with_list(folder.path().as_os_str());
        (Registry::collect().unwrap().with_search(search), folder)
    }

    #[test]
    fn an_installed_engine_can_be_selected_and_is_listed() {
        let (registry, folder) = with_script("demo");
        let config = Config::parse("{ plugins: { slots: { contextEngine: 'demo' } } }").unwrap();
        registry.check(&config).unwrap();
        let list = registry.engine_list(&config).unwrap();
        let demo = list.iter().find(|e| e.id == "demo").unwrap();
        assert_eq!((demo.carrier.as_str(), demo.state), ("process", EngineState::Ok));
        assert_eq!((demo.version.as_deref(), demo.selected), (Some("0.3.0"), true));
        fs::write(folder.path().join("run"), "#!/bin/false\n").unwrap();
        let error = registry.check(&config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(error.to_string().contains("plugins.slots.contextEngine"), "{error}");
        let list = registry.engine_list(&config).unwrap();
        let demo = list.iter().find(|e| e.id == "demo").unwrap();
        assert_eq!(demo.state, EngineState::Refused);
        assert!(demo.reason.is_some() && demo.hint.is_some());
    }

    #[test]
    fn an_installed_engine_cannot_replace_a_linked_one() {
        let (registry, _folder) = with_script(crate::DEFAULT_ENGINE);
        let list = registry.engine_list(&Config::default()).unwrap();
        let carriers: Vec<_> =
            list.iter().filter(|e| e.id == crate::DEFAULT_ENGINE).map(|e| &e.carrier).collect();
        assert_eq!(carriers, ["builtin"]);
    }

    #[test]
    fn an_engine_selected_for_an_agent_or_model_must_exist() {
        let (registry, _folder) = with_script("demo");
        for (text, key) in [
            ("agents: { list: [{ id: 'a', contextEngine: 'no' }] }", "agents.list[0]"),
            (
                "models: { providers: { p: { models: [{ id: 'm', contextEngine: '../x' }] } } }",
                "models.providers.p.models[0]",
            ),
        ] {
            let error = registry.check(&Config::parse(&format!("{{ {text} }}")).unwrap());
            let error = error.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            assert!(error.to_string().contains(key), "{error}");
            assert!(error.to_string().contains("legacy, demo"), "{error}");
        }
    }
}
