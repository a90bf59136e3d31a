//! The configuration passed to an engine, and which of its values are secret.

use std::fmt;

use ctx_config::SecretText;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;

/// A key is secret if one of its words has such an ending.
const SECRET: [&str; 8] =
    ["key", "token", "secret", "password", "passwd", "passphrase", "authorization", "credential"];

/// The configuration passed to an engine, unchanged.
///
/// `Debug` and serialization hide the texts whose keys look like those of secrets (`apiKey`,
/// `auth_token`, `password` ...), unless a text is only a reference to a secret (`env:NAME`).
/// Numbers are not secret: `maxTokens` is shown.
#[derive(Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct EngineSettings(Value);

impl EngineSettings {
    /// Returns all values, including secrets.
    pub fn expose(&self) -> &Value {
        &self.0
    }
}

impl From<Value> for EngineSettings {
    fn from(value: Value) -> Self {
        Self(value)
    }
}

impl Serialize for EngineSettings {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hidden(&self.0, false).serialize(serializer)
    }
}

impl fmt::Debug for EngineSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&hidden(&self.0, false), f)
    }
}

/// Returns the value without its secrets. Its depth is bounded by the parser of the configuration.
fn hidden(value: &Value, is_secret: bool) -> Value {
    match value {
        Value::String(text) if is_secret => SecretText::printed(text).into(),
        Value::Array(items) => items.iter().map(|item| hidden(item, is_secret)).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(key, value)| (key.clone(), hidden(value, is_secret || is_secret_key(key))))
            .collect(),
        other => other.clone(),
    }
}

/// Whether a key, in any spelling (`apiKey`, `API_KEY`, `x-api-key`), looks like that of a secret.
fn is_secret_key(key: &str) -> bool {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for c in key.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.push(String::new());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.iter().any(|word| {
        let single = word.strip_suffix('s').unwrap_or(word);
        SECRET.iter().any(|ending| single.ends_with(ending))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_texts_under_secret_keys_are_hidden() {
        let settings = EngineSettings::from(json!({
            "apiKey": "sk-1", "API_KEY": "sk-2", "auth-token": "sk-3", "passwordHash": "sk-4",
            "credentials": { "user": "sk-5", "list": ["sk-6", 7] }, "apikey": "sk-7",
            "headers": { "Authorization": "Bearer sk-8" },
            "fromEnv": { "token": "env:TOKEN", "secret": "file:/run/secret" },
            "maxTokens": 100, "keywords": "plain", "keepLast": 4, "tokenizer": "plain",
        }));
        assert_eq!(
            serde_json::to_value(&settings).unwrap(),
            json!({
                "apiKey": "(hidden)", "API_KEY": "(hidden)", "auth-token": "(hidden)",
                "passwordHash": "(hidden)",
                "credentials": { "user": "(hidden)", "list": ["(hidden)", 7] },
                "apikey": "(hidden)",
                "headers": { "Authorization": "(hidden)" },
                "fromEnv": { "token": "env:TOKEN", "secret": "file:/run/secret" },
                "maxTokens": 100, "keywords": "plain", "keepLast": 4, "tokenizer": "plain",
            })
        );
        assert!(!format!("{settings:?}").contains("sk-"));
        assert_eq!(settings.expose()["apiKey"], "sk-1", "the engine gets it");
    }
}
