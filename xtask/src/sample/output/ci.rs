//! The log of a CI job, as the forge hands it out: all of it.

use std::fmt::Write;

use super::cargo;
use super::runs;
use crate::sample::random::Random;
use crate::sample::workspace::Workspace;

/// The whole log of the job in which the test failed.
pub(crate) fn log(ws: &Workspace, random: &mut Random) -> String {
    let mut body = String::new();
    body.push_str("Current runner version: '2.329.0'\n##[group]Runner Image Provisioner\nHosted Compute Agent\n\
                   Version: 20251124.448\n##[endgroup]\n##[group]Operating System\nUbuntu\n24.04.3\nLTS\n##[endgroup]\n");
    body.push_str("##[group]Run actions/checkout@v5\nSyncing repository: mira/tidemark\n");
    for path in ws.paths() {
        let _ = writeln!(
            body,
            "  checkout {path} {:040x}",
            u128::from(random.next()) << 64 | u128::from(random.next())
        );
    }
    body.push_str("##[endgroup]\n##[group]Run rustup toolchain install stable --profile minimal\n");
    for part in ["cargo", "clippy", "rust-std", "rustc", "rustfmt"] {
        let _ = writeln!(
            body,
            "info: downloading component '{part}'\ninfo: installing component '{part}'"
        );
    }
    body.push_str("##[endgroup]\n##[group]Run cargo test --all-targets\n");
    body.push_str(cargo::FRESH_BUILD);
    let failure = (
        "redelivery_happens_once",
        "tests/redelivery.rs:39:9:\nassertion `left == right` failed: job 3 came too often\n  left: 3\n right: 2",
    );
    body.push_str(&cargo::test(ws, "", Some(failure), random).text);
    body.push_str(
        "##[endgroup]\n##[group]captured log of redelivery_happens_once (RUST_LOG=trace)\n",
    );
    body.push_str(&runs::trace(820, random));
    body.push_str("##[endgroup]\n##[error]Process completed with exit code 101.\n");

    let mut out = String::new();
    let mut tick = 7_120_044_u64;
    for line in body.lines() {
        tick += random.range(900, 260_000);
        let seconds = tick / 10_000_000;
        let _ = writeln!(
            out,
            "test (ubuntu-24.04)\tUNKNOWN STEP\t2026-03-11T17:{:02}:{:02}.{:07}Z {line}",
            seconds / 60 % 60,
            seconds % 60,
            tick % 10_000_000
        );
    }
    out
}
