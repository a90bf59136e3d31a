//! Where a client sends its requests by its configuration.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::{fmt, fs};

use ctx_core::{Error, ErrorKind, Result};
use serde_json::Value;

use crate::environment::repository;
use crate::files::read_text;
use crate::record::{Record, RecordedSetting};
use crate::settings::{ConfigFile, Setting, nearest_env};
use crate::setup::{is_public, several_servers};
use crate::{Client, Environment, Family, FileEdit, Format, Proxy, Scope, opencode, record};

/// The address of a server in the configuration of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The API of the server.
    pub family: Family,
    /// Its URL.
    pub url: String,
    /// Where it is set.
    pub source: AddressSource,
}

impl Address {
    /// Whether it is that of a provider's public API.
    #[must_use]
    pub fn is_public(&self) -> bool {
        is_public(&self.url)
    }

    /// Whether it is that of a server on this machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        let names = ["http://127.0.0.1", "http://localhost", "http://[::1]"];
        names.iter().any(|name| self.url.starts_with(name))
    }

    /// Whether something listens at a local address.
    #[must_use]
    pub fn answers(&self) -> bool {
        let host = self.url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        TcpStream::connect(host).is_ok()
    }
}

/// Where an address is set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressSource {
    /// An argument of the client.
    Argument(&'static str),
    /// An environment variable.
    Variable(&'static str),
    /// A file.
    File(PathBuf),
}

impl fmt::Display for AddressSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Argument(name) => f.write_str(name),
            Self::Variable(name) => write!(f, "${name}"),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Client {
    /// Returns the addresses that apply: of each API that of the first source, in the order of the
    /// client. None if it has the default ones.
    ///
    /// # Errors
    ///
    /// `Corrupt` if a file is malformed; `Io` if it cannot be read.
    pub fn addresses(self, environment: &Environment) -> Result<Vec<Address>> {
        self.addresses_with(environment, &[])
    }

    /// Returns the addresses that apply after edits of files.
    pub(crate) fn addresses_with(
        self,
        environment: &Environment,
        edits: &[FileEdit],
    ) -> Result<Vec<Address>> {
        let mut applied: Vec<Address> = Vec::new();
        for address in self.all_addresses(environment, edits)? {
            // Aider has one server for each API; others may have several providers in one file.
            let is_known = applied.iter().any(|known| {
                known.family == address.family
                    && (self == Self::Aider
                        || known.source != address.source
                        || known.url == address.url)
            });
            if !is_known {
                applied.push(address);
            }
        }
        Ok(applied)
    }

    /// Returns the servers that this client uses, where they are not the public ones: a proxy for one
    /// process has to send its requests there. Addresses that [`Setup`](crate::Setup) wrote are left
    /// out; `records` is its folder.
    ///
    /// # Errors
    ///
    /// Those of [`addresses`](Self::addresses), and `Conflict` if there are several servers with one
    /// API.
    pub fn upstreams(
        self,
        records: &Path,
        environment: &Environment,
    ) -> Result<Vec<(Family, String)>> {
        let settings = self.written(records, environment)?;
        let mut upstreams: Vec<(Family, String)> = Vec::new();
        for address in self.addresses(environment)? {
            if address.is_public() || is_written(&settings, &address.url) {
                continue;
            }
            if upstreams.iter().any(|(known, _)| *known == address.family) {
                return Err(several_servers(self, address.family));
            }
            upstreams.push((address.family, address.url));
        }
        Ok(upstreams)
    }

    /// Returns the servers whose addresses [`Setup`](crate::Setup) replaced by those that apply now,
    /// where they are not the public ones.
    ///
    /// # Errors
    ///
    /// Those of [`addresses`](Self::addresses).
    pub fn replaced(
        self,
        records: &Path,
        environment: &Environment,
    ) -> Result<Vec<(Family, String)>> {
        let records = self.records(records, environment)?;
        let settings: Vec<_> = records.iter().flat_map(Record::settings).cloned().collect();
        let mut addresses = self.addresses(environment)?;
        addresses.retain(|address| is_written(&settings, &address.url));
        let servers = records.iter().rev().flat_map(|record| record.servers.iter().cloned());
        let applies =
            |(family, _): &(Family, String)| addresses.iter().any(|a| a.family == *family);
        Ok(one_for_each_api(servers.filter(applies)))
    }

    /// Returns the settings that setups wrote into its files.
    pub(crate) fn written(
        self,
        records: &Path,
        environment: &Environment,
    ) -> Result<Vec<RecordedSetting>> {
        let records = self.records(records, environment)?;
        Ok(records.iter().flat_map(Record::settings).cloned().collect())
    }

    /// Returns the records of setups that edited its files.
    fn records(self, records: &Path, environment: &Environment) -> Result<Vec<Record>> {
        let addresses = self.addresses(environment)?.into_iter();
        let file = |address: Address| match address.source {
            AddressSource::File(path) => Some(fs::canonicalize(&path).unwrap_or(path)),
            _ => None,
        };
        record::applied(records, self, &addresses.filter_map(file).collect::<Vec<_>>(), environment)
    }

    /// Returns the profiles of Codex, each with the environment that selects it.
    #[must_use]
    pub fn profiles(self, environment: &Environment) -> Vec<(String, Environment)> {
        let folder = environment.folder_of("CODEX_HOME", ".codex");
        let files = match self {
            Self::Codex => ctx_disk::list(&folder).unwrap_or_default(),
            _ => Vec::new(),
        };
        let name = |path: &PathBuf| {
            Some(path.file_name()?.to_str()?.strip_suffix(".config.toml")?.to_owned())
        };
        let selected = |name: String| {
            let args = vec!["--profile".into(), name.clone().into()];
            (name, Environment { args, ..environment.clone() })
        };
        files.iter().filter_map(name).map(selected).collect()
    }

    /// Returns the addresses of all sources, in the order in which they apply.
    fn all_addresses(self, environment: &Environment, edits: &[FileEdit]) -> Result<Vec<Address>> {
        let named = |&(name, family): &(&'static str, Family)| {
            let url = environment.variable(name)?.to_owned();
            Some(Address { family, url, source: AddressSource::Variable(name) })
        };
        // A `.env` does not replace variables.
        let is_first = matches!(self, Self::Gemini | Self::Qwen);
        let variables = if self == Self::Aider { &[] } else { self.variables() };
        let (first, last): (Vec<_>, Vec<_>) = variables.iter().partition(|_| is_first);
        let mut found: Vec<_> = first.into_iter().filter_map(named).collect();
        for (source, text, file) in self.sources(environment, edits)? {
            for setting in &file.settings {
                let Some(family) = setting.address_of else { continue };
                let value = file.format.get(&text, &setting.key);
                let value = value.map_err(|error| error.with("path", &source))?;
                let url = value.as_ref().and_then(Value::as_str).map(|url| match self {
                    Self::Opencode => opencode::substituted(url, environment),
                    _ => url.to_owned(),
                });
                let Some(url) = url.filter(|url| !url.is_empty()) else { continue };
                if !url.starts_with("http://") && !url.starts_with("https://") {
                    let message =
                        format!("the address of a server of {self} is not a URL: '{url}'");
                    return Err(Error::new(ErrorKind::Capability, message)
                        .with("source", &source)
                        .hint("write the URL itself: http://... or https://..."));
                }
                found.push(Address { family, url, source: source.clone() });
            }
        }
        found.extend(last.into_iter().filter_map(named));
        Ok(found)
    }

    /// Returns the texts in which addresses can be, with their keys.
    fn sources(
        self,
        environment: &Environment,
        edits: &[FileEdit],
    ) -> Result<Vec<(AddressSource, String, ConfigFile)>> {
        let (first, files) = self.config_files(environment)?;
        let Some(first) = first else { return Ok(Vec::new()) };
        let mut sources = Vec::new();
        let given = match self {
            Self::Claude => environment.claude_settings()?,
            Self::Opencode => environment
                .variable(opencode::INLINE)
                .map(|text| (AddressSource::Variable(opencode::INLINE), text.to_owned())),
            Self::Codex => Some((AddressSource::Argument("-c"), environment.codex_settings())),
            Self::Aider => environment.flags(&[AIDER_FLAG]).last().map(|url| {
                (AddressSource::Argument(AIDER_FLAG), format!("openai-api-base: {url}"))
            }),
            _ => None,
        };
        sources.extend(given.map(|(source, text)| (source, text, first)));
        let files: Vec<_> = files.into_iter().map(|file| (None, file)).collect();
        let files = if self == Self::Aider { aider_sources(files, environment) } else { files };
        for (variable, file) in files {
            if let Some(name) = variable {
                let text = environment.variable(name).unwrap_or_default();
                sources.push((AddressSource::Variable(name), format!("{name}={text}"), file));
                continue;
            }
            let edit = edits.iter().find(|edit| edit.is_of(&file.path));
            let text = match edit {
                Some(edit) => edit.after.clone(),
                None => read_text(&file.path)?.unwrap_or_default(),
            };
            sources.push((AddressSource::File(file.path.clone()), text, file));
        }
        Ok(sources)
    }

    /// Returns the file with all settings that an argument or a variable can have too, if there is one,
    /// and the files that apply, the strongest first.
    fn config_files(
        self,
        environment: &Environment,
    ) -> Result<(Option<ConfigFile>, Vec<ConfigFile>)> {
        let mut files = Vec::new();
        for scope in [Scope::Project(environment.folder.clone()), Scope::User] {
            match self.base_url_files(&scope, &Proxy::at(""), environment) {
                Ok(found) => files.extend(found),
                // It has no such setting.
                Err(error) if error.kind() == ErrorKind::Capability => {}
                Err(error) => return Err(error),
            }
        }
        let Some(first) = files.first().cloned() else { return Ok((None, files)) };
        let at = |path: PathBuf| ConfigFile { path, ..first.clone() };
        match self {
            Self::Claude => files.insert(1, at(environment.folder.join(".claude/settings.json"))),
            Self::Codex => files.splice(0..0, environment.codex_profile().map(at)).for_each(drop),
            Self::Gemini | Self::Qwen => {
                let nearest = nearest_env(self, &environment.folder, environment);
                files = nearest.map(at).into_iter().collect();
            }
            Self::Opencode => {
                let project = Scope::Project(environment.folder.clone());
                files = opencode::files(&project, environment).into_iter().rev().map(at).collect();
            }
            Self::Aider => {
                let given = environment.flags(&["-c", "--config"]).last();
                let given = given.map(|path| environment.folder.join(path));
                let root = repository(&environment.folder).map(|root| root.join(".aider.conf.yml"));
                files.splice(1..1, root.map(at));
                files.splice(0..0, given.map(at));
                environment.check_aider(&files)?;
            }
            _ => {}
        }
        Ok((Some(first), files))
    }
}

/// Returns the first server of each API.
pub fn one_for_each_api(
    servers: impl IntoIterator<Item = (Family, String)>,
) -> Vec<(Family, String)> {
    let mut first: Vec<(Family, String)> = Vec::new();
    for server in servers {
        if first.iter().all(|(family, _)| *family != server.0) {
            first.push(server);
        }
    }
    first
}

/// Whether a setup wrote an address.
pub(crate) fn is_written(settings: &[RecordedSetting], url: &str) -> bool {
    settings.iter().any(|setting| setting.after == *url)
}

impl Environment {
    /// Returns what the argument `--settings` of Claude Code names: JSON, or a file.
    pub(crate) fn claude_settings(&self) -> Result<Option<(AddressSource, String)>> {
        let Some(given) = self.flags(&["--settings"]).last() else { return Ok(None) };
        if given.trim_start().starts_with('{') {
            return Ok(Some((AddressSource::Argument("--settings"), given.to_owned())));
        }
        let path = self.folder.join(given);
        Ok(read_text(&path)?.map(|text| (AddressSource::File(path), text)))
    }
}

/// The argument of Aider with its server, which wins over its configuration files.
const AIDER_FLAG: &str = "--openai-api-base";

/// Returns where Aider and its library have addresses from, the strongest first: configuration files
/// are between two groups of variables, each of which can be in a `.env`, which wins over the
/// environment.
fn aider_sources(configuration: Vec<AiderSource>, environment: &Environment) -> Vec<AiderSource> {
    let folders = [
        Some(environment.folder.as_path()),
        repository(&environment.folder),
        Some(&environment.home),
    ];
    let folders = folders.into_iter().flatten().map(|folder| folder.join(".env"));
    let files: Vec<_> = environment.aider_env_file().into_iter().chain(folders).collect();
    let of_variable = |(name, family): &(&'static str, Family)| {
        let file = |path: PathBuf| ConfigFile {
            path,
            format: Format::DotEnv,
            settings: vec![Setting::of_variable(name, *family)],
        };
        let mut sources: Vec<_> = files.iter().map(|path| (None, file(path.clone()))).collect();
        sources.push((Some(*name), file(PathBuf::new())));
        sources
    };
    let is_stronger = |(name, _): &&(&str, Family)| STRONG.contains(name);
    const STRONG: [&str; 2] = ["OPENAI_BASE_URL", "AIDER_OPENAI_API_BASE"];
    let (first, last): (Vec<_>, Vec<_>) = Client::Aider.variables().iter().partition(is_stronger);
    let first = first.into_iter().flat_map(of_variable);
    first.chain(configuration).chain(last.into_iter().flat_map(of_variable)).collect()
}

impl Environment {
    /// Refuses settings of Aider that set variables elsewhere.
    fn check_aider(&self, files: &[ConfigFile]) -> Result<()> {
        let refused = |name: &str, place: String| {
            let message = format!("Aider's {name} is not read");
            Err(Error::new(ErrorKind::Capability, message)
                .with("set in", place)
                .hint("put the variables into a .env of the folder"))
        };
        if self.flags(&["--set-env"]).next().is_some() || self.variable("AIDER_SET_ENV").is_some() {
            return refused("--set-env", "the arguments or AIDER_SET_ENV".to_owned());
        }
        // Aider takes the beginning of a flag for the flag.
        let args = self.args.iter().filter_map(|arg| arg.to_str()).take_while(|arg| *arg != "--");
        for name in args.filter_map(|arg| arg.split('=').next()) {
            let flags = [AIDER_FLAG, "--config", "--env-file", "--set-env"];
            let is_beginning =
                name.len() > 2 && flags.iter().any(|flag| *flag != name && flag.starts_with(name));
            if is_beginning || name.starts_with("-c") && name.len() > 2 {
                return refused(name, "the arguments, where it has to be written out".to_owned());
            }
        }
        for file in files {
            let text = read_text(&file.path)?.unwrap_or_default();
            let is_key = |name: &&&str| {
                text.lines()
                    .any(|line| line.trim_start_matches(['"', '\'', ' ']).starts_with(**name))
            };
            if let Some(name) = ["set-env", "env-file"].iter().find(is_key) {
                return refused(name, file.path.display().to_string());
            }
        }
        Ok(())
    }

    /// Returns the file of variables that wins over the others: the one that is named, else that of
    /// the repository.
    pub(crate) fn aider_env_file(&self) -> Option<PathBuf> {
        let named = self.flags(&["--env-file"]).last().or(self.variable("AIDER_ENV_FILE"));
        match named {
            Some(path) => Some(self.folder.join(path)),
            None => Some(repository(&self.folder)?.join(".env")),
        }
    }
}

/// A file, or the environment variable with this name.
type AiderSource = (Option<&'static str>, ConfigFile);
