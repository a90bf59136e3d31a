//! Replays and comparisons.

mod eval;
mod manifest;
mod recall;
mod replay;
