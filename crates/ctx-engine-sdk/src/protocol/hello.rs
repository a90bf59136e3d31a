//! Who is who, and what each side can do.

use serde::{Deserialize, Serialize};

/// A program that hosts engines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// The first call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Hello {
    /// The host's [`PROTOCOL`](super::PROTOCOL).
    pub protocol: String,
    /// The host.
    pub host: HostInfo,
    /// The [services](super::service) it offers. One that is missing here is refused when asked
    /// for.
    pub features: Vec<String>,
    /// What the user's configuration says to this engine: `plugins.engines.<id>.config`.
    pub config: serde_json::Value,
}

impl Hello {
    /// Whether the host offers a service.
    #[must_use]
    pub fn offers(&self, service: &str) -> bool {
        self.features.iter().any(|feature| feature == service)
    }
}

/// How an engine wants to be spoken to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Contract {
    /// Whether rows come with their message. Without, they still have id, role, tokens and group,
    /// and calls are much smaller.
    pub contents: bool,
    /// Whether the engine remembers the rows of a session, so that each call tells only what is
    /// new. Engines of this crate do; one that is written without it may prefer to be sent all rows
    /// each time.
    pub remembers: bool,
    /// Whether it asks for the lease on compaction.
    pub owns_compaction: bool,
    /// An engine that runs first, to which this one only adds: `legacy`, or nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The optional [verbs](super::verb) it does something about. Others are not called.
    pub verbs: Vec<String>,
}

impl Default for Contract {
    /// Rows without contents, all of them each time, and no optional verb.
    fn default() -> Self {
        Self {
            contents: false,
            remembers: false,
            owns_compaction: false,
            base: None,
            verbs: Vec::new(),
        }
    }
}

/// The answer to [`Hello`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Info {
    /// The engine's [`PROTOCOL`](super::PROTOCOL).
    pub protocol: String,
    /// The id that a configuration selects it by.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// How it wants to be spoken to.
    #[serde(flatten)]
    pub contract: Contract,
}

impl Info {
    /// An engine of this crate: it remembers sessions and is sent contents.
    #[must_use]
    pub fn new(id: impl Into<String>, version: impl Into<String>) -> Self {
        let id = id.into();
        Self {
            protocol: super::PROTOCOL.into(),
            name: id.clone(),
            id,
            version: version.into(),
            contract: Contract { contents: true, remembers: true, ..Contract::default() },
        }
    }

    /// A name for people.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Has rows come without their messages.
    #[must_use]
    pub fn without_contents(mut self) -> Self {
        self.contract.contents = false;
        self
    }

    /// Asks for the lease on compaction.
    #[must_use]
    pub fn owns_compaction(mut self) -> Self {
        self.contract.owns_compaction = true;
        self
    }

    /// Runs after another engine and only adds to it.
    #[must_use]
    pub fn base(mut self, id: impl Into<String>) -> Self {
        self.contract.base = Some(id.into());
        self
    }

    /// Names the optional [verbs](super::verb) that the engine does something about.
    #[must_use]
    pub fn verbs(mut self, verbs: &[&str]) -> Self {
        self.contract.verbs = verbs.iter().map(|&verb| verb.to_owned()).collect();
        self
    }
}
