//! `agents.defaults.workspace` and `agents.defaults.workspaceContext`.

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result, Tokens};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkspaceSettings;

/// `agents.defaults.workspace`: the folder whose files are included when a message asks for them,
/// as an absolute path, or one that begins with `~/`. Default: none, which disables it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct WorkspaceFolder(pub Option<String>);

impl WorkspaceFolder {
    /// Returns the path. `~` is the user's home folder.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] if the home folder is unknown.
    pub fn path(&self) -> Result<Option<PathBuf>> {
        self.within(std::env::home_dir)
    }

    fn within(&self, home: impl FnOnce() -> Option<PathBuf>) -> Result<Option<PathBuf>> {
        let Some(text) = self.0.as_deref() else { return Ok(None) };
        let Some(rest) = text.strip_prefix("~/") else { return Ok(Some(PathBuf::from(text))) };
        let home = home().filter(|home| !home.as_os_str().is_empty()).ok_or_else(|| {
            Error::new(ErrorKind::Config, "the home folder of the workspace is unknown")
                .with("value", format!("{text:?}"))
                .hint("set HOME, or set agents.defaults.workspace to an absolute path")
        })?;
        Ok(Some(home.join(rest)))
    }

    /// Rejects a relative path.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub(crate) fn check(&self) -> Result<()> {
        match &self.0 {
            Some(text) if !text.starts_with("~/") && !Path::new(text).is_absolute() => {
                let key = "agents.defaults.workspace";
                Err(Error::new(ErrorKind::Config, format!("'{key}' is not an absolute path"))
                    .with("value", format!("{text:?}"))
                    .hint("give an absolute path, or one that begins with ~/"))
            }
            _ => Ok(()),
        }
    }
}

/// `agents.defaults.workspaceAccess`: what the agent may do in its workspace. Ordered by
/// permission, so that the lower of two limits applies.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum WorkspaceAccess {
    /// Nothing: its files are not included, and nothing is written there.
    #[serde(rename = "none")]
    None,
    /// Read: a memory flush, which would write there, is skipped.
    #[serde(rename = "ro")]
    ReadOnly,
    /// Read and write.
    #[default]
    #[serde(rename = "rw")]
    ReadWrite,
}

/// Where the block is inserted in the request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Right before the newest user message, so that the provider's cached prefix holds.
    #[default]
    BeforeNewest,
    /// At the end of the system prompt (PonyBunny). Each new block breaks the cached prefix at its
    /// beginning.
    SystemPrompt,
}

/// How files of the workspace are included.
///
/// # Notes
///
/// Active if `agents.defaults.workspace` names a folder. Numbers are those of PonyBunny.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Where the block is inserted. Default: `before-newest`; `system-prompt` in profile
    /// `ponybunny`.
    pub placement: Placement,
    /// The longest block, in tokens; at most an eighth of the window. Default: 10000.
    #[schemars(range(min = 64))]
    pub budget_tokens: u32,
    /// The maximum number of snippets. Default: 10.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: u32,
    /// The length of a snippet, in tokens. Default: 512.
    #[schemars(range(min = 16, max = 8192))]
    pub chunk_tokens: u32,
    /// The weight of the vectors in a score, 0 to 1, if a model makes them; otherwise the score is
    /// lexical. Default: 0.7.
    #[schemars(range(min = 0, max = 1))]
    #[serde(serialize_with = "ctx_search::search::shortest_decimal")]
    pub vector_weight: f32,
    /// Whether the block also contains what the archive recalls. Default: false, as layer `memory`
    /// brings it; true in profile `ponybunny`.
    pub sessions: bool,
}

impl Config {
    /// Rejects invalid numbers.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub(crate) fn check(&self) -> Result<()> {
        for (key, value, least, most) in [
            ("budgetTokens", f64::from(self.budget_tokens), 64.0, f64::from(u32::MAX)),
            ("limit", f64::from(self.limit), 1.0, 1000.0),
            ("chunkTokens", f64::from(self.chunk_tokens), 16.0, 8192.0),
            ("vectorWeight", f64::from(self.vector_weight), 0.0, 1.0),
        ] {
            if !(least..=most).contains(&value) {
                let text = format!(
                    "'agents.defaults.workspaceContext.{key}': expected a number from {least} to {most}"
                );
                return Err(Error::new(ErrorKind::Config, text)
                    .with("value", value)
                    .hint("`ctx config schema` lists the keys with their defaults"));
            }
        }
        Ok(())
    }

    /// Returns the longest block for a window.
    pub(crate) fn budget(&self, window: Tokens) -> Tokens {
        Tokens(self.budget_tokens.min(window.0 / 8))
    }

    /// Returns the settings for indexing.
    pub fn settings(&self, counter: ctx_core::Counter) -> WorkspaceSettings {
        WorkspaceSettings {
            chunk: Tokens(self.chunk_tokens.max(16)),
            counter,
            vector_weight: self.vector_weight,
            ..WorkspaceSettings::default()
        }
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            placement: Placement::BeforeNewest,
            budget_tokens: 10_000,
            limit: 10,
            chunk_tokens: 512,
            vector_weight: 0.7,
            sessions: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workspace_is_an_absolute_path() {
        let folder = |text: &str| WorkspaceFolder(Some(text.to_owned()));
        assert!(
            WorkspaceFolder(None).check().is_ok()
                && WorkspaceFolder(None).path().unwrap().is_none()
        );
        assert!(folder("~/work").check().is_ok());
        for wrong in ["", "work", "./work", "~", "~root/work"] {
            assert_eq!(folder(wrong).check().unwrap_err().kind(), ErrorKind::Config, "{wrong}");
        }
    }

    #[test]
    fn an_unknown_home_folder_is_an_error() {
        let folder = |text: &str| WorkspaceFolder(Some(text.to_owned()));
        let home = || Some(PathBuf::from("/home/ada"));
        let work = PathBuf::from("/home/ada/work");
        assert_eq!(folder("~/work").within(home).unwrap(), Some(work));
        assert_eq!(folder("/w").within(|| None).unwrap(), Some(PathBuf::from("/w")));
        for home in [None, Some(PathBuf::new())] {
            let error = folder("~/work").within(|| home).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Config);
        }
    }

    #[test]
    fn invalid_numbers_are_refused() {
        let with = |key: &str, value: serde_json::Value| -> Config {
            serde_json::from_value(serde_json::json!({ key: value })).unwrap()
        };
        assert!(Config::default().check().is_ok());
        assert!(with("vectorWeight", 0.into()).check().is_ok());
        for (key, value) in [
            ("budgetTokens", 0.0),
            ("limit", 0.0),
            ("limit", 1001.0),
            ("chunkTokens", 3.0),
            ("chunkTokens", 9000.0),
            ("vectorWeight", 7.0),
            ("vectorWeight", -0.1),
        ] {
            let value = if key == "vectorWeight" { value.into() } else { (value as u32).into() };
            let error = with(key, value).check().unwrap_err();
            assert!(error.to_string().contains(key), "{error}");
        }
    }

    #[test]
    fn a_block_is_at_most_an_eighth_of_the_window() {
        let config = Config::default();
        assert_eq!(config.budget(Tokens(200_000)), Tokens(10_000));
        assert_eq!(config.budget(Tokens(16_000)), Tokens(2_000));
    }
}
