//! Turns, sessions and processes.

mod dry_run;
mod forgetting;
mod maintained;
mod processes;
mod recalled;
mod shared;
mod sharing;
mod soak;
