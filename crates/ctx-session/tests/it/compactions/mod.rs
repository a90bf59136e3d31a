//! Compactions stored, listed and undone, in ctx sessions and in the overlays of other files.

// Test helpers are test code.
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
