//! The services that an engine can call during a call.

use serde::{Deserialize, Serialize};

/// Calls the host's summary model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Complete {
    /// Instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The prompt.
    pub prompt: String,
    /// The maximum length of the answer, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

/// The answer of the model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Completion {
    /// Its text.
    pub text: String,
    /// Whether it was cut off at `maxTokens`.
    pub cut_off: bool,
}

/// Counts the tokens of texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Count {
    /// The texts.
    pub texts: Vec<String>,
}

/// The token counts, in the order of the texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// In tokens.
    pub tokens: Vec<u64>,
}

/// Reads a stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Key {
    /// Its key. Each engine has its own keys.
    pub key: String,
}

/// A stored value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Value {
    /// The value; `null` if nothing is stored.
    pub value: serde_json::Value,
}

/// Stores a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredValue {
    /// Its key.
    pub key: String,
    /// The value.
    pub value: serde_json::Value,
}

/// Lists keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyPrefix {
    /// The prefix of the keys.
    pub prefix: String,
}

/// Keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Keys {
    /// The keys, sorted.
    pub keys: Vec<String>,
}

/// The level of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LogLevel {
    /// Something is wrong.
    Error,
    /// Something may be wrong.
    Warn,
    /// Normal operation.
    #[default]
    Info,
    /// For debugging.
    Debug,
}

/// A log line.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLine {
    /// The level.
    pub level: LogLevel,
    /// The text.
    pub message: String,
}
