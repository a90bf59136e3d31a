//! The arguments of `ctx stats`.

use clap::Args;
use ctx_trace::stats::GroupBy;

use super::{Page, names};

/// What `ctx serve` saved is measured, from its records. What ctx would have saved in the sessions of
/// your agents is simulated, as `ctx replay` does with the profile of `ctx serve`; no model is called.
/// The two are never added to each other.
#[derive(Debug, Args)]
pub(crate) struct Stats {
    /// What a row is about; days are in UTC
    #[arg(long, value_name = "KEY", default_value = "day", value_parser = names::one_of(KEYS))]
    pub(crate) by: GroupBy,
    /// Only requests since then: a date, or an age such as 12h, 7d, 2w
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Include simulated figures of recorded sessions [default: if `ctx serve` has no records]
    #[arg(long)]
    pub(crate) sessions: bool,
    /// Replay at most this many sessions, the newest
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) last: usize,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) page: Page,
}

const KEYS: &[(&str, GroupBy)] = &[
    ("day", GroupBy::Day),
    ("project", GroupBy::Project),
    ("client", GroupBy::Client),
    ("model", GroupBy::Model),
];
