//! Compactions stored, seen and undone, in sessions of ours and beside files of others.

// Helpers of tests are tests.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

mod back;
mod branches;
mod convert;
mod damage;
mod erase;
mod formats;
mod forms;
mod house;
mod rewrite;
mod undo;
