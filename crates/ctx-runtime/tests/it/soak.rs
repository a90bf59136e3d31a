//! A short soak: a few hundred turns with every kind of failure.

#![allow(clippy::unwrap_used)] // Test helpers may unwrap.
#![allow(clippy::print_stdout)] // A failed run must print its seed.

#[path = "../../examples/soak/check.rs"]
mod check;
#[path = "../../examples/soak/life.rs"]
mod life;
#[path = "../../examples/soak/model.rs"]
mod model;
#[path = "../../examples/soak/run.rs"]
mod run;

use std::process::Command;

#[test]
fn every_answer_is_stored_once_and_no_session_is_stuck() {
    if let Some(child) = run::Child::of_environment() {
        return child.live();
    }
    let home = tempfile::tempdir().unwrap();
    let again = || {
        let name = "soak::every_answer_is_stored_once_and_no_session_is_stuck";
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([name, "--exact", "--nocapture", "--test-threads=1"]);
        command
    };
    let seed = std::env::var("CTX_SOAK_SEED").ok().and_then(|seed| seed.parse().ok());
    let report = run::run(home.path(), seed.unwrap_or_else(run::some_seed), (300, 5), &again);
    println!("{report}");
    assert!(report.wrong().is_empty(), "{report}");
}
