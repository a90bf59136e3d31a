//! Edits of a value in a configuration file, which leave everything else as it is.

mod json;
mod lines;
mod toml;

use ctx_core::{Error, ErrorKind, Result};
use serde_json::Value;

/// The format of a configuration file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// JSON, with the comments, trailing commas and quotes of JSONC and JSON5.
    Json,
    /// TOML.
    Toml,
    /// `NAME=value` in each line.
    DotEnv,
    /// YAML; only text under a name at the top is read and written.
    Yaml,
}

impl Format {
    /// Returns the value of a key; `None` if it is missing. The key without names is the whole text,
    /// in JSON.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the text is not in this format.
    pub fn get(self, text: &str, key: &[String]) -> Result<Option<Value>> {
        let text = text.trim_start_matches(BOM);
        match self {
            Self::Json => json::get(text, key),
            Self::Toml => toml::get(text, key),
            Self::DotEnv => Ok(lines::get(text, '=', key)),
            Self::Yaml => get_yaml(text, key),
        }
    }

    /// Returns the text with a key set to a value, or without the key. Tables that are empty
    /// without it are removed too.
    ///
    /// # Errors
    ///
    /// `Corrupt` if the text is not in this format; `Conflict` if a name on the way to the key has
    /// a value that is not a table.
    pub fn set(self, text: &str, key: &[String], value: Option<&Value>) -> Result<String> {
        let body = text.trim_start_matches(BOM);
        let mark = &text[..text.len() - body.len()];
        let edited = match self {
            Self::Json => json::set(body, key, value)?,
            Self::Toml => toml::set(body, key, value)?,
            Self::DotEnv => lines::set(body, '=', key, value),
            Self::Yaml => {
                check_yaml(body)?;
                lines::set(body, ':', key, value)
            }
        };
        Ok(format!("{mark}{edited}"))
    }
}

/// Returns the value under a name at the top. Other forms of YAML are refused if they may have it.
fn get_yaml(text: &str, key: &[String]) -> Result<Option<Value>> {
    let [name] = key else { return Ok(None) };
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    let Some(line) = lines.find(|line| line.contains(name.as_str())) else { return Ok(None) };
    check_yaml(text)?;
    let continues = lines.next().is_some_and(|next| next.starts_with([' ', '\t']));
    let value = lines::get(text, ':', key);
    match value.as_ref().and_then(Value::as_str) {
        Some("null" | "~") => Ok(None),
        Some(value) if continues || value.starts_with(['>', '|', '*', '&', '!', '{', '[']) => {
            Err(not_edited(line))
        }
        None if !line.trim_end().ends_with('#') && line.trim_start().starts_with(['-', '"']) => {
            Err(not_edited(line))
        }
        _ => Ok(value),
    }
}

fn not_edited(line: &str) -> Error {
    let message = format!("the file has YAML that is not read: '{}'", line.trim_end());
    Error::new(ErrorKind::Capability, message)
        .hint("write it as lines of `name: value`; nothing was changed")
}

/// Refuses YAML to which a line cannot be added.
fn check_yaml(text: &str) -> Result<()> {
    let is_other = |line: &&str| {
        line.starts_with(['{', '[', '-', '%', '.', '"', '\'', '?', '<']) && !line.starts_with("---")
    };
    let is_name = |line: &&str| !line.trim().is_empty() && !line.starts_with(['#', '-']);
    let first = text.lines().find(is_name).filter(|line| line.starts_with(' '));
    match first.or_else(|| text.lines().find(is_other)) {
        None => Ok(()),
        Some(line) => Err(not_edited(line)),
    }
}

/// The byte order mark, which editors on Windows write.
const BOM: char = '\u{feff}';

fn malformed(format: &str, cause: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the file is not valid {format}: {cause}"))
        .hint("correct it first; nothing was changed")
}

fn not_a_table(key: &[String]) -> Error {
    let message = match key {
        [] => "the file is not a table".to_owned(),
        key => format!("'{}' is not a table", key.join(".")),
    };
    Error::new(ErrorKind::Conflict, message).hint("correct the file first; nothing was changed")
}

#[cfg(test)]
mod tests;
