//! Verifies a manifest and its file before the engine is loaded.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};

use super::files::{
    Purpose, Stamp, check_rights, inside, read_engine, read_manifest, sha256_of, unreadable,
};
use super::{EngineFile, FolderKind, FoundEngine, object_file};
use crate::manifest::{Manifest, PlatformFile};

/// Runs every check on the manifest at an absolute path.
pub(super) fn verify(place: FolderKind, manifest_path: &Path) -> Result<FoundEngine> {
    check(place, manifest_path).map_err(|error| at_manifest(error, manifest_path))
}

/// Adds the manifest's path to an error that names no path.
pub(super) fn at_manifest(error: Error, path: &Path) -> Error {
    match error.context().iter().any(|(key, _)| *key == "path") {
        true => error,
        false => error.with("path", path.display()),
    }
}

fn check(place: FolderKind, manifest_path: &Path) -> Result<FoundEngine> {
    let (Some(folder), Some(name)) =
        (manifest_path.parent(), manifest_path.file_name().and_then(|name| name.to_str()))
    else {
        return Err(Error::new(ErrorKind::InvalidInput, "not the path of a manifest"));
    };
    let folder = folder.canonicalize().map_err(|e| unreadable(folder, e))?;
    check_folder(&folder)?;
    let EngineFiles { manifest, entry, path, bytes, stamp } = read(&folder, name, Purpose::Run)?;
    let at = |error: Error| error.with("path", path.display());
    let file = match &entry.library {
        Some(_) => {
            object_file::library(&bytes).map_err(at)?;
            EngineFile::Library(path.clone())
        }
        None => command(&entry, &path, &bytes).map_err(at)?,
    };
    Ok(FoundEngine { manifest, manifest_path: manifest_path.to_owned(), place, file, stamp })
}

/// A manifest and the file that it names for this machine, which belong together.
pub(super) struct EngineFiles {
    pub(super) manifest: Manifest,
    pub(super) entry: PlatformFile,
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
    pub(super) stamp: Stamp,
}

/// Reads a manifest in a canonical folder, and its file.
pub(super) fn read(folder: &Path, name: &str, purpose: Purpose) -> Result<EngineFiles> {
    let manifest = Manifest::parse(&read_manifest(&inside(folder, name)?, purpose)?)?;
    check_name(name, &manifest)?;
    manifest.check_contract()?;
    let entry = manifest.file()?.clone();
    let path = inside(folder, entry.name())?;
    let (bytes, stamp) = read_engine(&path, purpose)?;
    check_hash(&entry, &bytes).map_err(|error| error.with("path", path.display()))?;
    Ok(EngineFiles { manifest, entry, path, bytes, stamp })
}

/// Checks the folder, and that other users cannot replace a parent of it.
fn check_folder(folder: &Path) -> Result<()> {
    let metadata = folder.metadata().map_err(|e| unreadable(folder, e))?;
    check_rights(folder, &metadata)?;
    #[cfg(unix)]
    for above in folder.ancestors().skip(1) {
        use std::os::unix::fs::PermissionsExt;
        const STICKY: u32 = 0o1000;
        let metadata = above.metadata().map_err(|e| unreadable(above, e))?;
        let mode = metadata.permissions().mode();
        // In a sticky folder, such as /tmp, only the owner can move an entry.
        if mode & 0o002 != 0 && mode & STICKY == 0 {
            check_rights(above, &metadata)?;
        }
    }
    Ok(())
}

fn check_name(file: &str, manifest: &Manifest) -> Result<()> {
    if file.strip_suffix(".toml") == Some(manifest.name.as_str()) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Config, format!("the name in the manifest is '{}'", manifest.name))
        .hint(format!("the file must be named after its engine: {}.toml", manifest.name)))
}

fn check_hash(entry: &PlatformFile, bytes: &[u8]) -> Result<()> {
    let found = sha256_of(bytes);
    if found.eq_ignore_ascii_case(&entry.sha256) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Corrupt, "the SHA-256 of the file does not match the manifest")
        .with("expected", format!("sha256 {}", entry.sha256.to_ascii_lowercase()))
        .with("found", found)
        .hint("reinstall the engine; if you built this file yourself, run `ctx engines add` on it"))
}

fn command(entry: &PlatformFile, path: &Path, bytes: &[u8]) -> Result<EngineFile> {
    let args = entry.args.iter().map(OsString::from);
    let Some(interpreter) = &entry.interpreter else {
        object_file::program(bytes)?;
        check_executable(path)?;
        return Ok(EngineFile::Command { program: path.to_owned(), args: args.collect() });
    };
    let program = in_path(interpreter).ok_or_else(|| {
        Error::new(ErrorKind::NotFound, "the interpreter of the engine is missing")
            .with("interpreter", interpreter)
            .hint(format!("install {interpreter}, so that it is found in PATH"))
    })?;
    let args = std::iter::once(path.as_os_str().to_owned()).chain(args).collect();
    Ok(EngineFile::Command { program, args })
}

fn check_executable(path: &Path) -> Result<()> {
    if is_executable(path) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::InvalidInput, "the program is not executable")
        .hint(format!("chmod +x {}, or name an `interpreter` in the manifest", path.display())))
}

/// Searches the absolute folders of `PATH` for a program.
fn in_path(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let name = if cfg!(windows) { format!("{name}.exe") } else { name.to_owned() };
    std::env::split_paths(&folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&name))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return false };
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        metadata.is_file() && metadata.permissions().mode() & 0o111 != 0
    }
    #[cfg(not(unix))]
    {
        metadata.is_file()
    }
}
