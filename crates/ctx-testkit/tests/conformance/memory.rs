//! An engine that leaks memory. Only Linux reports the memory of a process.
#![cfg(target_os = "linux")]

// Most of it is used by the other tests.
#[expect(dead_code)]
mod simple;

use ctx_testkit::conformance::{Level, Options, check};

use crate::simple::{Fault, with};

#[test]
fn memory_that_grows_with_each_turn_is_detected() {
    let report = check(with(Fault::Leaks), &Options::new(Level::Full));
    assert_eq!(report.failed().collect::<Vec<_>>(), ["memory"], "{report}");
}
