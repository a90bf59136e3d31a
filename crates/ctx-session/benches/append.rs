//! Durable append beside the bare calls.

fn main() {}
