//! The conformance suite against correct and defective engines.

mod broken;
mod builtin;
mod report;
// One of its faults is used by the memory test.
#[expect(dead_code)]
mod simple;
