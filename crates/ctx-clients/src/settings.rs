//! Which keys of which files point a client at the proxy.

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use serde_json::{Value, json};

use crate::opencode::opencode_providers;
use crate::providers::{Provider, codex_provider, openclaw_providers, pi_providers};
use crate::{Client, Environment, Family, Format, Proxy, Scope, opencode};

/// A configuration file of a client, with the settings that it gets.
#[derive(Clone, Debug, PartialEq)]
pub struct ConfigFile {
    /// Its path.
    pub path: PathBuf,
    /// Its format.
    pub format: Format,
    /// The settings.
    pub settings: Vec<Setting>,
}

/// A key and its value.
#[derive(Clone, Debug, PartialEq)]
pub struct Setting {
    /// The names from the root of the file to the value.
    pub key: Vec<String>,
    /// The value.
    pub value: Value,
    /// The API whose address the value is; `None` for other settings.
    pub address_of: Option<Family>,
}

impl Setting {
    fn new(key: &[&str], value: impl Into<Value>) -> Self {
        let key = key.iter().map(|name| (*name).to_owned()).collect();
        Self { key, value: value.into(), address_of: None }
    }

    fn address(key: &[&str], family: Family, proxy: (Client, &Proxy)) -> Self {
        let url = base_url(proxy.0, family, proxy.1);
        Self { address_of: Some(family), ..Self::new(key, url) }
    }

    /// Returns an environment variable with an address, without a value.
    pub(crate) fn of_variable(name: &str, family: Family) -> Self {
        Self { address_of: Some(family), ..Self::new(&[name], Value::Null) }
    }
}

/// Returns the base URL as a client expects it: some append the version of the API themselves.
pub(crate) fn base_url(client: Client, family: Family, proxy: &Proxy) -> String {
    let version = match (client, family) {
        (Client::Opencode | Client::Pi, Family::Gemini) => "/v1beta",
        (_, Family::OpenAi) => "/v1",
        (Client::Opencode | Client::Openclaw, Family::Anthropic) => "/v1",
        _ => "",
    };
    format!("{}{version}", proxy.url())
}

impl Client {
    /// Returns the files and settings that point this client at the proxy.
    ///
    /// # Errors
    ///
    /// `Capability` if the client has no such setting in this scope.
    pub fn base_url_files(
        self,
        scope: &Scope,
        proxy: &Proxy,
        environment: &Environment,
    ) -> Result<Vec<ConfigFile>> {
        let at = |key: &[&str], family| Setting::address(key, family, (self, proxy));
        let of_providers = |found: Vec<Provider>, before: &[&str], after: &[&str]| {
            let setting =
                |(name, family): &Provider| at(&[before, &[name], after].concat(), *family);
            (Format::Json, found.iter().map(setting).collect())
        };
        let path = self.settings_path(scope, environment)?;
        let (format, settings) = match self {
            Self::Claude => (
                Format::Json,
                vec![
                    at(&["env", "ANTHROPIC_BASE_URL"], Family::Anthropic),
                    Setting::new(&["env", "ENABLE_TOOL_SEARCH"], "true"),
                ],
            ),
            Self::Codex => {
                let provider = codex_provider(&path, environment)?;
                let key: Vec<&str> = match &provider {
                    Some(name) => vec!["model_providers", name, "base_url"],
                    None => vec!["openai_base_url"],
                };
                (Format::Toml, vec![at(&key, Family::OpenAi)])
            }
            Self::Gemini => (Format::DotEnv, vec![at(&["GOOGLE_GEMINI_BASE_URL"], Family::Gemini)]),
            Self::Opencode => {
                let found = opencode_providers(scope, environment)?;
                of_providers(found, &["provider"], &["options", "baseURL"])
            }
            Self::Qwen => (Format::DotEnv, vec![at(&["OPENAI_BASE_URL"], Family::OpenAi)]),
            Self::Pi => {
                of_providers(pi_providers(&path, environment)?, &["providers"], &["baseUrl"])
            }
            Self::Openclaw => {
                of_providers(openclaw_providers(&path)?, &["models", "providers"], &["baseUrl"])
            }
            Self::Aider => (Format::Yaml, vec![at(&["openai-api-base"], Family::OpenAi)]),
            Self::Sdk => (
                Format::DotEnv,
                vec![
                    at(&["OPENAI_BASE_URL"], Family::OpenAi),
                    at(&["ANTHROPIC_BASE_URL"], Family::Anthropic),
                ],
            ),
        };
        Ok(vec![ConfigFile { path, format, settings }])
    }

    /// Returns the file and the setting that add ctx as an MCP server.
    ///
    /// # Errors
    ///
    /// `Capability` if the client knows no MCP servers in this scope.
    pub fn mcp_file(
        self,
        scope: &Scope,
        program: &str,
        environment: &Environment,
    ) -> Result<ConfigFile> {
        let server = json!({ "command": program, "args": ["mcp"] });
        let beside = |name: &str| match self.settings_path(scope, environment) {
            Ok(path) => Ok(path.with_file_name(name)),
            Err(error) => Err(error),
        };
        let (path, format, setting) = match (self, scope) {
            (Self::Claude, Scope::Project(folder)) => (
                folder.join(".mcp.json"),
                Format::Json,
                Setting::new(&["mcpServers", "ctx"], server),
            ),
            (Self::Claude, Scope::User) => (
                environment.folder_of("CLAUDE_CONFIG_DIR", "").join(".claude.json"),
                Format::Json,
                Setting::new(&["mcpServers", "ctx"], server),
            ),
            (Self::Codex, _) => {
                let setting = Setting::new(&["mcp_servers", "ctx"], server);
                (self.settings_path(scope, environment)?, Format::Toml, setting)
            }
            (Self::Gemini | Self::Qwen, _) => {
                let setting = Setting::new(&["mcpServers", "ctx"], server);
                (beside("settings.json")?, Format::Json, setting)
            }
            (Self::Opencode, _) => {
                let server = json!({ "type": "local", "command": [program, "mcp"] });
                let setting = Setting::new(&["mcp", "ctx"], server);
                (self.settings_path(scope, environment)?, Format::Json, setting)
            }
            (Self::Openclaw, Scope::User) => {
                let setting = Setting::new(&["mcp", "servers", "ctx"], server);
                (self.settings_path(scope, environment)?, Format::Json, setting)
            }
            _ => {
                let message = format!("{self} has no MCP servers in its configuration");
                return Err(Error::new(ErrorKind::Capability, message).hint("leave out --mcp"));
            }
        };
        Ok(ConfigFile { path, format, settings: vec![setting] })
    }

    pub(crate) fn settings_path(self, scope: &Scope, environment: &Environment) -> Result<PathBuf> {
        let at = |variable, folder: &str, file| environment.folder_of(variable, folder).join(file);
        Ok(match (self, scope) {
            (Self::Claude, Scope::User) => at("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
            (Self::Claude, Scope::Project(folder)) => folder.join(".claude/settings.local.json"),
            (Self::Codex, Scope::User) => at("CODEX_HOME", ".codex", "config.toml"),
            (Self::Gemini | Self::Qwen, Scope::User) => user_env(self, environment),
            (Self::Gemini, Scope::Project(folder)) => project_env(self, folder, environment)?,
            (Self::Opencode, _) => opencode::edited_file(scope, environment),
            (Self::Qwen, Scope::Project(folder)) => project_env(self, folder, environment)?,
            (Self::Pi, Scope::User) => at("PI_CODING_AGENT_DIR", ".pi/agent", "models.json"),
            (Self::Openclaw, Scope::User) => match environment.variable("OPENCLAW_CONFIG_PATH") {
                Some(path) => environment.folder.join(path),
                None => environment.openclaw_state().join("openclaw.json"),
            },
            (Self::Aider, Scope::User) => environment.home.join(".aider.conf.yml"),
            (Self::Aider, Scope::Project(folder)) => folder.join(".aider.conf.yml"),
            (Self::Sdk, Scope::Project(folder)) => folder.join(".env"),
            (Self::Sdk, Scope::User) => {
                let message = "programs on the SDKs have no configuration for all projects";
                return Err(Error::new(ErrorKind::Capability, message)
                    .hint("use --project for the .env of this folder, or `ctx run -- PROGRAM`"));
            }
            (Self::Codex | Self::Pi | Self::Openclaw, Scope::Project(_)) => {
                let message = format!("{self} reads this setting from the user's files alone");
                return Err(Error::new(ErrorKind::Capability, message)
                    .hint(format!("leave out --project, or use `ctx run -- {}`", self.id())));
            }
        })
    }
}

/// Returns the `.env` that Gemini CLI or Qwen Code reads in a folder: the nearest one alone.
pub(crate) fn nearest_env(
    client: Client,
    folder: &Path,
    environment: &Environment,
) -> Option<PathBuf> {
    let own = format!(".{}/.env", client.id());
    let folders = folder.ancestors().chain([environment.home.as_path()]);
    let mut files = folders.flat_map(|folder| [folder.join(&own), folder.join(".env")]);
    files.find(|path| path.is_file())
}

/// Returns the `.env` of the user.
fn user_env(client: Client, environment: &Environment) -> PathBuf {
    let home = &environment.home;
    let own = home.join(format!(".{}/.env", client.id()));
    nearest_env(client, home, environment).filter(|path| path.starts_with(home)).unwrap_or(own)
}

/// Returns the `.env` of a project.
///
/// # Errors
///
/// `Capability` if one outside of the project applies, which a new one would hide.
fn project_env(client: Client, folder: &Path, environment: &Environment) -> Result<PathBuf> {
    let own = folder.join(format!(".{}/.env", client.id()));
    match nearest_env(client, folder, environment) {
        Some(path) if !path.starts_with(folder) => {
            let message = format!("{client} reads one .env alone: a new one would hide another");
            Err(Error::new(ErrorKind::Capability, message).with("applies", path.display()).hint(
                format!(
                    "copy it to {} first, leave out --project, or use `ctx run -- {}`",
                    own.display(),
                    client.id()
                ),
            ))
        }
        found => Ok(found.unwrap_or(own)),
    }
}
