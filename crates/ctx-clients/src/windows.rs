//! The windows of models in the configuration of a client.

use ctx_core::Result;
use serde_json::{Value, json};

use crate::providers::value_at;
use crate::{Client, Environment, Format, Scope};

impl Client {
    /// Returns the models whose window this client is configured with, with the value of the window:
    /// those of pi, OpenClaw and opencode. Codex has one window, for the model that it uses.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the configuration is malformed; `Io` if it cannot be read.
    pub fn windows(self, environment: &Environment) -> Result<Vec<(String, Window)>> {
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
            let setting = |key| match environment.codex_setting(key) {
                Some(given) => Ok(Some(given.into())),
                None => value(&[key]),
            };
            let given = environment.flags(&["-m", "--model"]).last().map(str::to_owned);
            let model = setting("model")?.and_then(|model| Some(model.as_str()?.to_owned()));
            let window = setting("model_context_window")?.as_ref().and_then(Window::of);
            return Ok(given.or(model).zip(window).into_iter().collect());
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
fn windows_of(models: &Value) -> Vec<(String, Window)> {
    let window = |id: &Value, window: &Value| Some((id.as_str()?.to_owned(), Window::of(window)?));
    let listed = models.as_array().into_iter().flatten();
    let listed = listed.filter_map(|model| window(&model["id"], &model["contextWindow"]));
    let named = models.as_object().into_iter().flatten();
    let named = named.filter_map(|(id, model)| window(&json!(id), &model["limit"]["context"]));
    listed.chain(named).collect()
}

/// The window of a model in a client's configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Window {
    /// A number of tokens above zero.
    Tokens(u32),
    /// A value that is none.
    Other(String),
}

impl Window {
    /// Reads a value; numbers of TOML are text. None if it is missing, or zero for unknown.
    fn of(value: &Value) -> Option<Self> {
        let text = match value {
            Value::Null => return None,
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let number = text.replace('_', "").parse::<f64>().ok();
        match number
            .filter(|number| number.fract() == 0.0 && (0.0..u32::MAX.into()).contains(number))
        {
            Some(0.0) => None,
            Some(number) => Some(Self::Tokens(number as u32)),
            None => Some(Self::Other(text)),
        }
    }
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
                vec![("x", Window::Tokens(32_000))],
            ),
            (
                Client::Openclaw,
                ".openclaw/openclaw.json",
                "{models:{providers:{a:{models:[{id:'x',contextWindow:8000}]}}}}",
                vec![("x", Window::Tokens(8_000))],
            ),
            (
                Client::Opencode,
                ".config/opencode/opencode.json",
                r#"{"provider":{"a":{"models":{"x":{"limit":{"context":9e3}},"y":{},"z":{"limit":{"context":1e12}}}}}}"#,
                vec![("x", Window::Tokens(9_000)), ("z", Window::Other("1000000000000.0".into()))],
            ),
            (
                Client::Codex,
                ".codex/config.toml",
                "model = 'x'\nmodel_context_window = 64_000",
                vec![("x", Window::Tokens(64_000))],
            ),
            (
                Client::Codex,
                ".codex/config.toml",
                "model = 'x'\nmodel_context_window = '32k'",
                vec![("x", Window::Other("32k".into()))],
            ),
            (Client::Codex, ".codex/config.toml", "model_context_window = 5", vec![]),
            (Client::Claude, ".claude/settings.json", "{}", vec![]),
        ] {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
            let environment =
                Environment { home: home.path().to_owned(), ..Environment::default() };
            let found = client.windows(&environment).unwrap();
            let found: Vec<_> =
                found.into_iter().map(|(id, window)| (id.leak() as &str, window)).collect();
            assert_eq!(found, windows, "{client}");
        }
    }
}
