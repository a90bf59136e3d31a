//! The proxy, its APIs, and whose requests go to it.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A proxy, as clients see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    url: String,
}

impl Proxy {
    /// Returns the proxy at a URL without a path: `http://127.0.0.1:8787`.
    #[must_use]
    pub fn at(url: &str) -> Self {
        let url = url.trim_end_matches('/');
        Self { url: url.strip_suffix("/v1").unwrap_or(url).to_owned() }
    }

    /// Whether a URL is that of this proxy, with any path. Names of this machine are equal.
    #[must_use]
    pub fn is_at(&self, url: &str) -> bool {
        fn host_and_port(url: &str) -> Option<(String, &str)> {
            let authority = url.split_once("://")?.1.split('/').next()?;
            let authority = authority.rsplit('@').next()?;
            let (host, port) = authority.rsplit_once(':').unwrap_or((authority, ""));
            let is_local = ["localhost", "127.0.0.1", "[::1]", "0.0.0.0"].contains(&host);
            let host = if is_local { "localhost" } else { host };
            Some((host.to_ascii_lowercase(), port))
        }
        host_and_port(url).is_some_and(|found| Some(found) == host_and_port(&self.url))
    }

    /// Returns the URL, without a slash at its end.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }
}

/// Whose configuration is edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The user's, for all projects.
    User,
    /// That of a project's folder.
    Project(PathBuf),
}

impl Scope {
    /// Returns the folder of the project.
    #[must_use]
    pub fn project(&self) -> Option<&Path> {
        match self {
            Self::User => None,
            Self::Project(folder) => Some(folder),
        }
    }
}

/// The API that a base URL is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Family {
    /// OpenAI's: chat completions and responses.
    OpenAi,
    /// Anthropic's messages.
    Anthropic,
    /// Gemini's `generateContent`.
    Gemini,
}

impl Family {
    /// Returns the name that `ctx serve --upstream NAME=URL` takes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }
}
