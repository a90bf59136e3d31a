//! Tests across the modules of the crate.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use ctx_compaction::Config;
use ctx_config::{Profile, SystemRules};
use ctx_core::Counter;

mod cuts;
mod extract;
mod facts;
mod golden;
mod labelled;
mod ladder;
mod pieces;
mod plan;
mod random;
mod repairs;
mod sessions;
mod wedges;

/// The compaction of a profile.
fn config_of(profile: &str) -> Config {
    ctx_config::Config::for_profile(Profile::find(profile).unwrap()).section().unwrap()
}

/// The counter of a profile.
fn counter_of(profile: &str) -> Counter {
    let config = ctx_config::Config::for_profile(Profile::find(profile).unwrap());
    config.section::<SystemRules>().unwrap().counter
}
