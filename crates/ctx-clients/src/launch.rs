//! Points one process at the proxy, without a change to any file.

use std::path::Path;

use ctx_core::{ErrorKind, Result};
use serde_json::{Value, json};

use crate::settings::base_url;
use crate::{Client, Environment, Family, Proxy, Scope, record};

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
        let variables = self.variables().iter();
        let mut launch = Launch {
            variables: variables.map(|&(name, family)| (name, url(family))).collect(),
            ..Launch::default()
        };
        match self {
            Self::Claude => {
                if environment.variable("ENABLE_TOOL_SEARCH").is_none() {
                    launch.variables.push(("ENABLE_TOOL_SEARCH", "true".to_owned()));
                }
                // Settings files win over the environment, and this flag over them.
                let settings = json!({ "env": { "ANTHROPIC_BASE_URL": url(Family::Anthropic) } });
                launch.args = vec!["--settings".to_owned(), settings.to_string()];
            }
            Self::Codex => {
                let files = self.base_url_files(&Scope::User, proxy, environment);
                let settings = files.into_iter().flatten().flat_map(|file| file.settings);
                // The value is TOML.
                let flags = settings.map(|set| {
                    let names = set.key.iter().map(|name| toml_edit::Key::new(name).to_string());
                    format!("{}={}", names.collect::<Vec<_>>().join("."), set.value)
                });
                launch.args = flags.flat_map(|flag| ["-c".to_owned(), flag]).collect();
            }
            Self::Opencode => {
                let inline = environment.variable("OPENCODE_CONFIG_CONTENT");
                let content = opencode(inline, url);
                launch.variables = vec![("OPENCODE_CONFIG_CONTENT", content.to_string())];
            }
            Self::Pi | Self::Openclaw => launch.needs_setup = true,
            Self::Gemini | Self::Qwen | Self::Aider | Self::Sdk => {}
        }
        launch
    }

    /// Returns the environment variables with the address of a provider.
    fn variables(self) -> &'static [(&'static str, Family)] {
        match self {
            Self::Claude => &[("ANTHROPIC_BASE_URL", Family::Anthropic)],
            Self::Gemini => &[("GOOGLE_GEMINI_BASE_URL", Family::Gemini)],
            Self::Qwen => &[("OPENAI_BASE_URL", Family::OpenAi)],
            Self::Aider => {
                // The second name wins over Aider's configuration file.
                &[
                    ("OPENAI_API_BASE", Family::OpenAi),
                    ("AIDER_OPENAI_API_BASE", Family::OpenAi),
                    ("ANTHROPIC_API_BASE", Family::Anthropic),
                ]
            }
            Self::Sdk => &[
                ("OPENAI_BASE_URL", Family::OpenAi),
                ("OPENAI_API_BASE", Family::OpenAi),
                ("ANTHROPIC_BASE_URL", Family::Anthropic),
                ("GOOGLE_GEMINI_BASE_URL", Family::Gemini),
            ],
            Self::Codex | Self::Opencode | Self::Pi | Self::Openclaw => &[],
        }
    }

    /// Returns the servers that this client uses by its configuration and environment, where they
    /// are not the public ones: a proxy for one process has to send its requests there. Addresses
    /// that [`Setup`](crate::Setup) wrote are left out; `records` is its folder.
    ///
    /// # Errors
    ///
    /// `Corrupt` if a file is malformed.
    pub fn upstreams(
        self,
        records: &Path,
        environment: &Environment,
    ) -> Result<Vec<(Family, String)>> {
        let mut found = Vec::new();
        for scope in [Scope::Project(environment.folder.clone()), Scope::User] {
            let written = record::written(records, self, &scope)?;
            match self.addresses(&scope, environment) {
                Ok(urls) => found.extend(
                    urls.into_iter()
                        .filter(|(_, url)| !written.contains(&Value::from(url.as_str()))),
                ),
                Err(error) if error.kind() == ErrorKind::Capability => {}
                Err(error) => return Err(error),
            }
        }
        let named = |&(name, family)| Some((family, environment.variable(name)?.to_owned()));
        found.extend(self.variables().iter().filter_map(named));
        let mut upstreams: Vec<(Family, String)> = Vec::new();
        for (family, url) in found {
            if upstreams.iter().all(|(known, _)| *known != family) {
                upstreams.push((family, url));
            }
        }
        Ok(upstreams)
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
