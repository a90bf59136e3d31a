//! The conformance suite against engines that do as they should, and engines that do not.

mod builtin;
