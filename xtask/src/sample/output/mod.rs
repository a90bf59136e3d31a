//! What the commands of the story print.

pub(crate) mod bench;
pub(crate) mod cargo;
pub(crate) mod ci;
pub(crate) mod git;
pub(crate) mod runs;

/// What a command printed, and its exit code.
pub(crate) struct Shell {
    pub(crate) text: String,
    pub(crate) code: i32,
}

impl Shell {
    pub(crate) fn ok(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 0 }
    }

    pub(crate) fn failed(text: impl Into<String>, code: i32) -> Self {
        Self { text: text.into(), code }
    }
}
