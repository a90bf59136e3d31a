//! An engine that leaks memory. Only Linux tells how much memory a process has.
#![cfg(target_os = "linux")]

// Most of it is used by the other tests.
#[expect(dead_code)]
mod simple;

use ctx_testkit::conformance::{Level, Options, check};

use crate::simple::{Fault, with};

#[test]
fn memory_that_grows_with_each_turn_is_found() {
    let report = check(with(Fault::Leaks), &Options::new(Level::Full));
    assert_eq!(report.failed().collect::<Vec<_>>(), ["memory"], "{report}");
}
