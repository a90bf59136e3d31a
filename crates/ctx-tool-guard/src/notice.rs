//! What the model reads in place of what was cut.

pub use ctx_core::CONTEXT_LIMIT_TRUNCATION_NOTICE;

/// Stands for a whole result of the past that was too large to show any of it.
pub const PREEMPTIVE_TOOL_RESULT_COMPACTION_PLACEHOLDER: &str =
    "[compacted: tool output removed to free context]";

/// Stands for a result that had to go because all results together took too much.
pub const AGGREGATE_ELISION_NOTICE: &str = "[tool result elided: aggregate tool-result budget \
     exceeded; rerun the command if the output is needed]";

/// Stands between the beginning and the end of a result, where both are shown.
pub const MIDDLE_CONTENT_OMITTED_NOTICE: &str =
    "⚠️ [... middle content omitted — showing head and tail ...]";

/// Begins the line that says where a whole result can be read.
const PRESERVED: &str = "[full output preserved at ";

/// The line that says where a whole result can be read.
pub(crate) fn preserved_at(path: &str) -> String {
    format!("{PRESERVED}{path}]")
}

/// The line at the end of a text that says where the whole of it can be read.
pub(crate) fn preserved_line(text: &str) -> Option<&str> {
    text.lines().next_back().filter(|line| line.starts_with(PRESERVED) && line.ends_with(']'))
}
