//! The providers in the configuration of clients that can have several.

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use serde_json::Value;

use crate::files::read_text;
use crate::{Environment, Family, Format};

/// The providers that pi and opencode have without configuration.
const BUILT_IN: [(&str, Family); 3] =
    [("openai", Family::OpenAi), ("anthropic", Family::Anthropic), ("google", Family::Gemini)];

/// A provider's name, and its API.
pub(crate) type Provider = (String, Family);

/// Returns the providers of pi, by its `models.json`.
pub(crate) fn pi_providers(path: &Path, environment: &Environment) -> Result<Vec<Provider>> {
    let model = environment.flags(&["--model"]).last();
    let named = model.and_then(|model| model.split_once('/')).map(|(provider, _)| provider);
    let used = match environment.flags(&["--provider"]).last().or(named) {
        Some(provider) => Some(provider.to_owned()),
        None => text_at(&path.with_file_name("settings.json"), Format::Json, &["defaultProvider"])?,
    };
    let configured = value_at(path, Format::Json, &["providers"])?.unwrap_or_default();
    Ok(with_built_in(providers(&configured, read_provider, used.as_deref()), used.as_deref()))
}

/// Adds the built-in providers whose API no configured one has. The one in use comes in place of
/// these: the proxy sends each API to one server.
pub(crate) fn with_built_in(mut found: Vec<Provider>, used: Option<&str>) -> Vec<Provider> {
    for (name, family) in BUILT_IN {
        if found.iter().any(|(known, _)| known == name) {
            continue;
        }
        if used == Some(name) {
            found.retain(|(_, known)| *known != family);
        }
        if found.iter().all(|(_, known)| *known != family) {
            found.push((name.to_owned(), family));
        }
    }
    found
}

/// Returns the providers of OpenClaw, which has none without configuration.
pub(crate) fn openclaw_providers(path: &Path) -> Result<Vec<Provider>> {
    let model = text_at(path, Format::Json, &["agents", "defaults", "model", "primary"])?;
    let used = model.as_deref().and_then(|model| model.split('/').next());
    let configured = value_at(path, Format::Json, &["models", "providers"])?.unwrap_or_default();
    let found = providers(&configured, read_provider, used);
    if found.is_empty() {
        let message = "OpenClaw's configuration names no provider with a baseUrl";
        return Err(Error::new(ErrorKind::Capability, message)
            .with("path", path.display())
            .hint("add one to models.providers, or use the plugin of docs/clients/openclaw.md"));
    }
    Ok(found)
}

/// Returns the providers that have a base URL, as `read` finds it. Of several servers with one API
/// only that of the provider in use is returned, and none if another API is in use.
pub(crate) fn providers(
    configured: &Value,
    read: impl Fn(&str, &Value) -> Option<(String, Family)>,
    used: Option<&str>,
) -> Vec<Provider> {
    let all = configured.as_object().into_iter().flatten();
    let all: Vec<_> =
        all.filter_map(|(name, provider)| Some((name, read(name, provider)?))).collect();
    let in_use = all.iter().find(|(name, _)| Some(name.as_str()) == used);
    let in_use = in_use.map(|(_, server)| server.clone());
    let is_only = |(url, family): &(String, Family)| {
        all.iter().all(|(_, (server, api))| api != family || server == url)
    };
    let is_kept = |server: &(String, Family)| match &in_use {
        Some(in_use) if in_use.1 == server.1 => in_use == server,
        _ => used.is_none() || is_only(server),
    };
    let kept = all.iter().filter(|(_, server)| is_kept(server));
    kept.map(|(name, (_, family))| ((*name).clone(), *family)).collect()
}

/// Returns the base URL and the API of a provider of pi or OpenClaw.
fn read_provider(name: &str, provider: &Value) -> Option<(String, Family)> {
    Some((provider["baseUrl"].as_str()?.to_owned(), api(name, provider["api"].as_str())?))
}

/// Returns the API of a built-in provider.
pub(crate) fn built_in(name: &str) -> Option<Family> {
    BUILT_IN.into_iter().find(|(known, _)| *known == name).map(|(_, family)| family)
}

/// Returns the API of a provider of pi or OpenClaw; `None` if ctx does not know it.
fn api(name: &str, api: Option<&str>) -> Option<Family> {
    match api {
        Some("openai-completions" | "openai-responses") => Some(Family::OpenAi),
        Some("anthropic-messages") => Some(Family::Anthropic),
        Some("google-generative-ai") => Some(Family::Gemini),
        Some(_) => None,
        None => Some(built_in(name).unwrap_or(Family::OpenAi)),
    }
}

/// Returns the name of the provider that Codex uses, if it is one of the user's own.
///
/// # Errors
///
/// `Capability` if it is another built-in one than OpenAI: its address cannot be set.
pub(crate) fn codex_provider(config: &Path, environment: &Environment) -> Result<Option<String>> {
    let profile = environment.codex_profile();
    let files = profile.iter().map(PathBuf::as_path).chain([config]);
    let get = |key: &[&str]| {
        let mut found = files.clone().map(|path| text_at(path, Format::Toml, key));
        found.find_map(Result::transpose).transpose()
    };
    let name = match environment.codex_setting("model_provider") {
        Some(name) => Some(name.to_owned()),
        None => get(&["model_provider"])?,
    };
    let Some(name) = name.filter(|name| name != "openai") else { return Ok(None) };
    let is_known =
        files.clone().map(|path| value_at(path, Format::Toml, &["model_providers", &name]));
    if is_known.collect::<Result<Vec<_>>>()?.iter().all(Option::is_none) {
        let message =
            format!("Codex uses the provider '{name}', which has no table with a base_url");
        return Err(Error::new(ErrorKind::Capability, message)
            .hint(format!("add one: [model_providers.{name}] with name and base_url")));
    }
    Ok(Some(name))
}

pub(crate) fn value_at(path: &Path, format: Format, key: &[&str]) -> Result<Option<Value>> {
    let text = read_text(path)?.unwrap_or_default();
    let key: Vec<_> = key.iter().map(|name| (*name).to_owned()).collect();
    format.get(&text, &key).map_err(|error| error.with("path", path.display()))
}

fn text_at(path: &Path, format: Format, key: &[&str]) -> Result<Option<String>> {
    Ok(value_at(path, format, key)?.as_ref().and_then(Value::as_str).map(str::to_owned))
}

impl Environment {
    /// Returns OpenClaw's folder, by its variable or its profile.
    pub(crate) fn openclaw_state(&self) -> PathBuf {
        let profile = self.flags(&["--profile"]).last();
        let default = profile.map_or(".openclaw".to_owned(), |name| format!(".openclaw-{name}"));
        self.folder_of("OPENCLAW_STATE_DIR", default)
    }

    /// Returns the value of a setting that the arguments of Codex have: `-c KEY=VALUE`.
    pub(crate) fn codex_setting(&self, key: &str) -> Option<&str> {
        self.codex_flags().filter(|(name, _)| *name == key).last().map(|(_, value)| value)
    }

    /// Returns the keys and values of `-c KEY=VALUE`.
    fn codex_flags(&self) -> impl Iterator<Item = (&str, &str)> {
        let given = self.flags(&["-c", "--config"]).filter_map(|set| set.split_once('='));
        given.map(|(key, value)| (key.trim(), value.trim().trim_matches(['"', '\''])))
    }

    /// Returns all settings that the arguments of Codex have, as TOML.
    pub(crate) fn codex_settings(&self) -> String {
        self.codex_flags().fold(String::new(), |text, (key, value)| {
            let key: Vec<_> = key.split('.').map(str::to_owned).collect();
            Format::Toml.set(&text, &key, Some(&value.into())).unwrap_or(text)
        })
    }

    /// Returns the file of the profile that the arguments of Codex name.
    pub(crate) fn codex_profile(&self) -> Option<PathBuf> {
        let name = self.flags(&["-p", "--profile"]).last()?;
        Some(self.folder_of("CODEX_HOME", ".codex").join(format!("{name}.config.toml")))
    }
}
