//! The providers in the configuration of clients that can have several.

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use serde_json::Value;

use crate::files::read_text;
use crate::settings::OPENCODE_INLINE;
use crate::{Client, Environment, Family, Format, Scope};

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

/// Returns the providers of opencode, by the configuration that applies in a scope: that of the user,
/// and for a project also its file and the inline one.
pub(crate) fn opencode_providers(
    scope: &Scope,
    environment: &Environment,
) -> Result<Vec<Provider>> {
    let mut files = vec![Client::Opencode.settings_path(&Scope::User, environment)?];
    let mut inline = None;
    if scope.project().is_some() {
        files.push(Client::Opencode.settings_path(scope, environment)?);
        inline = environment.variable(OPENCODE_INLINE);
    }
    let config = merged(&files, inline)?;
    let model = environment.flags(&["-m", "--model"]).last().or(config["model"].as_str());
    let used = model.and_then(|model| model.split('/').next());
    let read = |name: &str, provider: &Value| {
        let family = match (provider["npm"].as_str(), built_in(name)) {
            (Some("@ai-sdk/openai" | "@ai-sdk/openai-compatible"), _) => Family::OpenAi,
            (Some("@ai-sdk/anthropic"), _) => Family::Anthropic,
            (Some("@ai-sdk/google"), _) => Family::Gemini,
            (Some(_), _) | (None, None) => return None,
            (None, Some(family)) => family,
        };
        Some((provider["options"]["baseURL"].as_str()?.to_owned(), family))
    };
    Ok(with_built_in(providers(&config["provider"], read, used), used))
}

/// Merges the configurations of opencode; the last one wins.
fn merged(files: &[PathBuf], inline: Option<&str>) -> Result<Value> {
    let mut merged = Value::Null;
    for path in files {
        merge(&mut merged, value_at(path, Format::Json, &[])?.unwrap_or_default());
    }
    if let Some(text) = inline {
        let value = Format::Json.get(text, &[]);
        let value = value.map_err(|error| error.with("variable", OPENCODE_INLINE))?;
        merge(&mut merged, value.unwrap_or_default());
    }
    Ok(merged)
}

fn merge(into: &mut Value, from: Value) {
    match (into, from) {
        (_, Value::Null) => {}
        (Value::Object(into), Value::Object(from)) => {
            for (name, value) in from {
                merge(into.entry(name).or_insert(Value::Null), value);
            }
        }
        (into, from) => *into = from,
    }
}

/// Adds the built-in providers whose API no configured one has. The one in use comes in place of
/// these: the proxy sends each API to one server.
fn with_built_in(mut found: Vec<Provider>, used: Option<&str>) -> Vec<Provider> {
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
            .hint("add one to models.providers, or use the plugin in integrations/openclaw"));
    }
    Ok(found)
}

/// Returns the providers that have a base URL, as `read` finds it. Of several servers with one API
/// only that of the provider in use is returned, if this is known.
fn providers(
    configured: &Value,
    read: impl Fn(&str, &Value) -> Option<(String, Family)>,
    used: Option<&str>,
) -> Vec<Provider> {
    let all = configured.as_object().into_iter().flatten();
    let all: Vec<_> =
        all.filter_map(|(name, provider)| Some((name, read(name, provider)?))).collect();
    let used = all.iter().find(|(name, _)| Some(name.as_str()) == used);
    let used = used.map(|(_, server)| server.clone());
    let is_kept = |(url, family): &(String, Family)| {
        used.as_ref().is_none_or(|(server, api)| api != family || server == url)
    };
    let kept = all.into_iter().filter(|(_, server)| is_kept(server));
    kept.map(|(name, (_, family))| (name.clone(), family)).collect()
}

/// Returns the base URL and the API of a provider of pi or OpenClaw.
fn read_provider(name: &str, provider: &Value) -> Option<(String, Family)> {
    Some((provider["baseUrl"].as_str()?.to_owned(), api(name, provider["api"].as_str())?))
}

/// Returns the API of a built-in provider.
fn built_in(name: &str) -> Option<Family> {
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
    let Some(name) = name else { return Ok(None) };
    Ok(get(&["model_providers", &name, "base_url"])?.map(|_| name))
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
        let given = self.flags(&["-c", "--config"]).filter_map(|set| set.split_once('='));
        let (_, value) = given.filter(|(name, _)| name.trim() == key).last()?;
        Some(value.trim().trim_matches(['"', '\'']))
    }

    /// Returns the file of the profile that the arguments of Codex name.
    pub(crate) fn codex_profile(&self) -> Option<PathBuf> {
        let name = self.flags(&["-p", "--profile"]).last()?;
        Some(self.folder_of("CODEX_HOME", ".codex").join(format!("{name}.config.toml")))
    }
}
