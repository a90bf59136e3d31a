//! The handshake: names, versions and capabilities of both sides.

use serde::{Deserialize, Serialize};

use super::Encoding;

/// A program that hosts engines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct HostInfo {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// Parameters of `hello`, the first call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Hello {
    /// The host's [`PROTOCOL`](super::PROTOCOL).
    pub protocol: String,
    /// The host.
    pub host: HostInfo,
    /// The [services](super::service) that the host offers. All others are refused.
    pub features: Vec<String>,
    /// The [encodings](Encoding) that the host offers, besides JSON.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub encodings: Vec<String>,
    /// The user's configuration for this engine: `plugins.engines.<id>.config`.
    pub config: serde_json::Value,
}

impl Hello {
    /// Whether the host offers a service.
    #[must_use]
    pub fn offers(&self, service: &str) -> bool {
        self.features.iter().any(|feature| feature == service)
    }
}

/// What an engine expects from its host. Default: rows without contents, all rows each time, and no
/// optional verbs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Contract {
    /// Whether rows include their message. If not, they still have id, role, tokens and group, and
    /// calls are much smaller.
    pub contents: bool,
    /// Whether the engine remembers the rows of a session, so that each call contains only the
    /// changes. Engines built with this crate do; an engine written without it may prefer to get
    /// all rows each time.
    pub remembers: bool,
    /// The [encoding](Encoding) of large messages, one of those offered. Default: JSON.
    /// This crate chooses it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// Whether it requests the lease on compaction.
    pub owns_compaction: bool,
    /// The id of an engine that runs first, to which this one only adds: `legacy`, or empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// The optional [verbs](super::verb) that the engine implements. Others are not called.
    pub verbs: Vec<String>,
}

impl Contract {
    /// Returns the encoding of all messages after `hello`.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        match self.encoding.as_deref() == Some(Encoding::MessagePack.name()) {
            true => Encoding::MessagePack,
            false => Encoding::Json,
        }
    }
}

/// The answer to [`Hello`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
#[must_use]
pub struct Info {
    /// The engine's [`PROTOCOL`](super::PROTOCOL).
    pub protocol: String,
    /// The id used in the configuration.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// Its version.
    pub version: String,
    /// What it expects from the host.
    #[serde(flatten)]
    pub contract: Contract,
}

impl Info {
    /// Describes an engine of this crate: it remembers sessions and gets contents.
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

    /// Sets a name for people.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Requests rows without their messages.
    pub fn without_contents(mut self) -> Self {
        self.contract.contents = false;
        self
    }

    /// Requests the lease on compaction.
    pub fn owns_compaction(mut self) -> Self {
        self.contract.owns_compaction = true;
        self
    }

    /// Runs after another engine and only adds to its result.
    pub fn base(mut self, id: impl Into<String>) -> Self {
        self.contract.base = Some(id.into());
        self
    }

    /// Names the optional [verbs](super::verb) that the engine implements.
    pub fn verbs(mut self, verbs: &[&str]) -> Self {
        self.contract.verbs = verbs.iter().map(|&verb| verb.to_owned()).collect();
        self
    }
}
