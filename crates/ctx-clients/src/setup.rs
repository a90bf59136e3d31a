//! Edits the configuration of a client.

use std::fs;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_disk::{FileLock, io_error};
use serde_json::Value;
use similar::TextDiff;

use crate::files::{read_text, write};
use crate::record::{self, Record, RecordedFile, RecordedSetting};
use crate::settings::ConfigFile;
use crate::{Client, Family, Format, Scope};

/// A planned change of a client's configuration. Nothing is written before [`apply`](Self::apply).
#[derive(Debug)]
pub struct Setup {
    client: Client,
    scope: Scope,
    files: Vec<FileEdit>,
}

/// A planned change of one file.
#[derive(Debug)]
pub struct FileEdit {
    /// The file. A symbolic link is followed, and stays.
    pub path: PathBuf,
    /// Its text; `None` if there is no file.
    pub before: Option<String>,
    /// Its text with the settings.
    pub after: String,
    format: Format,
    settings: Vec<RecordedSetting>,
}

/// What happens to the address of another server in a client's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OtherServer {
    /// It is an error.
    Refuse,
    /// It is replaced.
    Replace,
    /// It is replaced if it is one of these, else it is an error.
    ReplaceOneOf(Vec<String>),
}

impl FileEdit {
    /// Reads a file, without a change yet.
    fn of(path: PathBuf, format: Format) -> Result<Self> {
        check_writable(&path)?;
        let before = read_text(&path)?;
        let after = before.clone().unwrap_or_default();
        Ok(Self { path, before, after, format, settings: Vec::new() })
    }
}

impl Setup {
    /// Plans the change. `records` is the folder that [`apply`](Self::apply) stores copies in.
    ///
    /// # Errors
    ///
    /// `Corrupt` if a file is malformed; `Io` if it cannot be read or may not be written; `Conflict`
    /// if it names another server that may not be replaced, which is neither public nor from an
    /// earlier setup, or several servers with one API.
    pub fn plan(
        client: Client,
        scope: Scope,
        files: Vec<ConfigFile>,
        records: &Path,
        other: &OtherServer,
    ) -> Result<Self> {
        let written = record::settings(records, client, &scope)?;
        let mut setup = Self { client, scope, files: Vec::new() };
        for file in files {
            setup.plan_file(file, |value| {
                written.iter().any(|setting| setting.after == *value)
                    || match other {
                        OtherServer::Refuse => false,
                        OtherServer::Replace => true,
                        OtherServer::ReplaceOneOf(urls) => urls.iter().any(|url| *value == **url),
                    }
            })?;
        }
        setup.files.retain(|file| file.before.as_ref() != Some(&file.after));
        Ok(setup)
    }

    fn plan_file(&mut self, file: ConfigFile, is_replaced: impl Fn(&Value) -> bool) -> Result<()> {
        let path = target(file.path)?;
        let named = |error: Error| error.with("path", path.display());
        let known = self.files.iter().position(|edit| edit.path == path);
        let mut edit = match known {
            Some(at) => self.files.swap_remove(at),
            None => FileEdit::of(path.clone(), file.format)?,
        };
        let mut servers: Vec<(Family, Value)> = Vec::new();
        for setting in file.settings {
            let before = file.format.get(&edit.after, &setting.key).map_err(named)?;
            let is_other =
                |value: &&Value| **value != setting.value && !value.as_str().is_some_and(is_public);
            match (setting.address_of, before.as_ref()) {
                (Some(family), Some(server)) if is_other(&server) => {
                    if !is_replaced(server) {
                        return Err(named(other_server(self.client, &setting.key, family, server)));
                    }
                    if servers.iter().any(|(known, other)| *known == family && other != server) {
                        return Err(named(several_servers(self.client, family)));
                    }
                    servers.push((family, server.clone()));
                }
                // It is a choice of the user.
                (None, Some(value)) if *value != setting.value && !value.is_object() => continue,
                _ => {}
            }
            edit.after =
                file.format.set(&edit.after, &setting.key, Some(&setting.value)).map_err(named)?;
            edit.settings.push(RecordedSetting { key: setting.key, before, after: setting.value });
        }
        self.files.push(edit);
        Ok(())
    }

    /// Returns the changes; none if the client is set up already.
    #[must_use]
    pub fn files(&self) -> &[FileEdit] {
        &self.files
    }

    /// Stores the files as they are in `records`, and writes the changes.
    ///
    /// # Errors
    ///
    /// `Conflict` if a file has changed since the plan; `Io` if a file cannot be written. Files
    /// written before the error stay, and can be undone.
    pub fn apply(&self, records: &Path) -> Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        ctx_disk::create_private_dir(records)?;
        let _lock = FileLock::with_default_timeout(records)?;
        let base = record::next(records, self.client)?;
        let mut files = Vec::new();
        for file in &self.files {
            if read_text(&file.path)? != file.before {
                return Err(has_changed(&file.path));
            }
        }
        for (number, file) in self.files.iter().enumerate() {
            let backup = ctx_disk::beside(&base, &format!("-{number}.backup"));
            if let Some(before) = &file.before {
                ctx_disk::write_atomic(&backup, before.as_bytes())?;
            }
            files.push(RecordedFile {
                path: file.path.clone(),
                format: file.format,
                backup: file.before.is_some().then_some(backup),
                created: missing_folder(&file.path),
                sha256: record::hash(file.after.as_bytes()),
                settings: file.settings.clone(),
            });
        }
        let project = self.scope.project().map(Path::to_owned);
        let record = Record { client: self.client, project, files };
        let text = serde_json::to_vec_pretty(&record)
            .map_err(|cause| Error::new(ErrorKind::Io, "cannot write the record").source(cause))?;
        let stored = ctx_disk::beside(&base, ".json");
        ctx_disk::write_atomic(&stored, &text)?;
        for (number, file) in self.files.iter().enumerate() {
            let written = write(&file.path, file.after.as_bytes());
            if written.is_err() && number == 0 {
                // There is nothing to undo.
                let backups = record.files.iter().filter_map(|file| file.backup.as_ref());
                for path in backups.chain([&stored]) {
                    ctx_disk::remove(path, "cannot remove the record of the setup")?;
                }
            }
            written?;
        }
        Ok(())
    }
}

/// Returns the first folder on a path that does not exist.
fn missing_folder(path: &Path) -> Option<PathBuf> {
    path.ancestors().skip(1).take_while(|folder| !folder.exists()).last().map(Path::to_owned)
}

/// Returns the lines that change, as a unified diff; empty if there are none.
#[must_use]
pub fn diff(path: &Path, before: &str, after: &str) -> String {
    let name = path.display().to_string();
    let texts = TextDiff::from_lines(before, after);
    // Lines beside a change can have keys.
    texts.unified_diff().context_radius(0).header(&name, &name).to_string()
}

/// A rename would replace a read-only file too.
fn check_writable(path: &Path) -> Result<()> {
    let is_read_only = fs::metadata(path).is_ok_and(|found| found.permissions().readonly());
    match is_read_only {
        false => Ok(()),
        true => Err(Error::new(ErrorKind::Io, "the configuration is read-only")
            .with("path", path.display())
            .hint("make it writable, or use `ctx run`, which changes no file")),
    }
}

/// Whether an address is that of a provider's public API.
pub(crate) fn is_public(url: &str) -> bool {
    let Some(rest) = url.strip_prefix("https://") else {
        return false;
    };
    let host = rest.split(['/', ':']).next().unwrap_or_default();
    ["api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com"].contains(&host)
}

fn other_server(client: Client, key: &[String], family: Family, server: &Value) -> Error {
    let url = server.as_str().unwrap_or_default();
    let key = key.join(".");
    let message = format!("{client} sends its requests to another server already: {key} is {url}");
    Error::new(ErrorKind::Conflict, message).hint(format!(
        "`ctx serve --background --replace --upstream {}={url}` sends requests there; then repeat \
         this command, or give --replace to leave that server",
        family.name()
    ))
}

/// The proxy has one upstream for each API: the key of one server would be sent to another.
pub(crate) fn several_servers(client: Client, family: Family) -> Error {
    let name = family.name();
    let message = format!("{client} has several servers with the API of {name}");
    Error::new(ErrorKind::Conflict, message)
        .hint("set the address of one of them yourself, to the URL of `ctx serve`")
}

/// Returns the error of a file that changed between a plan and its application.
pub(crate) fn has_changed(path: &Path) -> Error {
    Error::new(ErrorKind::Conflict, "the file has changed in the meantime")
        .with("path", path.display())
        .hint("repeat the command")
}

/// Returns the file that a path leads to.
fn target(path: PathBuf) -> Result<PathBuf> {
    match fs::canonicalize(&path) {
        Ok(target) => Ok(target),
        Err(error) if fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) => {
            Err(io_error("the configuration is a link that leads to no file", &path, error)
                .hint("create the file, or remove the link"))
        }
        Err(_) => Ok(path),
    }
}
