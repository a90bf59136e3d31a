//! Finds transcripts and their names.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_session::key::FileId;
use ctx_session::{Home, Overlay, SessionStore, retired_at};
use serde::Deserialize;

use super::overlays::OrphanedOverlay;
use crate::files::list_folder;

/// Maximum length of an overlay's first line: a path and a little more.
const HEADER_BYTES: u64 = 64 * 1024;

/// All known transcripts.
#[derive(Debug, Default)]
pub(super) struct KnownTranscripts {
    /// Each with the names that are known before it is opened: keys, ids, the path.
    pub(super) transcripts: BTreeMap<PathBuf, BTreeSet<String>>,
    pub(super) lost_overlays: Vec<OrphanedOverlay>,
    /// Why the keys of a session store are unknown, for requests that name a session.
    pub(super) damaged: Option<Error>,
    pub(super) warnings: Vec<String>,
}

impl KnownTranscripts {
    pub(super) fn of(home: &Home, agents: &[FileId], files: &[PathBuf]) -> Result<Self> {
        let mut found = Self::default();
        for agent in agents {
            found.sessions_of(home, agent)?;
        }
        found.overlays(home)?;
        for file in files {
            if !file.is_file() {
                return Err(Error::new(ErrorKind::NotFound, "transcript not found")
                    .with("path", file.display())
                    .hint("check the spelling of the path"));
            }
            found.add(file, []);
        }
        Ok(found)
    }

    fn add(&mut self, path: &Path, names: impl IntoIterator<Item = String>) {
        let full = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let known = self.transcripts.entry(full.clone()).or_default();
        known.extend(names);
        known.extend([path, &full].map(|path| path.to_string_lossy().into_owned()));
    }

    /// Adds the sessions of an agent: those in its folder and those in its store.
    fn sessions_of(&mut self, home: &Home, agent: &FileId) -> Result<()> {
        for path in list_folder(&home.sessions_dir(agent))? {
            let is_transcript = path.extension().is_some_and(|e| e == "jsonl");
            // Archived transcripts contain messages too.
            if (is_transcript || retired_at(&path).is_some()) && path.is_file() {
                self.add(&path, []);
            }
        }
        let stored = match SessionStore::at(home.sessions_file(agent)).load() {
            Ok(stored) => stored,
            Err(error) => {
                self.warnings
                    .push(format!("cannot read the session keys of agent {agent}: {error}"));
                self.damaged = Some(error);
                return Ok(());
            }
        };
        for (key, entry) in stored.iter() {
            if let Ok(path) = home.transcript(&key, entry)
                && path.is_file()
            {
                self.add(&path, [key.to_string(), entry.session_id.clone()]);
            }
        }
        Ok(())
    }

    /// Adds files of other programs that have an overlay.
    fn overlays(&mut self, home: &Home) -> Result<()> {
        for overlay in list_folder(&home.overlays_dir())? {
            if overlay.extension().is_none_or(|e| e != "jsonl") {
                continue;
            }
            let source = source_of(&overlay);
            let has_it = |source: &PathBuf| {
                Overlay::of(home, source).is_ok_and(|of_source| of_source.path == overlay)
            };
            match source {
                Some(source) if has_it(&source) => self.add(&source, []),
                source => self.lost_overlays.push(OrphanedOverlay { path: overlay, source }),
            }
        }
        Ok(())
    }
}

/// Returns the path of the transcript that an overlay records.
fn source_of(overlay: &Path) -> Option<PathBuf> {
    #[derive(Deserialize)]
    struct Header {
        source: PathBuf,
    }
    let mut line = Vec::new();
    let file = ctx_disk::open(overlay).ok()?;
    BufReader::new(file.take(HEADER_BYTES)).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice::<Header>(&line).ok().map(|header| header.source)
}
