//! Every engine that is installed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ctx_core::Result;

use super::search::{is_absent, is_looked_into};
use super::{Found, Outcome, PlaceKind, Search, Trace, verify};
use crate::EngineName;

/// What is installed, and where it was looked for.
#[derive(Debug, Default)]
pub struct Listing {
    /// The engines, by name. Those that another of the same name comes before are not among them.
    pub engines: Vec<Listed>,
    /// Every folder, and every manifest in it.
    pub trace: Trace,
}

/// An engine that is installed.
#[derive(Debug)]
pub struct Listed {
    /// Its name, by the name of its manifest.
    pub name: EngineName,
    /// Its manifest.
    pub manifest_path: PathBuf,
    /// Where that is.
    pub place: PlaceKind,
    /// The engine, or why it is refused.
    pub found: Result<Found>,
}

impl Search {
    /// Every engine in every place.
    #[must_use]
    pub fn list(&self) -> Listing {
        let mut trace = Trace::default();
        let mut engines: BTreeMap<EngineName, Listed> = BTreeMap::new();
        for (kind, folder) in self.places() {
            if !is_looked_into(*kind, folder, &mut trace) {
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
                    let reason = format!("{} comes first", first.manifest_path.display());
                    trace.pass_over(*kind, &manifest, reason);
                    continue;
                }
                let found = verify::verify(*kind, &manifest);
                match &found {
                    Ok(_) => trace.add(*kind, &manifest, Outcome::Found),
                    Err(error) => trace.refuse(*kind, &manifest, error),
                }
                let listed =
                    Listed { name: name.clone(), manifest_path: manifest, place: *kind, found };
                engines.insert(name, listed);
            }
        }
        Listing { engines: engines.into_values().collect(), trace }
    }
}

/// The manifests of a folder, in the order in which they decide: those that lie in it first.
fn manifests(kind: PlaceKind, folder: &Path, trace: &mut Trace) -> Vec<PathBuf> {
    let items = match std::fs::read_dir(folder) {
        Ok(items) => items,
        Err(e) if is_absent(&e) => {
            trace.add(kind, folder, Outcome::Absent);
            return Vec::new();
        }
        Err(e) => {
            trace.pass_over(kind, folder, format!("it cannot be looked into: {e}"));
            return Vec::new();
        }
    };
    trace.add(kind, folder, Outcome::Searched);
    let (mut beside, mut below) = (Vec::new(), Vec::new());
    for path in items.filter_map(|item| Some(item.ok()?.path())) {
        if path.is_dir() {
            let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
            // An engine that is just being put there.
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
            Err(_) => trace.add(kind, &manifest, Outcome::Absent),
        }
    }
    beside
}
