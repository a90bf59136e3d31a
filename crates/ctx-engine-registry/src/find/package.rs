//! An engine to be installed: its file and its manifest, read and checked in place.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_engine_sdk::protocol::PROTOCOL;

use super::files::{Purpose, read_engine, sha256_of, unreadable};
use super::object_file::{self, FileKind, kind_of};
use super::verify::{EngineFiles, at_manifest, read};
use crate::manifest::{MANIFEST_VERSION, Manifest, PlatformFile, this_platform};
use crate::{EngineName, Slot};

/// An engine to be installed.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its manifest, either original or generated.
    pub manifest: Manifest,
    /// Whether it had a manifest.
    pub has_manifest: bool,
    /// The kind of its file.
    pub kind: FileKind,
    /// The current path of its file.
    pub path: PathBuf,
    bytes: Vec<u8>,
}

impl Package {
    /// Reads a folder with a manifest, or a file: a library, a program or a script. Runs none of
    /// it. Accepts files that others can write to: by installing an engine, the user trusts its
    /// current contents. `name` is the name of the engine in a file; `None` derives it from the
    /// file name.
    ///
    /// # Errors
    ///
    /// See [`Search::find`](super::Search::find); `InvalidInput` for an invalid name, for a name
    /// given with a folder, and for a folder with no manifest or several.
    pub fn read(path: &Path, name: Option<&str>) -> Result<Self> {
        let path = path.canonicalize().map_err(|e| unreadable(path, e))?;
        match path.is_dir() {
            true if name.is_some() => {
                Err(Error::new(ErrorKind::InvalidInput, "the name is set by the manifest")
                    .with("path", path.display())
                    .hint("omit the name, or give the engine's file instead of its folder"))
            }
            true => of_folder(&path),
            false => of_file(&path, name),
        }
    }

    /// Returns the SHA-256 of its file.
    pub fn sha256(&self) -> String {
        sha256_of(&self.bytes)
    }

    /// Returns the name of its file.
    pub fn file_name(&self) -> &str {
        self.manifest.file().map_or("", PlatformFile::name)
    }

    /// Writes file and manifest into an existing, empty folder. Only its owner can read or write
    /// them. The bytes are those that were checked.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub fn write_into(&self, folder: &Path) -> Result<()> {
        let text = self.manifest.to_toml()?;
        let mode = if self.kind == FileKind::Library { 0o600 } else { 0o700 };
        write(&folder.join(self.file_name()), &self.bytes, mode)?;
        write(&folder.join(format!("{}.toml", self.manifest.name)), text.as_bytes(), 0o600)
    }
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    use std::io::Write;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let written = options.open(path).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    written.map_err(|e| {
        Error::new(ErrorKind::Io, "the engine cannot be written")
            .with("path", path.display())
            .hint("check the free space and the write permission")
            .source(e)
    })
}

fn of_folder(folder: &Path) -> Result<Package> {
    let path = manifest_in(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let files = read(folder, &name, Purpose::Copy).map_err(|error| at_manifest(error, &path))?;
    let EngineFiles { manifest, entry, path, bytes, .. } = files;
    let at = |error: Error| error.with("path", path.display());
    let kind = match (&entry.library, &entry.interpreter) {
        (Some(_), _) => object_file::library(&bytes).map(|()| FileKind::Library).map_err(at)?,
        (None, Some(_)) => FileKind::Script,
        (None, None) => {
            object_file::program(&bytes).map_err(at)?;
            if bytes.starts_with(b"#!") { FileKind::Script } else { FileKind::Program }
        }
    };
    Ok(Package { manifest, has_manifest: true, kind, path, bytes })
}

/// Returns the manifest of a folder: the manifest with the folder's name, or the only manifest.
fn manifest_in(folder: &Path) -> Result<PathBuf> {
    let own = folder.file_name().map(|name| {
        let mut name = name.to_owned();
        name.push(".toml");
        folder.join(name)
    });
    if let Some(own) = own.filter(|own| own.is_file()) {
        return Ok(own);
    }
    let items = fs::read_dir(folder).map_err(|e| unreadable(folder, e))?;
    let mut found: Vec<_> = items
        .filter_map(|item| Some(item.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|ending| ending == "toml"))
        .take(2)
        .collect();
    match (found.pop(), found.is_empty()) {
        (Some(only), true) => Ok(only),
        (None, _) => Err(Error::new(ErrorKind::NotFound, "the folder has no manifest NAME.toml")
            .with("path", folder.display())
            .hint("give the library or the program itself: a manifest is generated for it")),
        (Some(_), false) => {
            Err(Error::new(ErrorKind::InvalidInput, "the folder has more than one .toml file")
                .with("path", folder.display())
                .hint("name the folder after the manifest to use"))
        }
    }
}

fn of_file(path: &Path, name: Option<&str>) -> Result<Package> {
    let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (bytes, _) = read_engine(path, Purpose::Copy)?;
    let kind = kind_of(file_name, &bytes).map_err(|e| e.with("path", path.display()))?;
    if kind == FileKind::Library {
        object_file::library(&bytes).map_err(|e| e.with("path", path.display()))?;
    }
    let name = match name {
        Some(name) => EngineName::new(name)?,
        None => EngineName::new(name_of(file_name)).map_err(|error| {
            let name = "set a name with --name: the id that the engine returns from `hello`";
            Error::new(ErrorKind::InvalidInput, error.to_string()).hint(name)
        })?,
    };
    let (library, command) = match kind {
        FileKind::Library => (Some(file_name.to_owned()), None),
        FileKind::Program | FileKind::Script => (None, Some(file_name.to_owned())),
    };
    let entry =
        PlatformFile { library, command, sha256: sha256_of(&bytes), ..PlatformFile::default() };
    let platform = if kind == FileKind::Script { "any".to_owned() } else { this_platform() };
    let manifest = Manifest {
        manifest_version: MANIFEST_VERSION,
        name,
        version: "unknown".to_owned(),
        license: String::new(),
        about: format!("added from {file_name}")
            .chars()
            .filter(|c| !c.is_control())
            .take(200)
            .collect(),
        slot: Slot::ContextEngine,
        contract: vec![PROTOCOL.to_owned()],
        base: None,
        platform: BTreeMap::from([(platform, entry)]),
    };
    // The manifest must be readable again: a file may have a name that manifests do not allow.
    manifest.to_toml().map_err(|e| e.with("path", path.display()))?;
    Ok(Package { manifest, has_manifest: false, kind, path: path.to_owned(), bytes })
}

/// Derives a name: `libsliding_window.so` becomes `sliding-window`.
fn name_of(file_name: &str) -> String {
    let stem = file_name.split('.').next().unwrap_or_default();
    let stem = match file_name.contains(".so") || file_name.ends_with(".dylib") {
        true => stem.strip_prefix("lib").unwrap_or(stem),
        false => stem,
    };
    stem.to_ascii_lowercase().replace('_', "-")
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::find::Search;
    use crate::find::tests::{WITH_ENTRY, compiled};

    #[test]
    fn a_library_is_found_by_its_generated_manifest() {
        let (from, to) = (tempfile::TempDir::new().unwrap(), tempfile::TempDir::new().unwrap());
        let library = from.path().join("libMy_window.so");
        fs::write(&library, compiled(WITH_ENTRY)).unwrap();
        // The user who installs it trusts its current contents; in the target folder only the user
        // can write.
        fs::set_permissions(&library, fs::Permissions::from_mode(0o666)).unwrap();
        let package = Package::read(&library, None).unwrap();
        assert_eq!((package.kind, package.has_manifest), (FileKind::Library, false));
        assert_eq!(package.manifest.name.as_str(), "my-window");
        let engine = to.path().join("my-window");
        fs::create_dir(&engine).unwrap();
        fs::set_permissions(&engine, fs::Permissions::from_mode(0o700)).unwrap();
        package.write_into(&engine).unwrap();
        let found = Search::default().with_list(to.path().as_os_str()).find("my-window").unwrap();
        assert_eq!(found.manifest, package.manifest);
        // An installed engine can be installed again from its folder.
        let again = Package::read(&engine, None).unwrap();
        assert!(again.has_manifest);
        assert_eq!(again.sha256(), package.sha256());
        assert_eq!(package.write_into(&engine).unwrap_err().kind(), ErrorKind::Io);
    }

    #[test]
    fn a_folder_needs_one_unambiguous_manifest() {
        let folder = tempfile::TempDir::new().unwrap();
        let read = || Package::read(folder.path(), None).unwrap_err();
        assert_eq!(read().kind(), ErrorKind::NotFound);
        fs::write(folder.path().join("a.toml"), "").unwrap();
        assert!(read().to_string().contains("invalid manifest:"));
        fs::write(folder.path().join("b.toml"), "").unwrap();
        assert!(read().to_string().contains("more than one"));
        assert!(read().hint_text().is_some());
    }

    #[test]
    fn names_are_derived_from_file_names() {
        for (file, name) in [
            ("libsliding_window.so", "sliding-window"),
            ("liblossless.dylib", "lossless"),
            ("lossless.dll", "lossless"),
            ("library-of-mine", "library-of-mine"),
            ("Echo.py", "echo"),
        ] {
            assert_eq!(name_of(file), name);
        }
    }
}
