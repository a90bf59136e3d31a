//! Points one process at the proxy, without a change to any file.

use serde_json::{Value, json};

use crate::settings::{Family, base_url};
use crate::{Client, Environment, Proxy, Scope};

/// What is added to the command of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Launch {
    /// Environment variables, which replace those of the parent.
    pub variables: Vec<(&'static str, String)>,
    /// Arguments after the program's name, before those of the user.
    pub args: Vec<String>,
    /// Whether the client has no such setting: its configuration has to be edited.
    pub needs_setup: bool,
}

impl Client {
    /// Returns what points one process of this client at the proxy.
    #[must_use]
    pub fn launch(self, proxy: &Proxy, environment: &Environment) -> Launch {
        let url = |family| base_url(self, family, proxy);
        let mut launch = Launch::default();
        match self {
            Self::Claude => {
                launch.variables = vec![("ANTHROPIC_BASE_URL", url(Family::Anthropic))];
                if environment.variable("ENABLE_TOOL_SEARCH").is_none() {
                    launch.variables.push(("ENABLE_TOOL_SEARCH", "true".to_owned()));
                }
            }
            Self::Codex => {
                let files = self.base_url_files(&Scope::User, proxy, environment);
                let settings = files.into_iter().flatten().flat_map(|file| file.settings);
                // The value is TOML.
                let flags = settings.map(|set| format!("{}={}", set.key.join("."), set.value));
                launch.args = flags.flat_map(|flag| ["-c".to_owned(), flag]).collect();
            }
            Self::Gemini => {
                launch.variables = vec![("GOOGLE_GEMINI_BASE_URL", url(Family::Gemini))]
            }
            Self::Opencode => {
                let inline = environment.variable("OPENCODE_CONFIG_CONTENT");
                let content = opencode(inline, url);
                launch.variables = vec![("OPENCODE_CONFIG_CONTENT", content.to_string())];
            }
            Self::Qwen => launch.variables = vec![("OPENAI_BASE_URL", url(Family::OpenAi))],
            Self::Aider => {
                launch.variables = vec![
                    ("OPENAI_API_BASE", url(Family::OpenAi)),
                    ("ANTHROPIC_API_BASE", url(Family::Anthropic)),
                ];
            }
            Self::Pi | Self::Openclaw => launch.needs_setup = true,
            Self::Sdk => {
                launch.variables = vec![
                    ("OPENAI_BASE_URL", url(Family::OpenAi)),
                    ("OPENAI_API_BASE", url(Family::OpenAi)),
                    ("ANTHROPIC_BASE_URL", url(Family::Anthropic)),
                    ("GOOGLE_GEMINI_BASE_URL", url(Family::Gemini)),
                ];
            }
        }
        launch
    }
}

/// Returns opencode's inline configuration, with the base URLs added to what the user has there.
fn opencode(inline: Option<&str>, url: impl Fn(Family) -> String) -> Value {
    let mut content = inline.and_then(|text| serde_json::from_str(text).ok()).unwrap_or(json!({}));
    for (provider, family) in crate::settings::OPENCODE {
        let pointer = ["provider", provider, "options"];
        let mut at = &mut content;
        for key in pointer {
            if !at[key].is_object() {
                at[key] = json!({});
            }
            at = &mut at[key];
        }
        at["baseURL"] = url(family).into();
    }
    content
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inline_configuration_of_opencode_is_kept() {
        let mut environment = Environment::default();
        let inline = r#"{"model":"m","provider":{"openai":{"options":{"timeout":5}}}}"#;
        environment.variables.insert("OPENCODE_CONFIG_CONTENT".into(), inline.into());
        let launch = Client::Opencode.launch(&Proxy::at("http://127.0.0.1:1"), &environment);
        let content: Value = serde_json::from_str(&launch.variables[0].1).unwrap();
        assert_eq!(content["model"], "m");
        let options = &content["provider"]["openai"]["options"];
        assert_eq!(options, &json!({ "timeout": 5, "baseURL": "http://127.0.0.1:1/v1" }));
    }

    #[test]
    fn a_choice_of_the_user_is_kept() {
        let mut environment = Environment::default();
        environment.variables.insert("ENABLE_TOOL_SEARCH".into(), "false".into());
        let launch = Client::Claude.launch(&Proxy::at("http://127.0.0.1:1/"), &environment);
        let url = "http://127.0.0.1:1".to_owned();
        assert_eq!(launch.variables, [("ANTHROPIC_BASE_URL", url)]);
    }
}
