//! Searching for engines that are not built in, and the checks made before any of their code runs.
//!
//! The search order is: each folder of `$CTX_ENGINE_PATH`, `engines` in ctx's home, then
//! `/usr/local/lib/ctx/engines` and `/usr/lib/ctx/engines`; in each folder, `NAME.toml` and then
//! `NAME/NAME.toml`. The working directory is never searched: folders that are not absolute are
//! skipped. The first manifest decides. If it is rejected, the engine is too: no later manifest of
//! the same name is used.
//!
//! A manifest and its file are rejected unless
//!
//! - both are regular files that lie in the manifest's own folder once all links are followed, and
//!   they and the folder belong to root or to the current user, and neither the group nor others
//!   can write to them (on Unix);
//! - the manifest is valid (see [`manifest`](crate::manifest)), has the name of its file, supports
//!   a version of the engine protocol that this host supports, and has a file for this platform;
//! - the file has the SHA-256 given in the manifest;
//! - a library is an object file of this platform that exports `ctx_engine_v1`, with all its
//!   segments present; a program is an object file too, or a script, or has an interpreter in
//!   `PATH`.
//!
//! # Remaining risks
//!
//! The bytes that are hashed are those that are inspected, but the system later loads the file by
//! its path. [`FoundEngine::check_unchanged`], called directly before and directly after, detects a
//! file that was replaced or modified meanwhile. Only the owner of the file and root can write
//! there; they could replace ctx itself as well. The system finds the dependencies of a library by
//! its own rules; they are not checked, and neither is an interpreter.

mod files;
mod listing;
mod object_file;
mod package;
mod search;
mod trace;
mod verify;

use std::path::{Path, PathBuf};

use ctx_core::Result;
use serde::{Deserialize, Serialize};

use crate::Trust;
use crate::manifest::Manifest;

pub use files::sha256_of;
pub use listing::{EngineListing, ListedEngine};
pub use object_file::{FileKind, kind_of};
pub use package::Package;
pub use search::{FolderKind, Search};
pub use trace::{SearchOutcome, SearchStep, SearchTrace};

use files::Stamp;

/// An engine that was found and passed every check.
#[derive(Clone, Debug)]
pub struct FoundEngine {
    /// Its manifest.
    pub manifest: Manifest,
    /// The path of the manifest.
    pub manifest_path: PathBuf,
    /// The place it was found in.
    pub place: FolderKind,
    /// The file to load or run.
    pub file: EngineFile,
    /// The file as it was when it was checked.
    stamp: Stamp,
}

/// The file to load or run. Every path is absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineFile {
    /// A library.
    Library(PathBuf),
    /// A program.
    Command {
        /// The program to run: the engine's file, or its interpreter.
        program: PathBuf,
        /// Its arguments; for an interpreter, the engine's file is the first.
        args: Vec<std::ffi::OsString>,
    },
}

/// The transport of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TransportKind {
    /// Part of the host.
    Builtin,
    /// A library in the host's process.
    Dylib,
    /// Its own process.
    Process,
}

impl TransportKind {
    /// Returns its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Dylib => "dylib",
            Self::Process => "process",
        }
    }
}

impl FoundEngine {
    /// Returns the transport for this trust: a library without trust runs in a process too, inside
    /// `ctx engine-host`.
    pub fn transport(&self, trust: Trust) -> TransportKind {
        match (&self.file, trust) {
            (EngineFile::Library(_), Trust::InProcess) => TransportKind::Dylib,
            _ => TransportKind::Process,
        }
    }

    /// Returns the engine's own file.
    pub fn path(&self) -> &Path {
        &self.stamp.path
    }

    /// Rejects a file that has changed since it was checked. Call it directly before and directly
    /// after the file is loaded or run.
    ///
    /// # Errors
    ///
    /// `Conflict`, if it was replaced or modified; `Io`, if it is gone.
    pub fn check_unchanged(&self) -> Result<()> {
        self.stamp.check()
    }
}

#[cfg(test)]
mod tests;
