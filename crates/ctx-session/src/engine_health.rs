//! Engine failures, remembered across processes.
//!
//! Every process starts its engines itself, and knows nothing about their failures in earlier
//! processes. This file only informs the user: an engine that it lists is used like any other.

use std::collections::BTreeMap;
use std::io::{ErrorKind as IoKind, Read, Write};
use std::path::PathBuf;

use ctx_core::{EngineFailure, EngineHealth, Error, ErrorKind, LeaseState, Result, Timestamp};
use serde::{Deserialize, Serialize};

use crate::disk::{self, FileLock, newer};
use crate::paths::Home;

/// The version of the file format.
const VERSION: u32 = 1;

/// The maximum size of the file in bytes.
const MAX_BYTES: u64 = 256 * 1024;

/// The maximum number of engines; the oldest failures are removed.
const MAX_ENGINES: usize = 64;

/// The maximum length of reasons and versions, in characters.
const MAX_CHARS: usize = 400;

/// An engine whose last call failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FailedEngine {
    /// Its version, if known.
    pub version: String,
    /// The hash of its file. A different file is a different engine without failures.
    pub sha256: Option<String>,
    /// The transport.
    pub carrier: String,
    /// The number of failures since its last success, over all processes.
    pub strikes: u64,
    /// The state of the compaction lease.
    pub lease: LeaseState,
    /// The last failure.
    pub last_error: EngineFailure,
    /// The fallback that replaced it; `None` if failures are reported as errors.
    pub served_by: Option<String>,
    /// When the failure was recorded, by the host's clock, which a replay does not change.
    pub at: Timestamp,
}

/// The engines whose last call failed, by id.
pub type FailedEngines = BTreeMap<String, FailedEngine>;

/// The content of the file.
#[derive(Serialize, Deserialize)]
struct HealthDocument {
    version: u32,
    engines: FailedEngines,
}

/// The part of the file that is read first, to check the version.
#[derive(Deserialize)]
struct HealthVersion {
    version: u32,
}

/// `engines/health.json`: the engines whose last call failed.
#[derive(Clone, Debug)]
pub struct EngineHealthFile {
    path: PathBuf,
}

impl EngineHealthFile {
    /// Returns the file of a home. It may not exist.
    pub fn of(home: &Home) -> Self {
        Self { path: home.engine_health_file() }
    }

    /// Reads the file. A missing file lists no engines.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] if it is torn or not a ctx file, [`ErrorKind::UnknownFormat`] if a
    /// newer ctx wrote it, [`ErrorKind::Io`] if it cannot be read. Callers should continue without
    /// it.
    pub fn read(&self) -> Result<FailedEngines> {
        let failed = |e| disk::io_error("cannot read the engine health file", &self.path, e);
        let metadata = match std::fs::metadata(&self.path) {
            Ok(metadata) => metadata,
            Err(e) if e.kind() == IoKind::NotFound => return Ok(FailedEngines::new()),
            Err(e) => return Err(failed(e)),
        };
        if !metadata.is_file() {
            let what = "the engine health file is not a regular file";
            return Err(self.file_error(ErrorKind::Io, what));
        }
        let mut bytes = Vec::new();
        let file = disk::open(&self.path).map_err(failed)?;
        file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
        let ours = (bytes.len() as u64 <= MAX_BYTES).then_some(bytes);
        let version = |bytes: &Vec<u8>| serde_json::from_slice::<HealthVersion>(bytes).ok();
        match ours.as_ref().and_then(version) {
            Some(HealthVersion { version }) if version > VERSION => {
                Err(newer("engine health file", version, VERSION)
                    .with("path", self.path.display())
                    .hint("update ctx, or remove the file: it only lists failed engines"))
            }
            _ => ours
                .and_then(|bytes| serde_json::from_slice::<HealthDocument>(&bytes).ok())
                .map(|document| document.engines)
                .ok_or_else(|| {
                    let what = "the engine health file is damaged";
                    self.file_error(ErrorKind::Corrupt, what)
                }),
        }
    }

    /// Records `times` more failures of an engine.
    ///
    /// # Errors
    ///
    /// If the file cannot be written, another process keeps it locked, or a newer ctx wrote it. A
    /// damaged file is replaced.
    pub fn failed(&self, health: &EngineHealth, times: u64, at: Timestamp) -> Result<()> {
        let Some(error) = &health.last_error else { return Ok(()) };
        self.change(|engines| {
            let before = engines.get(&health.id).filter(|known| known.sha256 == health.sha256);
            let failure = FailedEngine {
                version: cut(&health.version),
                sha256: health.sha256.clone(),
                carrier: health.carrier.to_string(),
                strikes: before.map_or(0, |known| known.strikes).saturating_add(times),
                lease: health.lease,
                last_error: EngineFailure { message: cut(&error.message), ..error.clone() },
                served_by: health.stand_in.as_ref().map(ToString::to_string),
                at,
            };
            engines.insert(health.id.clone(), failure);
            while engines.len() > MAX_ENGINES {
                let oldest = engines.iter().min_by_key(|(_, failure)| failure.at);
                let Some(oldest) = oldest.map(|(id, _)| id.clone()) else { break };
                engines.remove(&oldest);
            }
        })
    }

    /// Removes the failures of an engine that works again or no longer exists. Writes nothing if
    /// there are none.
    ///
    /// # Errors
    ///
    /// Those of [`EngineHealthFile::failed`]. A damaged file is left unchanged, without an error.
    pub fn forget(&self, id: &str) -> Result<()> {
        match self.read() {
            Ok(engines) if engines.contains_key(id) => self.change(|engines| {
                engines.remove(id);
            }),
            Ok(_) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn change(&self, edit: impl FnOnce(&mut FailedEngines)) -> Result<()> {
        disk::create_private_dir(disk::parent(&self.path))?;
        let _lock = FileLock::with_default_timeout(&self.path)?;
        let mut engines = match self.read() {
            Ok(engines) => engines,
            Err(error) if error.kind() == ErrorKind::Corrupt => FailedEngines::new(),
            Err(error) => return Err(error),
        };
        edit(&mut engines);
        let bytes = serde_json::to_vec_pretty(&HealthDocument { version: VERSION, engines });
        let bytes = bytes.map_err(|e| {
            self.file_error(ErrorKind::Io, "cannot write the engine health file").source(e)
        })?;
        disk::replace(&self.path, |out| out.write_all(&bytes))
    }

    fn file_error(&self, kind: ErrorKind, what: &'static str) -> Error {
        Error::new(kind, what)
            .with("path", self.path.display())
            .hint("remove it: it only lists failed engines, and is rebuilt")
    }
}

fn cut(text: &str) -> String {
    text.chars().take(MAX_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use ctx_core::EngineState;

    use super::*;

    fn health(id: &str, sha256: &str) -> EngineHealth {
        EngineHealth {
            id: id.into(),
            carrier: Cow::Borrowed("process"),
            version: "1.0.0".into(),
            sha256: Some(sha256.into()),
            state: EngineState::Ok,
            strikes: 1,
            lease: LeaseState::NotAsked,
            last_error: Some(EngineFailure {
                verb: "assemble".into(),
                name: "crashed".into(),
                message: "x".repeat(10_000),
                at: Timestamp(1),
            }),
            restarts: 0,
            answered: 0,
            failures: 1,
            failing: true,
            stand_in: Some("legacy".into()),
        }
    }

    fn file() -> (EngineHealthFile, tempfile::TempDir) {
        let dir = tempfile::tempdir().unwrap();
        (EngineHealthFile::of(&Home::at(dir.path().join("home"))), dir)
    }

    #[test]
    fn failures_add_up_until_the_engine_works_or_is_replaced() {
        let (file, _dir) = file();
        file.forget("demo").unwrap();
        assert!(!file.path.exists(), "no file is written without a failure");
        file.failed(&health("demo", "aa"), 2, Timestamp(10)).unwrap();
        file.failed(&health("demo", "aa"), 1, Timestamp(20)).unwrap();
        file.failed(&health("other", "cc"), 1, Timestamp(20)).unwrap();
        let demo = file.read().unwrap()["demo"].clone();
        assert_eq!(
            (demo.strikes, demo.at, demo.served_by.as_deref()),
            (3, Timestamp(20), Some("legacy"))
        );
        assert!(demo.sha256.as_deref() == Some("aa"));
        assert_eq!(demo.last_error.message.len(), MAX_CHARS);
        file.failed(&health("demo", "bb"), 1, Timestamp(30)).unwrap();
        assert_eq!(file.read().unwrap()["demo"].strikes, 1, "the count restarts for a new file");
        file.forget("demo").unwrap();
        assert_eq!(file.read().unwrap().keys().collect::<Vec<_>>(), ["other"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = file.path.metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    }

    #[test]
    fn a_damaged_file_is_a_read_error_and_the_next_write_replaces_it() {
        let (file, _dir) = file();
        file.failed(&health("demo", "aa"), 1, Timestamp(1)).unwrap();
        let whole = std::fs::read(&file.path).unwrap();
        let huge = vec![b' '; MAX_BYTES as usize + 1];
        for damaged in [&whole[..whole.len() / 2], b"", b"null", b"{\"version\":1}", b"\xff", &huge]
        {
            std::fs::write(&file.path, damaged).unwrap();
            let error = file.read().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt);
            assert!(error.hint_text().is_some() && error.to_string().contains("health.json"));
            file.forget("demo").unwrap();
            file.failed(&health("demo", "aa"), 1, Timestamp(1)).unwrap();
            assert_eq!(file.read().unwrap()["demo"].strikes, 1);
        }
    }

    #[test]
    fn a_file_of_a_newer_program_is_not_changed() {
        let (file, _dir) = file();
        std::fs::create_dir_all(file.path.parent().unwrap()).unwrap();
        let newer = r#"{"version":2,"who":"knows"}"#;
        std::fs::write(&file.path, newer).unwrap();
        for refused in [
            file.read().map(drop),
            file.failed(&health("demo", "aa"), 1, Timestamp(1)),
            file.forget("demo"),
        ] {
            assert_eq!(refused.unwrap_err().kind(), ErrorKind::UnknownFormat);
        }
        assert_eq!(std::fs::read_to_string(&file.path).unwrap(), newer);
        std::fs::remove_file(&file.path).unwrap();
        std::fs::create_dir(&file.path).unwrap();
        assert_eq!(file.read().unwrap_err().kind(), ErrorKind::Io, "not a regular file");
        assert!(file.failed(&health("demo", "aa"), 1, Timestamp(1)).is_err());
    }

    #[test]
    fn concurrent_writers_lose_nothing_and_the_file_stays_small() {
        let (file, _dir) = file();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let file = &file;
                scope.spawn(move || {
                    for round in 0..10 {
                        let id = format!("engine-{writer}");
                        while let Err(error) = file.failed(&health(&id, "aa"), 1, Timestamp(round))
                        {
                            assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
                        }
                    }
                });
            }
        });
        let engines = file.read().unwrap();
        assert!(engines.len() == 4 && engines.values().all(|failure| failure.strikes == 10));
        for n in 0..MAX_ENGINES {
            file.failed(&health(&format!("more-{n}"), "aa"), 1, Timestamp(100)).unwrap();
        }
        let engines = file.read().unwrap();
        assert_eq!(engines.len(), MAX_ENGINES);
        assert!(engines.contains_key("more-0") && !engines.contains_key("engine-0"));
        assert!(file.path.metadata().unwrap().len() < MAX_BYTES);
    }
}
