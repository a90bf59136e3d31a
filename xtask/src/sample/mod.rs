//! The sessions shipped in `examples/`: invented, but as long and as mixed as real ones.
//!
//! A small project, its files and its tools are simulated, so that what the agent reads, greps,
//! tests and edits hangs together. Everything is the same each time: the numbers, the ids, the
//! times.

mod agent;
mod claude_code;
pub(crate) mod clock;
mod commands;
mod output;
mod pictures;
pub(crate) mod random;
mod recorder;
mod story;
mod workspace;

/// Path in the repository and contents of each sample.
pub(crate) fn files() -> [(&'static str, String); 2] {
    [
        ("examples/fix-flaky-test.jsonl", story::session()),
        ("examples/claude-code.jsonl", claude_code::session()),
    ]
}

#[cfg(test)]
mod tests;
