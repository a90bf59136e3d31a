//! The user's folder of engines, in which each has a folder of its own.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind};
use ctx_session::paths::Home;
use tempfile::TempDir;

/// `$CTX_HOME/engines`.
pub(super) struct Engines {
    folder: PathBuf,
}

impl Engines {
    pub(super) fn of_user() -> Result<Self, Error> {
        let folder = Home::from_env()?.root().join("engines");
        if folder.is_absolute() {
            return Ok(Self { folder });
        }
        Err(Error::new(ErrorKind::InvalidInput, "engines are not looked for in a relative folder")
            .with("path", folder.display())
            .hint("set CTX_HOME to an absolute path"))
    }

    /// The folder of one engine.
    pub(super) fn of(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Whether anything is in the place of an engine's folder.
    pub(super) fn has(&self, name: &str) -> bool {
        self.of(name).symlink_metadata().is_ok()
    }

    /// An empty folder for its owner alone, from which an engine can be moved into its place. The
    /// dot keeps it from being taken for an engine.
    pub(super) fn draft(&self) -> Result<TempDir, Error> {
        ctx_disk::create_private_dir(&self.folder)?;
        self.hidden(".new-")
    }

    /// Moves a finished draft into its place. What was there is gone then; where the move fails, it
    /// is back.
    pub(super) fn publish(&self, draft: TempDir, name: &str) -> Result<PathBuf, Error> {
        let place = self.of(name);
        let old = match self.has(name) {
            true => Some(self.take_away(name)?),
            false => None,
        };
        if let Err(error) = fs::rename(draft.path(), &place) {
            if let Some(old) = &old {
                // Nothing more can be done where this fails as well: the error names the place.
                drop(fs::rename(old.path().join(name), &place));
            }
            return Err(failed(&place, error));
        }
        // It is no draft any more: its folder is not to be removed.
        drop(draft.keep());
        // Where a folder cannot be synced, the system does it in its own time.
        let _ = ctx_disk::sync_dir(&self.folder);
        Ok(place)
    }

    /// Removes an engine's folder: first out of its place, whole, then from the disk.
    pub(super) fn remove(&self, name: &str) -> Result<(), Error> {
        let old = self.take_away(name)?;
        // Where a folder cannot be synced, the system does it in its own time.
        let _ = ctx_disk::sync_dir(&self.folder);
        let gone = old.path().to_owned();
        old.close().map_err(|e| failed(&gone, e))
    }

    fn take_away(&self, name: &str) -> Result<TempDir, Error> {
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
    Error::new(ErrorKind::Io, format!("the folder of engines cannot be changed: {}", error.kind()))
        .with("path", path.display())
        .hint("check that there is room, and that you may write there")
        .source(error)
}
