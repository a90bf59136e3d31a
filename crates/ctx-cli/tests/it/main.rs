//! The `ctx` binary from outside: exit codes, JSON, and what it does with bad input.

mod bad_input;
mod commands;
mod eval;
mod recorded;
mod support;
