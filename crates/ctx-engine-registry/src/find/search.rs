//! The places, in their order, and looking for one engine in them.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use serde::{Deserialize, Serialize};

use super::{Found, Trace, verify};
use crate::find::Outcome;
use crate::{EngineName, Slot};

/// The variable that lists folders to be looked into first.
const PATH_VARIABLE: &str = "CTX_ENGINE_PATH";

/// What kind of place an engine comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PlaceKind {
    /// A folder of `$CTX_ENGINE_PATH`.
    Variable,
    /// `engines` in ctx's home.
    User,
    /// One of the system's folders.
    System,
}

impl PlaceKind {
    /// For people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Variable => "$CTX_ENGINE_PATH",
            Self::User => "user",
            Self::System => "system",
        }
    }
}

/// The places where engines are looked for.
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
pub struct Search {
    places: Vec<(PlaceKind, PathBuf)>,
}

impl Search {
    /// The places that the environment names. Nothing is looked into yet.
    #[must_use]
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

    /// Then the folders of a list, as `$CTX_ENGINE_PATH` has it.
    #[must_use]
    pub fn with_list(mut self, list: &OsStr) -> Self {
        let folders = std::env::split_paths(list).filter(|folder| !folder.as_os_str().is_empty());
        self.places.extend(folders.map(|folder| (PlaceKind::Variable, folder)));
        self
    }

    /// Then `engines` in ctx's home.
    #[must_use]
    pub fn with_user(mut self, home: impl AsRef<Path>) -> Self {
        self.places.push((PlaceKind::User, home.as_ref().join("engines")));
        self
    }

    /// Then the system's folders.
    #[must_use]
    pub fn with_system(mut self) -> Self {
        if cfg!(unix) {
            let folders = ["/usr/local/lib/ctx/engines", "/usr/lib/ctx/engines"];
            self.places.extend(folders.map(|folder| (PlaceKind::System, PathBuf::from(folder))));
        }
        self
    }

    /// The folders, in their order.
    #[must_use]
    pub fn places(&self) -> &[(PlaceKind, PathBuf)] {
        &self.places
    }

    /// The engine of that name that fills the slot `contextEngine`.
    ///
    /// # Errors
    ///
    /// `NotFound`, if no place has it; else why the first that has it was refused.
    pub fn find(&self, name: &str) -> Result<Found> {
        self.find_traced(name).0
    }

    /// As [`Search::find`], with every path tried.
    pub fn find_traced(&self, name: &str) -> (Result<Found>, Trace) {
        let mut trace = Trace::default();
        let found = EngineName::new(name).and_then(|name| self.look_for(&name, &mut trace));
        (found, trace)
    }

    fn look_for(&self, name: &EngineName, trace: &mut Trace) -> Result<Found> {
        for (kind, folder) in &self.places {
            if !is_looked_into(*kind, folder, trace) {
                continue;
            }
            for manifest in candidates(folder, name) {
                match manifest.symlink_metadata() {
                    Ok(_) => {}
                    Err(e) if is_absent(&e) => {
                        trace.add(*kind, &manifest, Outcome::Absent);
                        continue;
                    }
                    Err(e) => {
                        trace.pass_over(*kind, &manifest, format!("it cannot be looked at: {e}"));
                        continue;
                    }
                }
                let found = verify::verify(*kind, &manifest).and_then(of_slot);
                match &found {
                    Ok(_) => trace.add(*kind, &manifest, Outcome::Found),
                    Err(error) => trace.refuse(*kind, &manifest, error),
                }
                return found;
            }
        }
        Err(Error::new(ErrorKind::NotFound, format!("no engine '{name}' is installed"))
            .hint("`ctx engines --trace` shows every place tried; `ctx engines add` installs one"))
    }
}

/// Whether a place may be looked into; the trace says why not.
pub(super) fn is_looked_into(kind: PlaceKind, folder: &Path, trace: &mut Trace) -> bool {
    let reason = if !folder.is_absolute() {
        "it is no absolute path: what is looked into must not depend on the working directory"
    } else if folder.metadata().is_ok_and(|metadata| !metadata.is_dir()) {
        "it is no folder"
    } else {
        return true;
    };
    trace.pass_over(kind, folder, reason);
    false
}

/// The manifests that a folder may have for an engine, in their order.
fn candidates(folder: &Path, name: &EngineName) -> [PathBuf; 2] {
    let file = format!("{name}.toml");
    [folder.join(&file), folder.join(name.as_str()).join(&file)]
}

/// Whether there is nothing at a path, rather than something that cannot be seen.
pub(super) fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

fn of_slot(found: Found) -> Result<Found> {
    if found.manifest.slot == Slot::ContextEngine {
        return Ok(found);
    }
    let (name, slot) = (&found.manifest.name, found.manifest.slot);
    Err(Error::new(ErrorKind::InvalidInput, format!("'{name}' is for the slot {slot}"))
        .with("path", found.manifest_path.display())
        .hint(format!("select it by plugins.slots.{slot}")))
}
