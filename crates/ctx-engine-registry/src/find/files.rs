//! Files as they may be trusted: where they really are, who can write to them, and what is in them.

use std::fs::Metadata;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ctx_core::{Error, ErrorKind, Result};
use sha2::{Digest, Sha256};

/// Larger manifests are none.
const MAX_MANIFEST_BYTES: u64 = 64 * 1024;

/// Larger files are no engine; they are read whole.
const MAX_FILE_BYTES: u64 = 512 * 1024 * 1024;

/// The SHA-256 of some bytes, as hexadecimal digits.
#[must_use]
pub fn sha256_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A file of the canonical folder `folder`, with all links followed. It has to lie there then as
/// well.
pub(super) fn inside(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    let real = path.canonicalize().map_err(|e| unreadable(&path, e))?;
    if real.parent() == Some(folder) {
        return Ok(real);
    }
    Err(Error::new(ErrorKind::InvalidInput, "a link leads out of the engine's folder")
        .with("path", path.display())
        .with("leads to", real.display())
        .hint("put the file itself beside the manifest"))
}

/// Refuses what belongs to another user than this one or root, and what the group or others can
/// write to: they could put code of theirs there.
///
/// # Errors
///
/// `InvalidInput`. Elsewhere than on Unix nothing is refused.
pub fn check_rights(path: &Path, metadata: &Metadata) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        if !is_trusted(metadata.uid(), rustix::process::geteuid().as_raw()) {
            return Err(Error::new(ErrorKind::InvalidInput, "it belongs to another user")
                .with("path", path.display())
                .with("owner", metadata.uid())
                .hint(
                    "if you trust what is in it, install a copy of your own: `ctx engines add`",
                ));
        }
        let mode = metadata.permissions().mode();
        let who = match mode & 0o022 {
            0 => return Ok(()),
            0o020 => "its group",
            _ => "everybody",
        };
        Err(Error::new(ErrorKind::InvalidInput, format!("{who} can write to it"))
            .with("path", path.display())
            .with("mode", format!("{:04o}", mode & 0o7777))
            .hint(format!("if you trust what is in it: chmod go-w {}", path.display())))
    }
    #[cfg(not(unix))]
    {
        let _ = (path, metadata);
        Ok(())
    }
}

/// Whether what a user owns is as good as one's own: root can do anything anyway.
#[cfg(unix)]
pub(super) fn is_trusted(owner: u32, own: u32) -> bool {
    owner == 0 || owner == own
}

/// The text of a manifest.
pub(super) fn read_manifest(path: &Path) -> Result<String> {
    let (bytes, metadata) = read(path, MAX_MANIFEST_BYTES)?;
    check_rights(path, &metadata)?;
    text_of(path, bytes)
}

/// The text of a manifest that is to be copied, whoever can write to it.
pub(super) fn read_manifest_to_copy(path: &Path) -> Result<String> {
    let (bytes, _) = read(path, MAX_MANIFEST_BYTES)?;
    text_of(path, bytes)
}

fn text_of(path: &Path, bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|e| {
        Error::new(ErrorKind::Config, "the manifest is no text")
            .with("path", path.display())
            .hint("a manifest is TOML, in UTF-8")
            .source(e)
    })
}

/// An engine's file: its bytes, and by what it is known again.
pub(super) fn read_engine(path: &Path) -> Result<(Vec<u8>, Stamp)> {
    let (bytes, metadata) = read(path, MAX_FILE_BYTES)?;
    check_rights(path, &metadata)?;
    Ok((bytes, Stamp::of(path, &metadata)))
}

/// The bytes of an engine's file that is to be copied, whoever can write to it.
pub(super) fn read_engine_to_copy(path: &Path) -> Result<Vec<u8>> {
    Ok(read(path, MAX_FILE_BYTES)?.0)
}

/// Reads a regular file. The metadata is that of the file read, also
/// if another took its place meanwhile.
fn read(path: &Path, most: u64) -> Result<(Vec<u8>, Metadata)> {
    // Before it is opened: to open a pipe waits for who writes to it.
    let before = path.symlink_metadata().map_err(|e| unreadable(path, e))?;
    regular(path, &before)?;
    let file = ctx_disk::open(path).map_err(|e| unreadable(path, e))?;
    let metadata = file.metadata().map_err(|e| unreadable(path, e))?;
    regular(path, &metadata)?;
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes).map_err(|e| unreadable(path, e))?;
    if bytes.len() as u64 > most {
        return Err(Error::new(ErrorKind::InvalidInput, "the file is too large")
            .with("path", path.display())
            .with("most", format!("{most} bytes"))
            .hint("check that it is what the engine's maker meant to ship"));
    }
    Ok((bytes, metadata))
}

fn regular(path: &Path, metadata: &Metadata) -> Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "this is no regular file")
        .with("path", path.display())
        .hint("put the file itself there"))
}

pub(super) fn unreadable(path: &Path, error: io::Error) -> Error {
    let (kind, what, hint) = match error.kind() {
        io::ErrorKind::NotFound => {
            (ErrorKind::NotFound, "a file is missing", "put it there, or install the engine anew")
        }
        _ => (ErrorKind::Io, "a file cannot be read", "check that you may read it"),
    };
    Error::new(kind, what).with("path", path.display()).hint(hint).source(error)
}

/// By what a file is known again: which it is, how large, and when it was last changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device, file number, and time of the last change of either content or rights, which no
    /// program can set back.
    #[cfg(unix)]
    identity: (u64, u64, i64, i64),
}

impl Stamp {
    fn of(path: &Path, metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt;
        Self {
            path: path.to_owned(),
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            identity: (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn check(&self) -> Result<()> {
        let metadata = self.path.symlink_metadata().map_err(|e| unreadable(&self.path, e))?;
        if Self::of(&self.path, &metadata) == *self {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Conflict, "the engine's file changed since it was checked")
            .with("path", self.path.display())
            .hint("start again, so that what is there now is checked"))
    }
}
