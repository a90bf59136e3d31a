//! The conformance suite against engines that do as they should, and engines that do not.

mod broken;
mod builtin;
mod report;
mod simple;
