//! Trusted files: their real location, who can write to them, and their contents.

use std::fs::Metadata;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use ctx_core::{Error, ErrorKind, Result};
use sha2::{Digest, Sha256};

/// Larger manifests are rejected.
const MAX_MANIFEST_BYTES: u64 = 64 * 1024;

/// Larger engine files are rejected; they are read into memory.
const MAX_FILE_BYTES: u64 = 512 * 1024 * 1024;

/// Returns the SHA-256 of some bytes, in hexadecimal.
pub fn sha256_of(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the path of a file in the canonical folder `folder`, with all links followed. The result
/// must lie in the folder as well.
pub(super) fn inside(folder: &Path, name: &str) -> Result<PathBuf> {
    let path = folder.join(name);
    let real = path.canonicalize().map_err(|e| unreadable(&path, e))?;
    if real.parent() == Some(folder) {
        return Ok(real);
    }
    Err(Error::new(ErrorKind::InvalidInput, "a link leads out of the engine's folder")
        .with("path", path.display())
        .with("target", real.display())
        .hint("put the file itself next to the manifest"))
}

/// Rejects files of a user other than the current one and root, and files that the group or others
/// can write to: these users could replace the contents. Rejects nothing on systems other than
/// Unix.
pub(super) fn check_rights(path: &Path, metadata: &Metadata) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt, PermissionsExt};
        if !is_trusted(metadata.uid(), rustix::process::geteuid().as_raw()) {
            return Err(Error::new(ErrorKind::InvalidInput, "owned by another user")
                .with("path", path.display())
                .with("owner", metadata.uid())
                .hint("if you trust its contents, install your own copy: `ctx engines add`"));
        }
        let mode = metadata.permissions().mode();
        if mode & 0o6000 != 0 {
            return Err(Error::new(ErrorKind::InvalidInput, "set-user-ID or set-group-ID bit set")
                .with("path", path.display())
                .with("mode", format!("{:04o}", mode & 0o7777))
                .hint(format!("an engine needs no such bits: chmod ug-s {}", path.display())));
        }
        let who = match mode & 0o022 {
            0 => return Ok(()),
            0o020 => "its group",
            _ => "everybody",
        };
        Err(Error::new(ErrorKind::InvalidInput, format!("writable by {who}"))
            .with("path", path.display())
            .with("mode", format!("{:04o}", mode & 0o7777))
            .hint(format!("if you trust its contents: chmod go-w {}", path.display())))
    }
    #[cfg(not(unix))]
    {
        let _ = (path, metadata);
        Ok(())
    }
}

/// Whether files of `owner` are trusted: files of root are trusted, as root can do anything anyway.
#[cfg(unix)]
pub(super) fn is_trusted(owner: u32, own: u32) -> bool {
    owner == 0 || owner == own
}

/// Why a file is read. Only files that are run must not be writable by other users.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Run,
    Copy,
}

/// Reads a manifest.
pub(super) fn read_manifest(path: &Path, purpose: Purpose) -> Result<String> {
    let (bytes, _) = read(path, MAX_MANIFEST_BYTES, purpose)?;
    String::from_utf8(bytes).map_err(|e| {
        Error::new(ErrorKind::Config, "the manifest is not UTF-8 text")
            .with("path", path.display())
            .hint("a manifest is TOML, in UTF-8")
            .source(e)
    })
}

/// Reads an engine's file: its bytes, and the stamp that identifies it later.
pub(super) fn read_engine(path: &Path, purpose: Purpose) -> Result<(Vec<u8>, Stamp)> {
    let (bytes, metadata) = read(path, MAX_FILE_BYTES, purpose)?;
    Ok((bytes, Stamp::of(path, &metadata)))
}

/// Reads a regular file. The metadata belongs to the file that was read, even if it was replaced
/// meanwhile.
fn read(path: &Path, most: u64, purpose: Purpose) -> Result<(Vec<u8>, Metadata)> {
    // Checked before opening: opening a named pipe would block.
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
            .with("limit", format!("{most} bytes"))
            .hint("check that it is the file that the engine's author shipped"));
    }
    if purpose == Purpose::Run {
        check_rights(path, &metadata)?;
    }
    Ok((bytes, metadata))
}

fn regular(path: &Path, metadata: &Metadata) -> Result<()> {
    if metadata.is_file() {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "not a regular file")
        .with("path", path.display())
        .hint("put the file itself there"))
}

pub(super) fn unreadable(path: &Path, error: io::Error) -> Error {
    let (kind, what, hint) = match error.kind() {
        io::ErrorKind::NotFound => {
            (ErrorKind::NotFound, "a file is missing", "restore it, or reinstall the engine")
        }
        _ => (ErrorKind::Io, "a file cannot be read", "check that it is readable"),
    };
    Error::new(kind, what).with("path", path.display()).hint(hint).source(error)
}

/// Identifies a file and its state: inode, size, and time of the last change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) path: PathBuf,
    bytes: u64,
    modified: Option<SystemTime>,
    /// Device, inode, and time of the last change of content or permissions, which programs cannot
    /// set back.
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

    pub(super) fn check(&self) -> Result<()> {
        let metadata = self.path.symlink_metadata().map_err(|e| unreadable(&self.path, e))?;
        if Self::of(&self.path, &metadata) == *self {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Conflict, "the engine's file changed since it was checked")
            .with("path", self.path.display())
            .hint("restart ctx, so that it checks the new file"))
    }
}
