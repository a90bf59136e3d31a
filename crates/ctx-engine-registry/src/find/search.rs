//! The places, in search order, and searching them for one engine.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::{FoundEngine, SearchTrace, verify};
use crate::find::SearchOutcome;
use crate::{EngineName, Slot};

/// The variable that lists folders to search first.
const PATH_VARIABLE: &str = "CTX_ENGINE_PATH";

/// The kind of folder that an engine is found in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FolderKind {
    /// A folder of `$CTX_ENGINE_PATH`.
    Variable,
    /// `engines` in ctx's home.
    User,
    /// One of the system's folders.
    System,
}

impl FolderKind {
    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Variable => "$CTX_ENGINE_PATH",
            Self::User => "user",
            Self::System => "system",
        }
    }
}

/// The places searched for engines.
///
/// # Example
///
/// ```
/// use ctx_engine_registry::find::Search;
///
/// let search = Search::default().with_user("/home/me/.ctx").with_system();
/// let (found, trace) = search.find_traced("no-such-engine");
/// assert!(found.unwrap_err().hint_text().is_some());
/// assert_eq!(trace.steps.len(), 6); // NAME.toml and NAME/NAME.toml in three folders
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Search {
    places: Vec<(FolderKind, PathBuf)>,
}

impl Search {
    /// Returns the places that `$CTX_ENGINE_PATH` and `$CTX_HOME` name, and the system's places.
    /// Searches nothing yet.
    pub fn from_env() -> Self {
        let home = std::env::var_os("CTX_HOME").filter(|home| !home.is_empty());
        let home = home.map(PathBuf::from).or_else(|| {
            let home = std::env::home_dir().filter(|home| !home.as_os_str().is_empty())?;
            Some(home.join(".ctx"))
        });
        let search = match std::env::var_os(PATH_VARIABLE) {
            Some(list) => Self::default().with_list(&list),
            None => Self::default(),
        };
        match home {
            Some(home) => search.with_user(home).with_system(),
            None => search.with_system(),
        }
    }

    /// Appends the folders of a list in the format of `$CTX_ENGINE_PATH`.
    pub fn with_list(mut self, list: &OsStr) -> Self {
        let folders = std::env::split_paths(list).filter(|folder| !folder.as_os_str().is_empty());
        self.places.extend(folders.map(|folder| (FolderKind::Variable, folder)));
        self
    }

    /// Appends `engines` in ctx's home.
    pub fn with_user(mut self, home: impl AsRef<Path>) -> Self {
        self.places.push((FolderKind::User, home.as_ref().join("engines")));
        self
    }

    /// Appends the system's folders.
    pub fn with_system(mut self) -> Self {
        if cfg!(unix) {
            let folders = ["/usr/local/lib/ctx/engines", "/usr/lib/ctx/engines"];
            self.places.extend(folders.map(|folder| (FolderKind::System, PathBuf::from(folder))));
        }
        self
    }

    /// Returns the folders, in search order.
    pub fn places(&self) -> &[(FolderKind, PathBuf)] {
        &self.places
    }

    /// Finds the engine of that name for the slot `contextEngine`.
    ///
    /// # Errors
    ///
    /// `NotFound`, if no place contains it; otherwise why the first match was rejected.
    pub fn find(&self, name: &str) -> Result<FoundEngine> {
        self.find_traced(name).0
    }

    /// Like [`Search::find`], but also returns all paths tried.
    pub fn find_traced(&self, name: &str) -> (Result<FoundEngine>, SearchTrace) {
        let mut trace = SearchTrace::default();
        let found = EngineName::new(name).and_then(|name| self.look_for(&name, &mut trace));
        (found, trace)
    }

    fn look_for(&self, name: &EngineName, trace: &mut SearchTrace) -> Result<FoundEngine> {
        for (kind, folder) in &self.places {
            if !is_searchable(*kind, folder, trace) {
                continue;
            }
            for manifest in candidates(folder, name) {
                match manifest.symlink_metadata() {
                    Ok(_) => {}
                    Err(e) if is_absent(&e) => {
                        trace.add(*kind, &manifest, SearchOutcome::Absent);
                        continue;
                    }
                    Err(e) => {
                        trace.pass_over(*kind, &manifest, format!("cannot access it: {e}"));
                        continue;
                    }
                }
                let found = verify::verify(*kind, &manifest).and_then(of_slot);
                match &found {
                    Ok(_) => trace.add(*kind, &manifest, SearchOutcome::Found),
                    Err(error) => trace.refuse(*kind, &manifest, error),
                }
                return found;
            }
        }
        Err(Error::new(ErrorKind::NotFound, format!("no engine '{name}' is installed"))
            .hint("`ctx engines --trace` shows every place tried; `ctx engines add` installs one"))
    }
}

/// Whether a place may be searched; the trace records why not.
pub(super) fn is_searchable(kind: FolderKind, folder: &Path, trace: &mut SearchTrace) -> bool {
    let reason = if !folder.is_absolute() {
        "not an absolute path: the search must not depend on the working directory"
    } else if folder.metadata().is_ok_and(|metadata| !metadata.is_dir()) {
        "not a folder"
    } else {
        return true;
    };
    trace.pass_over(kind, folder, reason);
    false
}

/// Returns the paths of an engine's manifest in a folder, in search order.
fn candidates(folder: &Path, name: &EngineName) -> [PathBuf; 2] {
    let file = format!("{name}.toml");
    [folder.join(&file), folder.join(name.as_str()).join(&file)]
}

/// Whether a path does not exist, as opposed to being unreadable.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn of_slot(found: FoundEngine) -> Result<FoundEngine> {
    if found.manifest.slot == Slot::ContextEngine {
        return Ok(found);
    }
    let (name, slot) = (&found.manifest.name, found.manifest.slot);
    Err(Error::new(ErrorKind::InvalidInput, format!("'{name}' is for the slot {slot}"))
        .with("path", found.manifest_path.display())
        .hint(format!("select it with plugins.slots.{slot}")))
}
