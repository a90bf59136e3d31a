//! Texts the model reads in place of removed output.

pub use ctx_core::CONTEXT_LIMIT_TRUNCATION_NOTICE;

/// Replaces a whole past result that was too large to show.
pub const PREEMPTIVE_TOOL_RESULT_COMPACTION_PLACEHOLDER: &str =
    "[compacted: tool output removed to free context]";

/// Replaces a result that was elided because all results together exceeded their cap.
pub const AGGREGATE_ELISION_NOTICE: &str = "[tool result elided: aggregate tool-result budget \
     exceeded; rerun the command if the output is needed]";

/// Separates the beginning and the end of a truncated result.
pub const MIDDLE_CONTENT_OMITTED_NOTICE: &str =
    "⚠️ [... middle content omitted — showing head and tail ...]";

/// Starts the line with the path of the whole result.
const PRESERVED: &str = "[full output preserved at ";

/// Returns the line with the path of the whole result.
pub(crate) fn preserved_at(path: &str) -> String {
    format!("{PRESERVED}{path}]")
}

/// Finds the line with the path of the whole result at the end of a text.
pub(crate) fn preserved_line(text: &str) -> Option<&str> {
    text.lines().next_back().filter(|line| line.starts_with(PRESERVED) && line.ends_with(']'))
}
