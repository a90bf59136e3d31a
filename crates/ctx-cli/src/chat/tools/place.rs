//! Paths, and whether they stay in the folder.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use ctx_core::Result;

use super::no_folder;

/// The folder that tools work in.
pub(super) struct Place {
    folder: PathBuf,
    /// Where results of tools are kept: they may be read as if they were in the folder.
    results: Option<PathBuf>,
}

/// A path that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Located {
    /// Where it leads, links followed.
    pub(super) path: PathBuf,
    pub(super) is_outside: bool,
}

impl Place {
    pub(super) fn new(folder: &Path) -> Result<Self> {
        let folder = folder.canonicalize().map_err(|error| no_folder(folder, error))?;
        Ok(Self { folder, results: None })
    }

    /// The same, with a folder in which results of tools are kept.
    pub(super) fn with_results(self, results: &Path) -> Self {
        Self { results: Some(results.to_owned()), ..self }
    }

    /// Whether something is a result of a tool that was kept.
    pub(super) fn is_result(&self, located: &Located) -> bool {
        // It is made when the first is kept, and its own path may lead through links.
        let results = self.results.as_ref().and_then(|results| results.canonicalize().ok());
        results.is_some_and(|results| located.path.starts_with(results))
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where a path leads: as far as it exists its links are followed, and what does not exist yet
    /// is a plain name below that.
    pub(super) fn find(&self, path: &str) -> Result<Located, String> {
        if path.is_empty() || path.contains('\0') {
            return Err("give a path".to_owned());
        }
        let asked = self.folder.join(path);
        let mut missing: Vec<OsString> = Vec::new();
        let mut there = asked.as_path();
        let found = loop {
            match there.canonicalize() {
                Ok(found) => break found,
                // What is there and leads nowhere is a link, and to write to it is to write
                // elsewhere.
                Err(error) if there.symlink_metadata().is_ok() => {
                    return Err(format!("{path}: {error}"));
                }
                Err(_) => {}
            }
            let (Some(parent), Some(Component::Normal(name))) =
                (there.parent(), there.components().next_back())
            else {
                return Err(format!("{path}: there is no such place"));
            };
            missing.push(name.to_owned());
            there = parent;
        };
        if !missing.is_empty() && !found.is_dir() {
            return Err(format!("{path}: {} is no folder", found.display()));
        }
        let mut path = found;
        path.extend(missing.into_iter().rev());
        let is_outside = !path.starts_with(&self.folder);
        Ok(Located { path, is_outside })
    }

    /// A path for people: within the folder, from there.
    pub(super) fn shown(&self, located: &Located) -> String {
        match located.path.strip_prefix(&self.folder) {
            Ok(inside) if inside.as_os_str().is_empty() => ".".to_owned(),
            Ok(inside) => inside.display().to_string(),
            Err(_) => located.path.display().to_string(),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn what_leads_out_of_the_folder_is_outside_however_it_is_written() {
        let room = tempfile::tempdir().unwrap();
        let folder = room.path().join("here");
        std::fs::create_dir_all(folder.join("src")).unwrap();
        std::fs::write(folder.join("src/a.rs"), "a").unwrap();
        std::fs::create_dir(room.path().join("here-too")).unwrap();
        symlink(room.path(), folder.join("up")).unwrap();
        symlink("src", folder.join("code")).unwrap();
        symlink("/nowhere/at/all", folder.join("nowhere")).unwrap();
        let place = Place::new(&folder).unwrap();
        let full = place.folder().join("src/a.rs").display().to_string();
        for (path, outside) in [
            ("src/a.rs", false),
            (full.as_str(), false),
            ("src/../src/./a.rs", false),
            ("code/a.rs", false),
            ("new/folder/file", false),
            (".", false),
            ("..", true),
            ("../here-too/x", true),
            ("up/x", true),
            ("/etc/passwd", true),
            ("src/../../x", true),
        ] {
            assert_eq!(place.find(path).map(|found| found.is_outside), Ok(outside), "{path}");
        }
        for path in ["", "nowhere", "nowhere/x", "missing/../../x", "src/a.rs/x", "a\0b"] {
            assert!(place.find(path).is_err(), "{path:?}");
        }
        assert_eq!(place.shown(&place.find("code/a.rs").unwrap()), "src/a.rs");
        assert_eq!(place.shown(&place.find(".").unwrap()), ".");
    }
}
