//! The windows of models in the configuration of a client.

use ctx_core::Result;
use serde_json::{Value, json};

use crate::providers::value_at;
use crate::{Client, Environment, Format, Scope};

impl Client {
    /// Returns the models whose window this client is configured with, with the window in tokens:
    /// those of pi, OpenClaw and opencode. Codex has one window, for the model that it uses.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the configuration is malformed; `Io` if it cannot be read.
    pub fn windows(self, environment: &Environment) -> Result<Vec<(String, u32)>> {
        let (format, providers): (_, &[&str]) = match self {
            Self::Pi => (Format::Json, &["providers"]),
            Self::Openclaw => (Format::Json, &["models", "providers"]),
            Self::Opencode => (Format::Json, &["provider"]),
            Self::Codex => (Format::Toml, &[]),
            Self::Claude | Self::Gemini | Self::Qwen | Self::Aider | Self::Sdk => {
                return Ok(Vec::new());
            }
        };
        let path = self.settings_path(&Scope::User, environment)?;
        let value = |key: &[&str]| value_at(&path, format, key);
        if self == Self::Codex {
            let (model, window) = (value(&["model"])?, value(&["model_context_window"])?);
            let given = environment.flags(&["-m", "--model"]).last().map(str::to_owned);
            let model = given.or(model.and_then(|model| Some(model.as_str()?.to_owned())));
            return Ok(model.zip(window.and_then(|window| size(&window))).into_iter().collect());
        }
        let providers = value(providers)?.unwrap_or_default();
        let mut windows = Vec::new();
        for provider in providers.as_object().into_iter().flat_map(|all| all.values()) {
            windows.extend(windows_of(&provider["models"]));
        }
        Ok(windows)
    }
}

/// Returns the windows of a provider's models: in an array with their ids, or in an object by id.
fn windows_of(models: &Value) -> Vec<(String, u32)> {
    let window = |id: &Value, window: &Value| Some((id.as_str()?.to_owned(), size(window)?));
    let listed = models.as_array().into_iter().flatten();
    let listed = listed.filter_map(|model| window(&model["id"], &model["contextWindow"]));
    let named = models.as_object().into_iter().flatten();
    let named = named.filter_map(|(id, model)| window(&json!(id), &model["limit"]["context"]));
    listed.chain(named).collect()
}

/// Returns a window; numbers of TOML are read as text.
fn size(window: &Value) -> Option<u32> {
    let text = window.as_str().map(|text| text.replace('_', ""));
    let size = window.as_u64().or_else(|| text?.parse().ok());
    u32::try_from(size?).ok().filter(|size| *size > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_read_where_each_client_has_them() {
        for (client, file, text, windows) in [
            (
                Client::Pi,
                ".pi/agent/models.json",
                r#"{"providers":{"a":{"models":[{"id":"x","contextWindow":32000},{"id":"y"},{"id":"z","contextWindow":0}]}}}"#,
                vec![("x", 32_000)],
            ),
            (
                Client::Openclaw,
                ".openclaw/openclaw.json",
                "{models:{providers:{a:{models:[{id:'x',contextWindow:8000}]}}}}",
                vec![("x", 8_000)],
            ),
            (
                Client::Opencode,
                ".config/opencode/opencode.json",
                r#"{"provider":{"a":{"models":{"x":{"limit":{"context":9000}},"y":{}}}}}"#,
                vec![("x", 9_000)],
            ),
            (
                Client::Codex,
                ".codex/config.toml",
                "model = 'x'\nmodel_context_window = 64_000",
                vec![("x", 64_000)],
            ),
            (Client::Codex, ".codex/config.toml", "model_context_window = 'large'", vec![]),
            (Client::Claude, ".claude/settings.json", "{}", vec![]),
        ] {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            let environment =
                Environment { home: home.path().to_owned(), ..Environment::default() };
            let found = client.windows(&environment).unwrap();
            let found: Vec<_> = found.iter().map(|(id, window)| (id.as_str(), *window)).collect();
            assert_eq!(found, windows, "{client}");
        }
    }
}
