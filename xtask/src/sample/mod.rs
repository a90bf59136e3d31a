//! The sessions shipped in `examples/`: invented, but as long and as mixed as real ones.
//!
//! A small project, its files and its tools are simulated, so that what the agent reads, greps,
//! tests and edits hangs together. Everything is the same each time: the numbers, the ids, the
//! times.

mod agent;
mod claude_code;
pub(crate) mod clock;
mod output;
pub(crate) mod random;
mod recorder;
mod script;
mod workspace;

use anyhow::Result;

/// Path in the repository and contents of each sample.
pub(crate) fn files() -> Result<[(&'static str, String); 2]> {
    Ok([
        ("examples/fix-flaky-test.jsonl", agent::session()?),
        ("examples/claude-code.jsonl", claude_code::session()?),
    ])
}

#[cfg(test)]
mod tests;
