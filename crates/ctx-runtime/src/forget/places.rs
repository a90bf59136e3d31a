//! Where transcripts are, and what they are called.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_session::key::FileId;
use ctx_session::overlay::Overlay;
use ctx_session::paths::Home;
use ctx_session::retire::retired_at;
use ctx_session::store::SessionStore;
use serde::Deserialize;

use super::lost::LostOverlay;

/// The first line of an overlay is no longer than a path and a little more.
const HEADER_BYTES: u64 = 64 * 1024;

/// A transcript that ctx knows of.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    /// What its session may be called, before it is opened: keys, ids, the path.
    pub(super) names: BTreeSet<String>,
}

/// All that ctx knows of.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) transcripts: Vec<Place>,
    pub(super) lost_overlays: Vec<LostOverlay>,
    /// Why a store of sessions tells no keys: whoever names one should know.
    pub(super) damaged: Option<Error>,
    pub(super) warnings: Vec<String>,
}

impl Places {
    pub(super) fn of(home: &Home, agents: &[FileId], files: &[PathBuf]) -> Result<Self> {
        let mut found = Found::default();
        for agent in agents {
            found.sessions_of(home, agent)?;
        }
        found.overlays(home)?;
        for file in files {
            if !file.is_file() {
                return Err(Error::new(ErrorKind::NotFound, "there is no such transcript")
                    .with("path", file.display())
                    .hint("check the spelling of the path"));
            }
            found.add(file, []);
        }
        let Found { transcripts, lost_overlays, damaged, warnings } = found;
        let place = |(path, names)| Place { path, names };
        let transcripts = transcripts.into_iter().map(place).collect();
        Ok(Self { transcripts, lost_overlays, damaged, warnings })
    }
}

#[derive(Default)]
struct Found {
    transcripts: BTreeMap<PathBuf, BTreeSet<String>>,
    lost_overlays: Vec<LostOverlay>,
    damaged: Option<Error>,
    warnings: Vec<String>,
}

impl Found {
    fn add(&mut self, path: &Path, names: impl IntoIterator<Item = String>) {
        let full = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let known = self.transcripts.entry(full.clone()).or_default();
        known.extend(names);
        known.extend([path, &full].map(|path| path.to_string_lossy().into_owned()));
    }

    /// The sessions of an agent: those in its folder, and those that its store knows.
    fn sessions_of(&mut self, home: &Home, agent: &FileId) -> Result<()> {
        for path in listed(&home.sessions_dir(agent))? {
            let is_transcript = path.extension().is_some_and(|e| e == "jsonl");
            // What was put aside says what it said as well.
            if (is_transcript || retired_at(&path).is_some()) && path.is_file() {
                self.add(&path, []);
            }
        }
        let stored = match SessionStore::at(home.sessions_file(agent)).load() {
            Ok(stored) => stored,
            Err(error) => {
                self.warnings.push(format!("the sessions of agent {agent} have no keys: {error}"));
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

    /// Files of other programs that something stands beside.
    fn overlays(&mut self, home: &Home) -> Result<()> {
        for overlay in listed(&home.overlays_dir())? {
            if overlay.extension().is_none_or(|e| e != "jsonl") {
                continue;
            }
            let source = source_of(&overlay);
            let has_it = |source: &PathBuf| {
                Overlay::of(home, source).is_ok_and(|of_source| of_source.path() == overlay)
            };
            match source {
                Some(source) if has_it(&source) => self.add(&source, []),
                source => self.lost_overlays.push(LostOverlay { path: overlay, source }),
            }
        }
        Ok(())
    }
}

/// The transcript that an overlay says it is of.
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

/// What is in a folder, in the order of names; nothing where it is not there.
pub(crate) fn listed(folder: &Path) -> Result<Vec<PathBuf>> {
    let failed = |e| {
        Error::new(ErrorKind::Io, "the folder cannot be listed")
            .with("path", folder.display())
            .source(e)
            .hint("check the owner and the permissions of the folder")
    };
    let listing = match std::fs::read_dir(folder) {
        Ok(listing) => listing,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(failed(e)),
    };
    let mut paths = Vec::new();
    for item in listing {
        paths.push(item.map_err(failed)?.path());
    }
    paths.sort_unstable();
    Ok(paths)
}
