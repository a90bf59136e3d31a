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

/// The recorded sessions, if they are there.
const RECORDED: [&str; 6] = [
    "pi/before-compaction.jsonl",
    "claude-code/01_2026-01-05_a0bd162f.jsonl",
    "claude-code/03_2026-01-08_0442a060.jsonl",
    "claude-code/07_2026-01-20_130d7b7e.jsonl",
    "claude-code/09_2026-01-21_de1ed521.jsonl",
    "claude-code/15_2026-02-01_1e0816ef.jsonl",
];
