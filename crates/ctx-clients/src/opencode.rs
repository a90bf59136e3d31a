//! The configuration files of opencode, which merges all that it finds.

use std::path::{Path, PathBuf};

use ctx_core::Result;
use serde_json::Value;

use crate::environment::repository;
use crate::providers::{Provider, built_in, providers, value_at, with_built_in};
use crate::{Environment, Family, Format, Scope};

/// The variable with a configuration that wins over all files.
pub(crate) const INLINE: &str = "OPENCODE_CONFIG_CONTENT";

/// The names of its files. Those in one folder are merged, the last one wins.
const FILES: [&str; 2] = ["opencode.json", "opencode.jsonc"];

/// Returns the file of a scope that is edited: the strongest one that exists.
pub(crate) fn edited_file(scope: &Scope, environment: &Environment) -> PathBuf {
    let usual = match scope {
        Scope::User => user_folder(environment).join(FILES[0]),
        Scope::Project(folder) => folder.join(FILES[0]),
    };
    let weakest_first = match scope {
        Scope::User => user_files(environment),
        Scope::Project(folder) => project_files(folder, environment),
    };
    let is_own = |path: &PathBuf| scope.project().is_none_or(|folder| path.starts_with(folder));
    let named = named_file(environment).filter(|_| scope.project().is_none());
    named
        .or_else(|| weakest_first.into_iter().rev().find(|path| is_own(path) && path.exists()))
        .unwrap_or(usual)
}

/// Returns the files that apply in a scope, the weakest first.
pub(crate) fn files(scope: &Scope, environment: &Environment) -> Vec<PathBuf> {
    let mut files = user_files(environment);
    if let Scope::Project(folder) = scope {
        files.extend(project_files(folder, environment));
    }
    files
}

fn user_folder(environment: &Environment) -> PathBuf {
    environment.folder_of("XDG_CONFIG_HOME", ".config").join("opencode")
}

fn user_files(environment: &Environment) -> Vec<PathBuf> {
    let folder = user_folder(environment);
    let mut files = vec![folder.join("config.json")];
    files.extend(FILES.map(|name| folder.join(name)));
    files.extend(named_file(environment));
    files
}

fn named_file(environment: &Environment) -> Option<PathBuf> {
    environment.variable("OPENCODE_CONFIG").map(|path| environment.folder.join(path))
}

/// Returns the files of a folder and of those above it, up to the root of the repository.
fn project_files(folder: &Path, environment: &Environment) -> Vec<PathBuf> {
    let root = repository(folder);
    let is_inside = |folder: &&Path| root.is_none_or(|root| folder.starts_with(root));
    let mut folders: Vec<_> = folder.ancestors().take_while(is_inside).collect();
    folders.reverse();
    let hidden = folders.iter().map(|folder| folder.join(".opencode"));
    let named =
        environment.variable("OPENCODE_CONFIG_DIR").map(|path| environment.folder.join(path));
    let folders: Vec<_> = (folders.iter().map(|folder| folder.to_path_buf()))
        .chain([environment.home.join(".opencode")])
        .chain(hidden)
        .chain(named)
        .collect();
    folders.iter().flat_map(|folder| FILES.map(|name| folder.join(name))).collect()
}

/// Returns the providers, by the configuration that applies in a scope. The inline one is part of
/// that of a project.
pub(crate) fn opencode_providers(
    scope: &Scope,
    environment: &Environment,
) -> Result<Vec<Provider>> {
    let mut config = Value::Null;
    for path in files(scope, environment) {
        merge(&mut config, value_at(&path, Format::Json, &[])?.unwrap_or_default());
    }
    if let Some(text) = scope.project().and_then(|_| environment.variable(INLINE)) {
        let value = Format::Json.get(text, &[]);
        let value = value.map_err(|error| error.with("variable", INLINE))?;
        merge(&mut config, value.unwrap_or_default());
    }
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
        let url = substituted(provider["options"]["baseURL"].as_str()?, environment);
        (!url.is_empty()).then_some((url, family))
    };
    Ok(with_built_in(providers(&config["provider"], read, used), used))
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

/// Returns a value with `{env:NAME}` replaced by the variable.
pub(crate) fn substituted(text: &str, environment: &Environment) -> String {
    let mut parts = text.split("{env:");
    let mut value = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (name, rest) = part.split_once('}').unwrap_or((part, ""));
        value.push_str(environment.variable(name).unwrap_or_default());
        value.push_str(rest);
    }
    value
}
