//! What a setup changed, as stored in `$CTX_HOME/setup`: one record a setup, and beside it the bytes
//! of each file before.

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_disk::io_error;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{Client, Environment, Family, Format, Scope};

/// A setup.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Record {
    pub(crate) client: Client,
    /// The folder of the project; none for the user's configuration.
    pub(crate) project: Option<PathBuf>,
    /// The servers that the client used before, wherever their addresses are set.
    #[serde(default)]
    pub(crate) servers: Vec<(Family, String)>,
    pub(crate) files: Vec<RecordedFile>,
}

impl Record {
    pub(crate) fn settings(&self) -> impl Iterator<Item = &RecordedSetting> {
        self.files.iter().flat_map(|file| &file.settings)
    }
}

/// A file of a setup.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordedFile {
    pub(crate) path: PathBuf,
    pub(crate) format: Format,
    /// The copy of the file before; none if there was no file.
    pub(crate) backup: Option<PathBuf>,
    /// The hash of that copy; none in earlier versions.
    #[serde(default)]
    pub(crate) backup_sha256: Option<String>,
    /// The first folder on the path that did not exist; none in earlier versions.
    #[serde(default)]
    pub(crate) created: Option<PathBuf>,
    /// The hash of what was written.
    pub(crate) sha256: String,
    pub(crate) settings: Vec<RecordedSetting>,
}

/// A setting, before and after.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct RecordedSetting {
    pub(crate) key: Vec<String>,
    pub(crate) before: Option<Value>,
    pub(crate) after: Value,
}

pub(crate) fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the records of a client and a scope with their paths, oldest first. A damaged record of
/// this client is an error.
pub(crate) fn records(
    folder: &Path,
    client: Client,
    scope: &Scope,
) -> Result<Vec<(PathBuf, Record)>> {
    let project = scope.project();
    let mut found = Vec::new();
    for (path, of, record) in all(folder)? {
        if of == client {
            found.push((path, record?));
        }
    }
    found.retain(|(_, record)| record.project.as_deref() == project);
    Ok(found)
}

/// Returns the records that apply to a client in the working folder, oldest first: its own, and those
/// of others that edited one of these files.
pub(crate) fn applied(
    folder: &Path,
    client: Client,
    files: &[PathBuf],
    environment: &Environment,
) -> Result<Vec<Record>> {
    let mut found = Vec::new();
    for (_, of, record) in all(folder)? {
        match record {
            Ok(record)
                if of == client || record.files.iter().any(|file| files.contains(&file.path)) =>
            {
                found.push(record);
            }
            Err(error) if of == client => return Err(error),
            _ => {}
        }
    }
    let is_here = |project: &PathBuf| environment.folder.starts_with(project);
    found.retain(|record| record.project.as_ref().is_none_or(is_here));
    Ok(found)
}

/// Returns all records with their paths and clients, oldest first.
pub(crate) fn all(folder: &Path) -> Result<Vec<(PathBuf, Client, Result<Record>)>> {
    let paths =
        ctx_disk::list(folder).map_err(|e| io_error("cannot list the setups", folder, e))?;
    let with_client = |path: PathBuf| {
        let name = path.file_name()?.to_str()?.strip_suffix(".json")?;
        let client = name.split_once('-')?.1.parse().ok()?;
        let record = read(&path);
        Some((path, client, record))
    };
    Ok(paths.into_iter().filter_map(with_client).collect())
}

fn read(path: &Path) -> Result<Record> {
    let text = ctx_disk::read(path).map_err(|e| io_error("cannot read the setup", path, e))?;
    serde_json::from_slice(&text).map_err(|cause| {
        let copies = format!("{}-*.backup", path.with_extension("").display());
        Error::new(ErrorKind::Corrupt, "the record of a setup is damaged")
            .with("path", path.display())
            .hint(format!(
                "the configuration before the setup is {copies}; put it back, and remove the record"
            ))
            .source(cause)
    })
}

/// Returns the settings that setups of a client wrote in a scope, oldest first.
pub(crate) fn settings(
    folder: &Path,
    client: Client,
    scope: &Scope,
) -> Result<Vec<RecordedSetting>> {
    let files = records(folder, client, scope)?.into_iter().flat_map(|(_, record)| record.files);
    Ok(files.flat_map(|file| file.settings).collect())
}

/// Returns a path for the next record: `0007-codex`, to which endings are added.
pub(crate) fn next(folder: &Path, client: Client) -> Result<PathBuf> {
    let paths =
        ctx_disk::list(folder).map_err(|e| io_error("cannot list the setups", folder, e))?;
    let number =
        |path: &PathBuf| path.file_name()?.to_str()?.split('-').next()?.parse::<u32>().ok();
    let last = paths.iter().filter_map(number).max().unwrap_or_default();
    Ok(folder.join(format!("{:04}-{}", last + 1, client.id())))
}
