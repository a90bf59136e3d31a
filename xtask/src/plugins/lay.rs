//! Writes a built engine and its manifest into a folder.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use ctx_engine_registry::find::sha256_of;
use ctx_engine_registry::manifest::{MANIFEST_VERSION, Manifest, PlatformFile, this_platform};
use ctx_engine_registry::{EngineName, Slot};

use super::build::{Built, Carrier};

/// Replaces `folder/NAME/` with a folder of the file and `NAME.toml`. Both are new files, because a
/// host may have the old ones loaded.
pub(super) fn lay(folder: &Path, built: &Built) -> Result<()> {
    let folder = folder.join(&built.name);
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .with_context(|| format!("cannot remove {}", folder.display()))?;
    }
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    set_mode(&folder, 0o755)?;
    let rights = if built.carrier == Carrier::Library { 0o644 } else { 0o755 };
    write(&folder.join(&built.file_name), &built.bytes, rights)?;
    let manifest = manifest(built)?.to_toml()?;
    write(&folder.join(format!("{}.toml", built.name)), manifest.as_bytes(), 0o644)
}

fn manifest(built: &Built) -> Result<Manifest> {
    let mut file = PlatformFile { sha256: sha256_of(&built.bytes), ..PlatformFile::default() };
    let name = Some(built.file_name.clone());
    let mut platform = this_platform();
    match built.carrier {
        Carrier::Library => file.library = name,
        Carrier::Process => file.command = name,
        Carrier::Script(interpreter) => {
            (file.command, file.interpreter) = (name, Some(interpreter.into()));
            platform = "any".into();
        }
    }
    Ok(Manifest {
        manifest_version: MANIFEST_VERSION,
        name: EngineName::new(&built.name)?,
        version: env!("CARGO_PKG_VERSION").into(),
        license: "MIT OR Apache-2.0".into(),
        about: built.about.clone(),
        slot: Slot::default(),
        contract: vec!["1.0".into()],
        base: None,
        platform: BTreeMap::from([(platform, file)]),
    })
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    fs::write(path, bytes).with_context(|| format!("cannot write {}", path.display()))?;
    set_mode(path, mode)
}

/// Sets the mode of a file or folder, whatever the umask: hosts reject an engine to which others
/// than the owner may write.
fn set_mode(path: &Path, mode: u32) -> Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .with_context(|| format!("cannot set the mode of {}", path.display()))?;
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
    Ok(())
}
