//! Where engines that are not built in are looked for, and what is checked before any of their code
//! runs.
//!
//! Looked into, in this order: each folder of `$CTX_ENGINE_PATH`, `engines` in ctx's home, then
//! `/usr/local/lib/ctx/engines` and `/usr/lib/ctx/engines`; in each, `NAME.toml` and then
//! `NAME/NAME.toml`. Never the working directory: folders that are not absolute are passed over.
//! The first manifest that is there decides. If it is refused, so is the engine; one of the same
//! name further on is not taken in its place.
//!
//! A manifest and its file are refused unless
//!
//! - both are regular files that lie in the manifest's own folder once all links are followed, and
//!   they and the folder belong to root or to the user who runs this, and can be written to neither
//!   by the group nor by others (on Unix);
//! - the manifest is sound (see [`manifest`](crate::manifest)), has the name of its file, speaks a
//!   version of the engine protocol that this host speaks, and has a file for this platform;
//! - the file has the SHA-256 that the manifest says;
//! - a library is an object file of this platform that exports `ctx_engine_v1`, with all its
//!   segments there; a program is one too, or a script, or has an interpreter in `PATH`.
//!
//! # What remains
//!
//! The bytes that are hashed are those that are looked at, but the system loads the file by its
//! path, later. [`Found::check_unchanged`], called right before and right after, notices a file that
//! was replaced or written to meanwhile. Who can write there is the owner of the file or root: code
//! that could do the same to ctx itself. Libraries that a library needs are found by the system's
//! own rules and are not looked at, nor is an interpreter.

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

pub use files::{check_rights, sha256_of};
pub use listing::{Listed, Listing};
pub use object_file::{FileKind, kind_of};
pub use package::Package;
pub use search::{PlaceKind, Search};
pub use trace::{Outcome, Step, Trace};

use files::Stamp;

/// An engine that was found, and passed every check.
#[derive(Clone, Debug)]
pub struct Found {
    /// What it says of itself.
    pub manifest: Manifest,
    /// Where that stands.
    pub manifest_path: PathBuf,
    /// The place it was found in.
    pub place: PlaceKind,
    /// What is to be loaded or run.
    pub file: EngineFile,
    /// The file as it was when it was checked.
    stamp: Stamp,
}

/// What is to be loaded or run. Every path is absolute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EngineFile {
    /// A library.
    Library(PathBuf),
    /// A program.
    Command {
        /// What is run: the engine's file, or its interpreter.
        program: PathBuf,
        /// What it is given, the engine's file first where an interpreter runs it.
        args: Vec<std::ffi::OsString>,
    },
}

/// How an engine is carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum CarriedBy {
    /// It is part of the host.
    Builtin,
    /// A library in the host's process.
    Dylib,
    /// A process of its own.
    Process,
}

impl CarriedBy {
    /// As it stands in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Builtin => "builtin",
            Self::Dylib => "dylib",
            Self::Process => "process",
        }
    }
}

impl Found {
    /// How it is carried under that much trust: a library without trust runs in a process as well,
    /// inside of `ctx engine-host`.
    #[must_use]
    pub fn carried_by(&self, trust: Trust) -> CarriedBy {
        match (&self.file, trust) {
            (EngineFile::Library(_), Trust::InProcess) => CarriedBy::Dylib,
            _ => CarriedBy::Process,
        }
    }

    /// The engine's own file.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.stamp.path()
    }

    /// Refuses a file that is not any more what was checked. To be called right before it is loaded
    /// or run, and right after.
    ///
    /// # Errors
    ///
    /// `Conflict`, if it was replaced or written to; `Io`, if it is not there any more.
    pub fn check_unchanged(&self) -> Result<()> {
        self.stamp.check()
    }
}

#[cfg(test)]
mod tests;
