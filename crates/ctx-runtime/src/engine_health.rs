//! Records an engine's health for later processes.

use ctx_core::{ContextEngine, Result, Timestamp};
use ctx_session::{EngineHealthFile, FailedEngine, FailedEngines, Home};

/// Watches one engine, and updates the [file](EngineHealthFile) from which other programs read its
/// health. Nothing is written while the engine is healthy.
#[derive(Clone, Debug)]
pub struct EngineHealthRecorder {
    file: EngineHealthFile,
    /// Number of this engine's failures already in the file.
    noted: u64,
    /// Whether the file is known to have no entry for it.
    is_clear: bool,
}

impl EngineHealthRecorder {
    /// Creates a recorder for an engine that was not called yet.
    pub fn new(home: &Home) -> Self {
        Self { file: EngineHealthFile::of(home), noted: 0, is_clear: false }
    }

    /// Records the engine's health. Skips built-in engines, which cannot fail separately from their
    /// host, and engines that have neither failed nor answered.
    ///
    /// # Errors
    ///
    /// The errors of [`EngineHealthFile::failed`]. The turn can continue after such an error.
    pub fn record(&mut self, engine: &dyn ContextEngine, now: Timestamp) -> Result<()> {
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

/// Returns the recorded failures of an engine by its id, if the same file is still installed.
/// Built-in engines have none.
///
/// # Errors
///
/// If the installed engines cannot be determined.
#[cfg(feature = "plugins")]
pub fn engine_trouble(mut troubles: FailedEngines, id: &str) -> Result<Option<FailedEngine>> {
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
    Ok(Some(trouble).filter(|trouble| trouble.sha256 == sha256))
}

/// Returns `None`: this build has only built-in engines, which have no recorded failures.
///
/// # Errors
///
/// None.
#[cfg(not(feature = "plugins"))]
pub fn engine_trouble(_: FailedEngines, _: &str) -> Result<Option<FailedEngine>> {
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

    /// An engine that only reports a given health.
    struct ReportedHealth {
        info: EngineInfo,
        health: Mutex<EngineHealth>,
    }

    impl ReportedHealth {
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

        fn report(&self, answered: u64, failures: u64, failing: bool) {
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
    impl ContextEngine for ReportedHealth {
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
    fn failures_are_recorded_once_and_cleared_when_the_engine_works() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path().join("home"));
        let file = EngineHealthFile::of(&home);
        let strikes = || file.read().unwrap().get("demo").map(|trouble| trouble.strikes);
        let engine = ReportedHealth::new();
        let mut recorder = EngineHealthRecorder::new(&home);
        recorder.record(&engine, Timestamp(1)).unwrap();
        assert!(!home.root.exists(), "the engine was not called");
        for (report, expected) in [
            ((0, 2, true), Some(2)),
            ((0, 2, true), Some(2)),
            ((4, 3, true), Some(3)),
            ((5, 3, false), None),
            ((6, 4, true), Some(1)),
        ] {
            engine.report(report.0, report.1, report.2);
            recorder.record(&engine, Timestamp(2)).unwrap();
            assert_eq!(strikes(), expected, "{report:?}");
        }
        // The next program does not know what this one recorded.
        let mut next = EngineHealthRecorder::new(&home);
        engine.report(0, 0, false);
        next.record(&engine, Timestamp(3)).unwrap();
        assert_eq!(strikes(), Some(1), "this process did not call the engine");
        engine.report(0, 1, true);
        next.record(&engine, Timestamp(3)).unwrap();
        assert_eq!(strikes(), Some(2));
    }
}
