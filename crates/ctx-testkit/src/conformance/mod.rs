//! The conformance suite: the requirements on every context engine, built in or foreign.
//!
//! A built-in engine is given as a function that creates one; any other as a [`Plugin`]. [`check`]
//! starts a new instance for each case, drives it as a host does, and reports for each case whether
//! it passed, failed and why, or was skipped and why. [`Level::Core`] is what a minimal engine can
//! pass; [`Level::Full`] adds requirements on engines that keep state and compact. All sessions
//! come from fixed seeds, so a verdict is the same on every machine, with two exceptions: a case
//! has a [deadline](Options::deadline), and `memory` depends on figures of the operating system.
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

pub use plugin::Plugin;
pub use report::{CaseReport, Outcome, Report};
pub use run::{Options, Start, cases, check, check_with};

use serde::{Deserialize, Serialize};

/// How many requirements an engine is tested against.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// The requirements that a minimal engine can pass.
    #[default]
    Core,
    /// Also durable state and compaction.
    Full,
}

impl Level {
    /// Returns its name on the command line and in JSON.
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
    /// Its purpose, in one line.
    pub about: &'static str,
    run: fn(&bench::Bench) -> stop::Verdict,
}
