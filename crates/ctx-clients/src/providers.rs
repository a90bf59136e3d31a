//! The providers in the configuration of clients that can have several.

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use serde_json::Value;

use crate::files::read_text;
use crate::{Environment, Family, Format};

/// The providers that pi has without configuration.
const PI: [(&str, Family); 3] =
    [("openai", Family::OpenAi), ("anthropic", Family::Anthropic), ("google", Family::Gemini)];

/// A provider's name, and its API.
type Provider = (String, Family);

/// Returns the providers of pi, by its `models.json`.
pub(crate) fn pi_providers(path: &Path, environment: &Environment) -> Result<Vec<Provider>> {
    let model = environment.flags(&["--model"]).last();
    let named = model.and_then(|model| model.split_once('/')).map(|(provider, _)| provider);
    let used = match environment.flags(&["--provider"]).last().or(named) {
        Some(provider) => Some(provider.to_owned()),
        None => text_at(&path.with_file_name("settings.json"), Format::Json, &["defaultProvider"])?,
    };
    let mut found = providers(path, &["providers"], used.as_deref())?;
    for (name, family) in PI {
        if found.iter().all(|(_, known)| *known != family) {
            found.push((name.to_owned(), family));
        }
    }
    Ok(found)
}

/// Returns the providers of OpenClaw, which has none without configuration.
pub(crate) fn openclaw_providers(path: &Path) -> Result<Vec<Provider>> {
    let model = text_at(path, Format::Json, &["agents", "defaults", "model", "primary"])?;
    let used = model.as_deref().and_then(|model| model.split('/').next());
    let found = providers(path, &["models", "providers"], used)?;
    if found.is_empty() {
        let message = "OpenClaw's configuration names no provider with a baseUrl";
        return Err(Error::new(ErrorKind::Capability, message)
            .with("path", path.display())
            .hint("add one to models.providers, or use the plugin in integrations/openclaw"));
    }
    Ok(found)
}

/// Returns the providers of a JSON file that have a base URL. Of several servers with one API only
/// that of the provider in use is returned, if this is known.
fn providers(path: &Path, key: &[&str], used: Option<&str>) -> Result<Vec<Provider>> {
    let found = value_at(path, Format::Json, key)?;
    let all: Vec<_> = found
        .iter()
        .filter_map(Value::as_object)
        .flatten()
        .filter_map(|(name, provider)| {
            Some((name, provider["baseUrl"].as_str()?, api(name, provider["api"].as_str())?))
        })
        .collect();
    let used = all.iter().find(|(name, ..)| Some(name.as_str()) == used).copied();
    let is_kept = |(_, url, family): &(_, &str, Family)| {
        used.is_none_or(|(_, server, api)| api != *family || server == *url)
    };
    Ok(all.into_iter().filter(is_kept).map(|(name, _, family)| (name.clone(), family)).collect())
}

/// Returns the API of a provider of pi or OpenClaw; `None` if ctx does not know it.
fn api(name: &str, api: Option<&str>) -> Option<Family> {
    match api {
        Some("openai-completions" | "openai-responses") => Some(Family::OpenAi),
        Some("anthropic-messages") => Some(Family::Anthropic),
        Some("google-generative-ai") => Some(Family::Gemini),
        Some(_) => None,
        None => {
            let known = PI.into_iter().find(|(known, _)| *known == name);
            Some(known.map_or(Family::OpenAi, |(_, family)| family))
        }
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
    let given = environment.flags(&["-c", "--config"]).filter_map(|set| set.split_once('='));
    let given = given.filter(|(key, _)| key.trim() == "model_provider").last();
    let name = match given {
        Some((_, name)) => Some(name.trim().trim_matches(['"', '\'']).to_owned()),
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

    /// Returns the file of the profile that the arguments of Codex name.
    pub(crate) fn codex_profile(&self) -> Option<PathBuf> {
        let name = self.flags(&["-p", "--profile"]).last()?;
        Some(self.folder_of("CODEX_HOME", ".codex").join(format!("{name}.config.toml")))
    }
}
