//! `NAME.toml`: the description of an engine that is not built in, read before any of its code
//! runs.
//!
//! ```toml
//! manifest_version = 1
//! name = "sliding-window"          # also the name of this file
//! version = "0.1.0"
//! license = "MIT"
//! about = "keeps the newest messages"
//! slot = "contextEngine"           # the default
//! contract = ["1.0"]               # supported versions of the engine protocol
//! base = "legacy"                  # optional: an engine that runs first
//!
//! [platform.linux-x86_64]          # <os>-<arch> as named by Rust, or `any`
//! library = "libsliding_window.so" # a file next to this one ...
//! sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
//!
//! [platform.any]
//! command = "engine.py"            # ... or a program,
//! interpreter = "python3"          # run by an interpreter in PATH,
//! args = ["--quiet"]               # with arguments
//! sha256 = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
//! ```
//!
//! The table of this machine's platform is preferred to `any`. A manifest cannot grant trust: only
//! the user's configuration can.

mod check;
mod read;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{EngineName, Slot};

/// The version of the format that this crate reads and writes.
pub const MANIFEST_VERSION: u32 = 1;

/// The manifest of an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`MANIFEST_VERSION`].
    pub manifest_version: u32,
    /// The id used in the configuration.
    pub name: EngineName,
    /// Its own version.
    pub version: String,
    /// Its licence, as an SPDX expression.
    #[serde(default)]
    pub license: String,
    /// A description in one line.
    #[serde(default)]
    pub about: String,
    /// The slot it fills.
    #[serde(default)]
    pub slot: Slot,
    /// The supported versions of the engine protocol, `major.minor` each.
    pub contract: Vec<String>,
    /// An engine that runs first, to which this one only adds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<String>,
    /// Its file for each platform, by `<os>-<arch>` or `any`.
    pub platform: BTreeMap<String, PlatformFile>,
}

/// The file of one platform: a library or a command.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlatformFile {
    /// A library, by the name of its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// A program, by the name of its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The interpreter, by its name in `PATH`. Without one, the program is run directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// The arguments of the program.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The SHA-256 of the file, in hexadecimal.
    pub sha256: String,
}

impl PlatformFile {
    /// Returns the name of the file.
    pub fn name(&self) -> &str {
        self.library.as_deref().or(self.command.as_deref()).unwrap_or_default()
    }
}

/// Returns the platform of this machine, as named in manifests: `linux-x86_64`.
pub fn this_platform() -> String {
    format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH)
}

#[cfg(test)]
mod tests;
