//! What an engine may ask its host for, from inside a call.

use serde::{Deserialize, Serialize};

/// Asks the host's summary model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Complete {
    /// Instructions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    /// The prompt.
    pub prompt: String,
    /// The longest answer, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

/// What the model answered.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Completion {
    /// Its text.
    pub text: String,
    /// Whether it was cut off at `maxTokens`.
    pub cut_off: bool,
}

/// Asks for sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Count {
    /// The texts.
    pub texts: Vec<String>,
}

/// The sizes, in the order of the texts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Counts {
    /// In tokens.
    pub tokens: Vec<u64>,
}

/// Asks for a stored value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Key {
    /// Its key. Engines cannot see one another's keys.
    pub key: String,
}

/// A stored value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Value {
    /// `null` where nothing is stored.
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

/// Asks for keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeyPrefix {
    /// How they begin.
    pub prefix: String,
}

/// Keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Keys {
    /// Sorted.
    pub keys: Vec<String>,
}

/// How much a line of the log matters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum LogLevel {
    /// Something is wrong.
    Error,
    /// Something may be.
    Warn,
    /// Good to know.
    #[default]
    Info,
    /// For who looks for a fault.
    Debug,
}

/// Something to be logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LogLine {
    /// How much it matters.
    pub level: LogLevel,
    /// The line.
    pub message: String,
}
