//! How an engine fares, remembered for later.

use ctx_core::{ContextEngine, Result, Timestamp};
use ctx_session::engine_health::{EngineHealthFile, EngineTrouble, EngineTroubles};
use ctx_session::paths::Home;

/// Watches one engine, and keeps the [file](EngineHealthFile) in which other programs see how it
/// fared. While all is well nothing is written.
#[derive(Clone, Debug)]
pub struct EngineWatch {
    file: EngineHealthFile,
    /// Failures of this engine that the file knows of.
    noted: u64,
    /// Whether the file is known to say nothing of it.
    is_clear: bool,
}

impl EngineWatch {
    /// Over an engine that was not asked for anything yet.
    #[must_use]
    pub fn new(home: &Home) -> Self {
        Self { file: EngineHealthFile::of(home), noted: 0, is_clear: false }
    }

    /// Notes how the engine fares. One that is built in cannot fail apart from its host, and is not
    /// noted; nor is one that was not asked for a request or a compaction since it failed.
    ///
    /// # Errors
    ///
    /// As [`EngineHealthFile::failed`]. The work itself is none the worse for it.
    pub fn note(&mut self, engine: &dyn ContextEngine, now: Timestamp) -> Result<()> {
        let Some(health) = engine.health() else { return Ok(()) };
        if health.failing {
            let news = health.failures.saturating_sub(self.noted);
            if news > 0 {
                self.noted = health.failures;
                self.is_clear = false;
                self.file.failed(&health, news, now)?;
            }
        } else if health.answered > 0 && !self.is_clear {
            self.noted = health.failures;
            self.is_clear = true;
            self.file.forget(&health.id)?;
        }
        Ok(())
    }
}

/// The trouble with the engine of that id, if it is the one that is installed now. One that is built
/// in has none.
///
/// # Errors
///
/// Where it cannot be told which engines are installed.
#[cfg(feature = "plugins")]
pub fn engine_trouble(mut troubles: EngineTroubles, id: &str) -> Result<Option<EngineTrouble>> {
    let Some(trouble) = troubles.remove(id) else { return Ok(None) };
    let registry = ctx_engine_registry::Registry::collect()?;
    if registry.engines().any(|engine| engine.id == id) {
        return Ok(None);
    }
    let found = match registry.find_engine(id) {
        Ok(found) => found,
        Err(error) if error.kind() == ctx_core::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let sha256 = found.manifest.file().ok().map(|file| file.sha256.clone());
    Ok(Some(trouble).filter(|trouble| trouble.is_of(&sha256)))
}

/// The trouble with the engine of that id. All engines of this build are built in, and none has any.
///
/// # Errors
///
/// None.
#[cfg(not(feature = "plugins"))]
pub fn engine_trouble(_: EngineTroubles, _: &str) -> Result<Option<EngineTrouble>> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use ctx_core::{
        AssembleRequest, Assembled, CompactRequest, CompactResult, EngineFailure, EngineHealth,
        EngineInfo, EngineState, IngestRequest, IngestResult, LeaseState,
    };

    use super::*;

    /// An engine that does nothing but fare as it is told.
    struct Faring {
        info: EngineInfo,
        health: Mutex<EngineHealth>,
    }

    impl Faring {
        fn new() -> Self {
            let info = EngineInfo {
                id: "demo".into(),
                name: "Demo".into(),
                version: "1".into(),
                owns_compaction: false,
            };
            let health = EngineHealth {
                id: "demo".into(),
                carrier: "process".into(),
                version: "1".into(),
                sha256: None,
                state: EngineState::Ok,
                strikes: 0,
                lease: LeaseState::NotAsked,
                last_error: None,
                restarts: 0,
                answered: 0,
                failures: 0,
                failing: false,
                stand_in: Some("legacy".into()),
            };
            Self { info, health: Mutex::new(health) }
        }

        fn fares(&self, answered: u64, failures: u64, failing: bool) {
            let mut health = self.health.lock().unwrap();
            (health.answered, health.failures, health.failing) = (answered, failures, failing);
            health.last_error = Some(EngineFailure {
                verb: "assemble".into(),
                name: "crashed".into(),
                message: "it crashed".into(),
                at: Timestamp(1),
            });
        }
    }

    #[async_trait]
    impl ContextEngine for Faring {
        fn info(&self) -> &EngineInfo {
            &self.info
        }
        async fn ingest(&self, _: IngestRequest) -> Result<IngestResult> {
            Ok(IngestResult::default())
        }
        async fn assemble(&self, request: AssembleRequest) -> Result<Assembled> {
            Ok(Assembled { view: request.view, system_prompt_addition: None })
        }
        async fn compact(&self, _: CompactRequest) -> Result<CompactResult> {
            Ok(CompactResult::nothing("no"))
        }
        fn health(&self) -> Option<EngineHealth> {
            Some(self.health.lock().unwrap().clone())
        }
    }

    #[test]
    fn failures_are_noted_once_and_forgotten_when_the_engine_works() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home"));
        let file = EngineHealthFile::of(&home);
        let strikes = || file.read().unwrap().get("demo").map(|trouble| trouble.strikes);
        let engine = Faring::new();
        let mut watch = EngineWatch::new(&home);
        watch.note(&engine, Timestamp(1)).unwrap();
        assert!(!home.root().exists(), "it was not asked");
        for (fares, expected) in [
            ((0, 2, true), Some(2)),
            ((0, 2, true), Some(2)),
            ((4, 3, true), Some(3)),
            ((5, 3, false), None),
            ((6, 4, true), Some(1)),
        ] {
            engine.fares(fares.0, fares.1, fares.2);
            watch.note(&engine, Timestamp(2)).unwrap();
            assert_eq!(strikes(), expected, "{fares:?}");
        }
        // The next program knows nothing of what this one noted.
        let mut next = EngineWatch::new(&home);
        engine.fares(0, 0, false);
        next.note(&engine, Timestamp(3)).unwrap();
        assert_eq!(strikes(), Some(1), "it was not asked in this one");
        engine.fares(0, 1, true);
        next.note(&engine, Timestamp(3)).unwrap();
        assert_eq!(strikes(), Some(2));
    }
}
