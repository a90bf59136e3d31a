//! A long run of turns with every kind of failure:
//! `cargo run --release -p ctx-runtime --example soak [SEED] [TURNS]`, 10,000 turns by default.
//!
//! Fifty sessions in one home; a model that reports overflows, breaks off, is slow, never answers,
//! and calls unknown tools; turns that are dropped, runtimes that are dropped during many turns,
//! processes that are killed; a clock that jumps. At the end every answer that a user received is
//! stored exactly once, no session is stuck, and no request was larger than the window.

#![allow(clippy::print_stdout)] // The report is this program's output.

mod check;
mod life;
mod model;
mod run;

use std::path::PathBuf;
use std::process::Command;

fn main() {
    let mut arguments = std::env::args().skip(1);
    if let Some(child) = run::Child::of_environment() {
        return child.live();
    }
    let number = |argument: Option<String>| argument.and_then(|number| number.parse::<u64>().ok());
    let seed = number(arguments.next()).unwrap_or_else(run::some_seed);
    let turns = number(arguments.next()).unwrap_or(10_000) as usize;
    let within = std::env::var_os("CTX_SOAK_DIR").map(PathBuf::from);
    let home = tempfile::tempdir_in(within.unwrap_or_else(std::env::temp_dir)).expect("a folder");
    let again = || Command::new(std::env::current_exe().expect("this program"));
    let report = run::run(home.path(), seed, (turns, 50), &again);
    println!("{report}");
    if !report.wrong().is_empty() {
        std::process::abort();
    }
}
