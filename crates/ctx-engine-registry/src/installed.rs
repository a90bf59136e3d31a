//! What is installed, beside what is linked.

use ctx_core::{ErrorKind, Result};

use crate::find::{Found, Listed, Search};
use crate::registry::EngineState;
use crate::{Config, EngineEntry, Plugins, Registry, Slot, Trust};

impl Registry {
    /// Looks for engines that are not linked in these places instead.
    #[must_use]
    pub fn with_search(mut self, search: Search) -> Self {
        self.search = search;
        self
    }

    /// Where engines are looked for that are not linked.
    #[must_use]
    pub fn search(&self) -> &Search {
        &self.search
    }

    /// The installed engine of that id, for the slot `contextEngine`. One that is linked is not
    /// looked for: it comes first.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::NotFound`], with the known ones; else why it is refused.
    pub fn find_engine(&self, id: &str) -> Result<Found> {
        self.search.find(id).map_err(|error| match error.kind() {
            // A file that is missing is said of the engine that lacks it.
            ErrorKind::NotFound if error.context().is_empty() => self.unknown_engine(id),
            ErrorKind::InvalidInput if crate::EngineName::new(id).is_err() => {
                self.unknown_engine(id)
            }
            _ => error,
        })
    }

    pub(crate) fn check_installed(&self, id: &str) -> Result<()> {
        self.find_engine(id).map(drop)
    }

    /// What is installed, but for engines that a linked one of the same id comes before.
    pub(crate) fn installed(&self, config: &Config, selected: &str) -> Result<Vec<EngineEntry>> {
        let plugins: Plugins = config.section()?;
        let listed = self.search.list().engines.into_iter();
        let unlinked = listed.filter(|engine| self.linked(engine.name.as_str()).is_none());
        let listed = unlinked.map(|engine| {
            let trust = self.trust(&plugins.engine(engine.name.as_str()));
            entry(engine, trust, selected)
        });
        Ok(listed.collect())
    }
}

fn entry(listed: Listed, trust: Trust, selected: &str) -> EngineEntry {
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
            entry.carrier = found.carried_by(trust).name().to_owned();
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

    /// A registry that finds a script of that name.
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
    fn nothing_that_is_installed_takes_the_place_of_what_is_linked() {
        let (registry, _folder) = with_script(crate::DEFAULT_ENGINE);
        let list = registry.engine_list(&Config::default()).unwrap();
        let carriers: Vec<_> =
            list.iter().filter(|e| e.id == crate::DEFAULT_ENGINE).map(|e| &e.carrier).collect();
        assert_eq!(carriers, ["builtin"]);
    }

    #[test]
    fn an_engine_that_an_agent_or_a_model_names_has_to_be_there() {
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
