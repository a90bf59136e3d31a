//! The conformance suite against engines that do as they should, and engines that do not.

mod broken;
mod builtin;
mod report;
// One of its faults is for the test of memory.
#[expect(dead_code)]
mod simple;
