//! The header of a transcript.

use ctx_core::Timestamp;

/// A transcript's header. If the format has no header line, each value is the first one in the
/// lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptHeader {
    /// The session's id.
    pub id: Option<String>,
    /// The format's version; for pi, 1 if the header has none.
    pub version: Option<u64>,
    /// When the session began.
    pub timestamp: Option<Timestamp>,
    /// The folder it ran in.
    pub cwd: Option<String>,
    /// The session it was forked from.
    pub parent_session: Option<String>,
    /// The header line as it is in the file.
    pub raw: Option<String>,
}
