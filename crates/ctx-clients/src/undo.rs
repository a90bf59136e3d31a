//! Undoes setups.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_disk::{FileLock, io_error};

use crate::files::{read, write};
use crate::record::{self, Record, RecordedFile};
use crate::setup::has_changed;
use crate::{Client, Scope};

/// Planned restorations of a client's files. Nothing is written before [`apply`](Self::apply).
#[derive(Debug, Default)]
pub struct Undo {
    files: BTreeMap<PathBuf, Restoration>,
    records: Vec<PathBuf>,
    backups: Vec<PathBuf>,
}

/// A planned restoration of one file.
#[derive(Debug)]
pub struct Restoration {
    /// The bytes of the file now; `None` if it does not exist.
    pub now: Option<Vec<u8>>,
    /// Its bytes after the restoration.
    pub restored: Option<Vec<u8>>,
    /// Whether the file was edited after the setup: its settings are then taken back one by one.
    pub is_edited: bool,
    /// The copy of the file before the setup.
    pub backup: Option<PathBuf>,
    /// The settings that were changed after the setup, and stay.
    pub kept: Vec<String>,
    /// The first folder on the path that the setup created.
    created: Option<PathBuf>,
}

impl Undo {
    /// Plans to undo all setups of a client in a scope.
    ///
    /// # Errors
    ///
    /// `Io` if a file or a copy cannot be read; `Corrupt` if a record is damaged, or an edited file
    /// is malformed.
    pub fn plan(records: &Path, client: Client, scope: &Scope) -> Result<Self> {
        let mut undo = Self::default();
        for (path, record) in record::records(records, client, scope)?.into_iter().rev() {
            for file in &record.files {
                undo.take(file)?;
            }
            undo.records.push(path);
        }
        Ok(undo)
    }

    /// Returns the clients that have a setup in a scope.
    ///
    /// # Errors
    ///
    /// `Io` if the folder cannot be read. A client with a damaged record is returned for each scope.
    pub fn clients(records: &Path, scope: &Scope) -> Result<BTreeSet<Client>> {
        let is_in_scope = |record: &Record| record.project.as_deref() == scope.project();
        let all = record::all(records)?.into_iter();
        let in_scope = all.filter(|(.., record)| record.as_ref().map_or(true, is_in_scope));
        Ok(in_scope.map(|(_, client, _)| client).collect())
    }

    /// Returns the setups of projects, by client and folder of the project, with the newest record.
    /// Damaged records are left out.
    ///
    /// # Errors
    ///
    /// `Io` if the folder cannot be read.
    pub fn projects(records: &Path) -> Result<BTreeMap<(Client, PathBuf), PathBuf>> {
        let all = record::all(records)?.into_iter();
        let of_project = |(path, client, record): (_, _, Result<Record>)| {
            Some(((client, record.ok()?.project?), path))
        };
        Ok(all.filter_map(of_project).collect())
    }

    fn take(&mut self, file: &RecordedFile) -> Result<()> {
        let known = self.files.remove(&file.path);
        let mut restoration = match known {
            Some(known) => known,
            None => {
                let now = read(&file.path)?;
                let restored = now.clone();
                Restoration {
                    restored,
                    now,
                    is_edited: false,
                    backup: None,
                    kept: Vec::new(),
                    created: None,
                }
            }
        };
        let before = match &file.backup {
            Some(backup) => {
                let bytes = ctx_disk::read(backup);
                let bytes =
                    bytes.map_err(|e| io_error("cannot read the copy of the file", backup, e))?;
                let hash = record::hash(&bytes);
                if file.backup_sha256.as_ref().is_some_and(|recorded| *recorded != hash) {
                    let message = "the copy of the file before the setup was changed";
                    return Err(Error::new(ErrorKind::Corrupt, message)
                        .with("path", backup.display())
                        .hint("take the settings of ctx out of the file yourself"));
                }
                Some(bytes)
            }
            None => None,
        };
        let written = restoration.restored.as_deref().map(record::hash);
        if written.as_ref() == Some(&file.sha256) {
            restoration.restored = before;
        } else if restoration.restored != before {
            restoration.is_edited = true;
            restoration.restored = without(file, restoration.restored, &mut restoration.kept)?;
        }
        self.backups.extend(file.backup.clone());
        restoration.backup.clone_from(&file.backup);
        restoration.created.clone_from(&file.created);
        self.files.insert(file.path.clone(), restoration);
        Ok(())
    }

    /// Returns the files, by path; none without a setup.
    #[must_use]
    pub fn files(&self) -> &BTreeMap<PathBuf, Restoration> {
        &self.files
    }

    /// Restores the files, and removes the records. The copies of edited files stay.
    ///
    /// # Errors
    ///
    /// `Conflict` if a file has changed since the plan; `Io` if a file cannot be written. The records
    /// then stay.
    pub fn apply(&self, records: &Path) -> Result<()> {
        if self.records.is_empty() {
            return Ok(());
        }
        let _lock = FileLock::with_default_timeout(records)?;
        for (path, file) in &self.files {
            if read(path)? != file.now {
                return Err(has_changed(path));
            }
        }
        for (path, file) in self.files.iter().filter(|(_, file)| file.now != file.restored) {
            match &file.restored {
                Some(bytes) => write(path, bytes)?,
                None => {
                    ctx_disk::remove(path, "cannot remove the configuration")?;
                    remove_empty(path, file.created.as_deref());
                }
            }
        }
        for record in &self.records {
            ctx_disk::remove(record, "cannot remove the record of the setup")?;
        }
        let stay = |backup: &&PathBuf| {
            !self.files.values().any(|file| file.is_edited && file.backup.as_ref() == Some(*backup))
        };
        for backup in self.backups.iter().filter(stay) {
            ctx_disk::remove(backup, "cannot remove the copy of the configuration")?;
        }
        // It stays if something is in it.
        let _ = std::fs::remove_dir(records);
        Ok(())
    }
}

/// Removes the folders of a path from the innermost one to `first`, as far as they are empty.
fn remove_empty(path: &Path, first: Option<&Path>) {
    let Some(first) = first else { return };
    let mut created = path.ancestors().skip(1).take_while(|folder| folder.starts_with(first));
    // It fails for a folder that has something in it.
    while created.next().is_some_and(|folder| std::fs::remove_dir(folder).is_ok()) {}
}

/// Returns an edited file without the settings of the setup. Settings with another value stay, and
/// are added to `kept`.
fn without(
    file: &RecordedFile,
    bytes: Option<Vec<u8>>,
    kept: &mut Vec<String>,
) -> Result<Option<Vec<u8>>> {
    let Some(bytes) = bytes else { return Ok(None) };
    let Ok(mut text) = String::from_utf8(bytes.clone()) else { return Ok(Some(bytes)) };
    for setting in &file.settings {
        let named = |error: ctx_core::Error| error.with("path", file.path.display());
        match file.format.get(&text, &setting.key).map_err(named)? {
            Some(value) if value == setting.after => {
                let before = setting.before.as_ref();
                text = file.format.set(&text, &setting.key, before).map_err(named)?;
            }
            Some(value) if setting.before.as_ref() != Some(&value) => {
                kept.push(setting.key.join("."));
            }
            _ => {}
        }
    }
    Ok(Some(text.into_bytes()))
}
