//! Edits the configuration of a client.

use std::fs;
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_disk::{FileLock, io_error};
use serde_json::Value;
use similar::TextDiff;

use crate::addresses::{AddressSource, is_written, one_for_each_api};
use crate::files::{read_text, write};
use crate::record::{self, Record, RecordedFile, RecordedSetting};
use crate::settings::ConfigFile;
use crate::{Client, Environment, Family, Format, Proxy, Scope, opencode};

/// A planned change of a client's configuration. Nothing is written before [`apply`](Self::apply).
#[derive(Debug)]
pub struct Setup {
    client: Client,
    scope: Scope,
    files: Vec<FileEdit>,
    /// The servers whose addresses are replaced in the files.
    replaced: Vec<(Family, String)>,
}

/// A planned change of one file.
#[derive(Debug)]
pub struct FileEdit {
    /// The file. A symbolic link is followed, and stays.
    pub path: PathBuf,
    /// Its text; `None` if it does not exist.
    pub before: Option<String>,
    /// Its text with the settings.
    pub after: String,
    format: Format,
    settings: Vec<RecordedSetting>,
}

impl FileEdit {
    /// Reads a file, without a change yet.
    fn of(path: PathBuf, format: Format) -> Result<Self> {
        check_writable(&path)?;
        let before = read_text(&path)?;
        let after = before.clone().unwrap_or_default();
        Ok(Self { path, before, after, format, settings: Vec::new() })
    }

    /// Whether it is an edit of the file to which a path leads.
    pub(crate) fn is_of(&self, path: &Path) -> bool {
        self.path == path || fs::canonicalize(path).is_ok_and(|target| target == self.path)
    }
}

impl Setup {
    /// Plans the change. `records` is the folder that [`apply`](Self::apply) stores copies in.
    ///
    /// # Errors
    ///
    /// `Corrupt` if a file is malformed; `Io` if it cannot be read or may not be written; `Conflict`
    /// if it names several servers with one API.
    pub fn plan(
        client: Client,
        scope: Scope,
        files: Vec<ConfigFile>,
        records: &Path,
    ) -> Result<Self> {
        let written = record::settings(records, client, &scope)?;
        let mut setup = Self { client, scope, files: Vec::new(), replaced: Vec::new() };
        for file in files {
            setup.plan_file(file, &written)?;
        }
        setup.files.retain(|file| file.before.as_ref() != Some(&file.after));
        Ok(setup)
    }

    fn plan_file(&mut self, file: ConfigFile, written: &[RecordedSetting]) -> Result<()> {
        let path = target(file.path)?;
        let named = |error: Error| error.with("path", path.display());
        let known = self.files.iter().position(|edit| edit.path == path);
        let mut edit = match known {
            Some(at) => self.files.swap_remove(at),
            None => FileEdit::of(path.clone(), file.format)?,
        };
        for setting in file.settings {
            let before = file.format.get(&edit.after, &setting.key).map_err(named)?;
            let other = before.as_ref().filter(|value| **value != setting.value);
            match setting.address_of {
                Some(family) => {
                    let own = setting.value.as_str().map(Proxy::at);
                    let url = other.and_then(Value::as_str).filter(|url| {
                        let is_own = own.as_ref().is_some_and(|own| own.is_at(url));
                        !url.is_empty() && !is_public(url) && !is_own && !is_written(written, url)
                    });
                    self.add_replaced(family, url).map_err(named)?;
                }
                // It is a choice of the user.
                None if other.is_some_and(|value| !value.is_object()) => continue,
                None => {}
            }
            edit.after =
                file.format.set(&edit.after, &setting.key, Some(&setting.value)).map_err(named)?;
            edit.settings.push(RecordedSetting { key: setting.key, before, after: setting.value });
        }
        self.files.push(edit);
        Ok(())
    }

    fn add_replaced(&mut self, family: Family, url: Option<&str>) -> Result<()> {
        let Some(url) = url else { return Ok(()) };
        let known = self.replaced.iter().find(|(known, _)| *known == family);
        if known.is_some_and(|(_, known)| known != url) {
            return Err(several_servers(self.client, family));
        }
        self.replaced.push((family, url.to_owned()));
        Ok(())
    }

    /// Returns the servers that the client uses now and would not use afterwards, each once. Those of
    /// the public APIs and the proxy are left out.
    ///
    /// # Errors
    ///
    /// Those of [`Client::addresses`].
    pub fn lost_servers(
        &self,
        records: &Path,
        environment: &Environment,
    ) -> Result<Vec<(Family, String)>> {
        let after = self.client.addresses_with(environment, &self.files)?;
        let mut lost = self.servers(records, environment)?;
        lost.retain(|(_, url)| after.iter().all(|address| address.url != *url));
        Ok(lost)
    }

    /// Returns the servers to record: those that the client would not use afterwards, those of
    /// variables, which may be unset later, and those that an earlier setup recorded.
    ///
    /// # Errors
    ///
    /// Those of [`Client::addresses`].
    pub fn servers_before(
        &self,
        records: &Path,
        environment: &Environment,
    ) -> Result<Vec<(Family, String)>> {
        let lost = self.lost_servers(records, environment)?;
        let now = self.client.addresses(environment)?.into_iter();
        let of_variables = now.filter(|found| matches!(found.source, AddressSource::Variable(_)));
        let of_variables: Vec<_> = of_variables.map(|found| found.url).collect();
        let known = self.servers(records, environment)?.into_iter();
        let known = known.filter(|(_, url)| of_variables.contains(url));
        let recorded = self.client.replaced(records, environment)?;
        Ok(one_for_each_api(lost.into_iter().chain(known).chain(recorded)))
    }

    /// Returns the servers that the client uses now or that the files have, each once.
    fn servers(&self, records: &Path, environment: &Environment) -> Result<Vec<(Family, String)>> {
        let written = self.client.written(records, environment)?;
        let now = self.client.addresses(environment)?.into_iter();
        let now = now.map(|address| (address.family, address.url));
        let settings = self.files.iter().flat_map(|file| &file.settings);
        let proxies: Vec<_> = settings.filter_map(|s| s.after.as_str()).map(Proxy::at).collect();
        let replaced = self.replaced.iter().map(|(family, url)| match self.client {
            Client::Opencode => (*family, opencode::substituted(url, environment)),
            _ => (*family, url.clone()),
        });
        let mut servers: Vec<(Family, String)> = Vec::new();
        for server in now.chain(replaced) {
            let url = &server.1;
            let is_other = !url.is_empty()
                && !is_public(url)
                && !is_written(&written, url)
                && !proxies.iter().any(|proxy| proxy.is_at(url));
            if is_other && !servers.contains(&server) {
                servers.push(server);
            }
        }
        Ok(servers)
    }

    /// Returns the changes; none if the client is set up already.
    #[must_use]
    pub fn files(&self) -> &[FileEdit] {
        &self.files
    }

    /// Stores the files as they are in `records`, with the servers that the client used, and writes
    /// the changes.
    ///
    /// # Errors
    ///
    /// `Conflict` if a file has changed since the plan; `Io` if a file cannot be written. Files
    /// written before the error stay, and can be undone.
    pub fn apply(&self, records: &Path, servers: &[(Family, String)]) -> Result<()> {
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
                backup_sha256: file.before.as_ref().map(|text| record::hash(text.as_bytes())),
                created: missing_folder(&file.path),
                sha256: record::hash(file.after.as_bytes()),
                settings: file.settings.clone(),
            });
        }
        let project = self.scope.project().map(Path::to_owned);
        let servers = servers.to_vec();
        let record = Record { client: self.client, project, servers, files };
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
