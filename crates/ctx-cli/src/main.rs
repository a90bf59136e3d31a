//! The `ctx` binary.
//!
//! What is linked last decides whether loops are vectorised: this crate is optimised for speed (the
//! profile `dist`), and the commands, which are large and seldom hot, are a crate of their own.

#![forbid(unsafe_code)]

use std::process::ExitCode;

/// musl's own allocator takes one lock for all threads, and maps new memory for each larger text.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    ctx_commands::main()
}
