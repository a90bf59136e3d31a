//! `agents.defaults.workspace` and `agents.defaults.workspaceContext`.

use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Profile, Result, Tokens};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Settings;

/// `agents.defaults.workspace`: the folder whose files are brought in when a message asks for them, as
/// an absolute path, or one that begins with `~/`. Default: none, and nothing is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Folder(pub Option<String>);

impl Folder {
    /// Where it is. `~` stands for the home folder of the user.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`] where that is not known.
    pub fn path(&self) -> Result<Option<PathBuf>> {
        self.within(std::env::home_dir)
    }

    fn within(&self, home: impl FnOnce() -> Option<PathBuf>) -> Result<Option<PathBuf>> {
        let Some(text) = self.0.as_deref() else { return Ok(None) };
        let Some(rest) = text.strip_prefix("~/") else { return Ok(Some(PathBuf::from(text))) };
        let home = home().filter(|home| !home.as_os_str().is_empty()).ok_or_else(|| {
            Error::new(ErrorKind::Config, "the workspace is in a home folder that is not known")
                .with("value", format!("{text:?}"))
                .hint("set HOME, or give the whole path as agents.defaults.workspace")
        })?;
        Ok(Some(home.join(rest)))
    }

    /// Refuses a path that depends on where one stands.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub fn check(&self) -> Result<()> {
        match &self.0 {
            Some(text) if !text.starts_with("~/") && !Path::new(text).is_absolute() => {
                let key = "agents.defaults.workspace";
                Err(Error::new(ErrorKind::Config, format!("'{key}' is no absolute path"))
                    .with("value", format!("{text:?}"))
                    .hint("give the folder's whole path, or one that begins with ~/"))
            }
            _ => Ok(()),
        }
    }
}

/// `agents.defaults.workspaceAccess`: what the agent may do in its workspace. Ordered by how much that
/// is, so that of two limits the lower one counts.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub enum Access {
    /// Nothing: its files are not brought in, and nothing is written there.
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

/// Where the block stands in the request.
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

/// How files of the workspace are brought in.
///
/// # Notes
///
/// It acts where `agents.defaults.workspace` names a folder. Numbers are those of PonyBunny.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Config {
    /// Where the block stands. Default: `before-newest`; `system-prompt` in profile `ponybunny`.
    pub placement: Placement,
    /// The longest block, in tokens; at most an eighth of the window. Default: 10000.
    #[schemars(range(min = 64))]
    pub budget_tokens: u32,
    /// At most so many snippets. Default: 10.
    #[schemars(range(min = 1, max = 1000))]
    pub limit: u32,
    /// How long a snippet is, in tokens. Default: 512.
    #[schemars(range(min = 16, max = 8192))]
    pub chunk_tokens: u32,
    /// The share of the vectors in a score, 0 to 1, where a model makes them; otherwise words decide.
    /// Default: 0.7.
    #[schemars(range(min = 0, max = 1))]
    pub vector_weight: f32,
    /// Whether what the archive recalls stands in the same block. Default: false, as layer `memory`
    /// brings it; true in profile `ponybunny`.
    pub sessions: bool,
}

impl Config {
    /// The defaults of a profile.
    #[must_use]
    pub fn for_profile(profile: Profile) -> Self {
        match profile {
            Profile::Ponybunny => {
                Self { placement: Placement::SystemPrompt, sessions: true, ..Self::default() }
            }
            _ => Self::default(),
        }
    }

    /// Refuses numbers that make no sense.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`].
    pub fn check(&self) -> Result<()> {
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

    /// The longest block in a window.
    #[must_use]
    pub fn budget(&self, window: Tokens) -> Tokens {
        Tokens(self.budget_tokens.min(window.0 / 8))
    }

    /// How the workspace is indexed.
    #[must_use]
    pub fn settings(&self, counter: ctx_core::Counter) -> Settings {
        Settings { vector_weight: self.vector_weight, ..Settings::default() }
            .with_counter(counter)
            .with_chunk(Tokens(self.chunk_tokens))
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
    fn a_workspace_is_a_whole_path() {
        let folder = |text: &str| Folder(Some(text.to_owned()));
        assert!(Folder(None).check().is_ok() && Folder(None).path().unwrap().is_none());
        assert!(folder("~/work").check().is_ok());
        for wrong in ["", "work", "./work", "~", "~root/work"] {
            assert_eq!(folder(wrong).check().unwrap_err().kind(), ErrorKind::Config, "{wrong}");
        }
    }

    #[test]
    fn a_home_folder_that_is_not_known_is_an_error() {
        let folder = |text: &str| Folder(Some(text.to_owned()));
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
    fn numbers_that_make_no_sense_are_refused() {
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
