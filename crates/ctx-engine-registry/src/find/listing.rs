//! Listing all installed engines.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ctx_core::Result;

use super::search::{is_absent, is_searchable};
use super::{FolderKind, FoundEngine, Search, SearchOutcome, SearchTrace, verify};
use crate::EngineName;

/// The installed engines, and the places searched.
#[derive(Debug, Default)]
pub struct EngineListing {
    /// The engines, by name. Engines shadowed by an earlier engine of the same name are omitted.
    pub engines: Vec<ListedEngine>,
    /// Every folder, and every manifest in it.
    pub trace: SearchTrace,
}

/// An engine that is installed.
#[derive(Debug)]
pub struct ListedEngine {
    /// Its name, from the file name of its manifest.
    pub name: EngineName,
    /// The path of its manifest.
    pub manifest_path: PathBuf,
    /// The place of the manifest.
    pub place: FolderKind,
    /// The engine, or why it is rejected.
    pub found: Result<FoundEngine>,
}

impl Search {
    /// Lists the engines of all places.
    pub fn list(&self) -> EngineListing {
        let mut trace = SearchTrace::default();
        let mut engines: BTreeMap<EngineName, ListedEngine> = BTreeMap::new();
        for (kind, folder) in self.places() {
            if !is_searchable(*kind, folder, &mut trace) {
                continue;
            }
            for manifest in manifests(*kind, folder, &mut trace) {
                let stem = manifest.file_stem().unwrap_or_default().to_string_lossy();
                let name = match EngineName::new(stem) {
                    Ok(name) => name,
                    Err(error) => {
                        trace.pass_over(*kind, &manifest, error.to_string());
                        continue;
                    }
                };
                if let Some(first) = engines.get(&name) {
                    let reason = format!("shadowed by {}", first.manifest_path.display());
                    trace.pass_over(*kind, &manifest, reason);
                    continue;
                }
                let found = verify::verify(*kind, &manifest);
                match &found {
                    Ok(_) => trace.add(*kind, &manifest, SearchOutcome::Found),
                    Err(error) => trace.refuse(*kind, &manifest, error),
                }
                let listed = ListedEngine {
                    name: name.clone(),
                    manifest_path: manifest,
                    place: *kind,
                    found,
                };
                engines.insert(name, listed);
            }
        }
        EngineListing { engines: engines.into_values().collect(), trace }
    }
}

/// Returns the manifests of a folder in order of precedence: those directly in it first.
fn manifests(kind: FolderKind, folder: &Path, trace: &mut SearchTrace) -> Vec<PathBuf> {
    let items = match std::fs::read_dir(folder) {
        Ok(items) => items,
        Err(e) if is_absent(&e) => {
            trace.add(kind, folder, SearchOutcome::Absent);
            return Vec::new();
        }
        Err(e) => {
            trace.pass_over(kind, folder, format!("cannot read the folder: {e}"));
            return Vec::new();
        }
    };
    trace.add(kind, folder, SearchOutcome::Searched);
    let (mut beside, mut below) = (Vec::new(), Vec::new());
    for path in items.filter_map(|item| Some(item.ok()?.path())) {
        if path.is_dir() {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            // A hidden folder is an engine that is being installed.
            if name.starts_with('.') {
                continue;
            }
            below.push(path.join(format!("{name}.toml")));
        } else if path.extension().is_some_and(|ending| ending == "toml") {
            beside.push(path);
        }
    }
    beside.sort();
    below.sort();
    for manifest in below {
        match manifest.symlink_metadata() {
            Ok(_) => beside.push(manifest),
            Err(_) => trace.add(kind, &manifest, SearchOutcome::Absent),
        }
    }
    beside
}
