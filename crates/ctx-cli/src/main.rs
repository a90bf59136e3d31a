//! The `ctx` binary.

fn main() {}
