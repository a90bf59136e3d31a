//! The user's folder of engines, with one folder per engine.

use std::path::{Path, PathBuf};
use std::{fs, io};

use ctx_core::{Error, ErrorKind};
use ctx_session::Home;
use tempfile::TempDir;

/// `$CTX_HOME/engines`.
pub(super) struct Engines {
    folder: PathBuf,
}

impl Engines {
    pub(super) fn of_user() -> Result<Self, Error> {
        let folder = Home::from_env()?.root.join("engines");
        if folder.is_absolute() {
            return Ok(Self { folder });
        }
        Err(Error::new(ErrorKind::InvalidInput, "CTX_HOME is a relative path")
            .with("path", folder.display())
            .hint("set CTX_HOME to an absolute path"))
    }

    /// Returns the folder of one engine.
    pub(super) fn of(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether the folder of an engine exists.
    pub(super) fn has(&self, name: &str) -> bool {
        self.of(name).symlink_metadata().is_ok()
    }

    /// Creates an empty folder, readable by its owner only, in which an engine is prepared. The
    /// leading dot keeps it from being listed as an engine.
    pub(super) fn draft(&self) -> Result<TempDir, Error> {
        ctx_disk::create_private_dir(&self.folder)?;
        self.hidden(".new-")
    }

    /// Moves a finished draft into its place, and replaces an older engine. If this fails, the old
    /// folder is restored, or kept aside.
    pub(super) fn publish(&self, draft: TempDir, name: &str) -> Result<PathBuf, Error> {
        let place = self.of(name);
        let old = if self.has(name) { Some(self.move_aside(name)?) } else { None };
        if let Err(error) = fs::rename(draft.path(), &place) {
            // An older engine that cannot be put back is kept aside, and the error names its folder.
            let kept = old.filter(|old| fs::rename(old.path().join(name), &place).is_err());
            return Err(failed(&kept.map_or(place, TempDir::keep), error));
        }
        // The folder was moved, so `TempDir` must not remove it.
        drop(draft.keep());
        // If this sync fails, the system writes the folder later.
        let _ = ctx_disk::sync_dir(&self.folder);
        Ok(place)
    }

    /// Removes an engine's folder: renames it first as a whole, then deletes it.
    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        let old = self.move_aside(name)?;
        // If this sync fails, the system writes the folder later.
        let _ = ctx_disk::sync_dir(&self.folder);
        let gone = old.path().to_owned();
        old.close().map_err(|e| failed(&gone, e))
    }

    fn move_aside(&self, name: &str) -> Result<TempDir, Error> {
        let place = self.of(name);
        let aside = self.hidden(".old-")?;
        fs::rename(&place, aside.path().join(name)).map_err(|e| failed(&place, e))?;
        Ok(aside)
    }

    fn hidden(&self, prefix: &str) -> Result<TempDir, Error> {
        let mut builder = tempfile::Builder::new();
        builder.prefix(prefix);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            builder.permissions(fs::Permissions::from_mode(0o700));
        }
        builder.tempdir_in(&self.folder).map_err(|e| failed(&self.folder, e))
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("cannot change the folder of engines: {}", error.kind()))
        .with("path", path.display())
        .hint("check the free disk space and the folder's permissions")
        .source(error)
}
