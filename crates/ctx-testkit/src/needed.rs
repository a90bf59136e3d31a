//! Tests that need something of the machine, and tests that take as long as they are let.

use std::io::Write;

/// Says that a test is skipped, past the capture of the test harness. In CI (`$CI`) nothing is.
///
/// # Panics
///
/// In CI.
pub fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "a test in CI cannot be skipped: {why}");
    // Of a harness that does not listen nothing is lost.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// How many cases a slow test goes through: all of them where `$CTX_TEST_CASES` is `all`, else a tenth.
#[must_use]
pub fn cases(all: u32) -> u32 {
    match std::env::var("CTX_TEST_CASES").is_ok_and(|cases| cases == "all") {
        true => all,
        false => all.div_ceil(10),
    }
}
