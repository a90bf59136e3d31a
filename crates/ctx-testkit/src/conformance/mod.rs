//! The conformance suite: what every context engine is held against, built in or foreign.
//!
//! An engine that is built in is given as a function that makes one; any other as a [`Plugin`].
//! [`check`] starts the engine anew for each case, drives it as a host does, and says of each case
//! whether it passed, failed and why, or was skipped and why. [`Level::Core`] is what a minimal
//! engine can pass; [`Level::Full`] adds what an engine does that keeps state and compacts. All
//! sessions come from fixed seeds, so a verdict is the same on every machine, but for two bounds
//! that cannot be: a case has a [deadline](Options::deadline), and `memory` reads what the
//! operating system says.
//!
//! ```no_run
//! use std::sync::Arc;
//! use ctx_core::ContextEngine;
//! use ctx_testkit::conformance::{Level, Options, Start, check};
//!
//! # fn my_engine(_: &Start) -> ctx_core::Result<Arc<dyn ContextEngine>> { todo!() }
//! let report = check(my_engine, &Options::new(Level::Full));
//! assert!(report.is_passed(), "{report}");
//! ```

mod bench;
mod cases;
mod host;
mod laws;
mod lazy;
mod plugin;
mod reading;
mod report;
mod run;
mod sitting;
mod stop;

pub use host::{HastyTimer, HeldStore};
pub use plugin::Plugin;
pub use report::{CaseReport, Outcome, Report};
pub use run::{Options, Start, cases, check, check_with};

use serde::{Deserialize, Serialize};

/// How much is asked of an engine.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// What a minimal engine can pass.
    #[default]
    Core,
    /// Also what outlives a process, and compaction.
    Full,
}

impl Level {
    /// As it stands on the command line and in JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Core => "core",
            Self::Full => "full",
        }
    }
}

/// A case of the suite.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Its stable name.
    pub name: &'static str,
    /// The level it belongs to.
    pub level: Level,
    /// What it is for, in one line.
    pub about: &'static str,
    run: fn(&bench::Bench) -> stop::Verdict,
}
