//! Tests with requirements on the machine, and slow tests.

use std::io::Write;

/// Reports a skipped test, bypassing the output capture of the test harness. In CI (`$CI`) skipping
/// is an error.
///
/// # Panics
///
/// In CI.
pub fn skipped(why: &str) {
    assert!(std::env::var_os("CI").is_none(), "a test in CI cannot be skipped: {why}");
    // If stderr is closed, the message is lost.
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Returns the number of cases of a slow test: `all` if `$CTX_TEST_CASES` is `all`, else a tenth.
pub fn cases(all: u32) -> u32 {
    match std::env::var("CTX_TEST_CASES").is_ok_and(|cases| cases == "all") {
        true => all,
        false => all.div_ceil(10),
    }
}
