//! What a transcript says about itself.

use ctx_core::Timestamp;

/// A transcript's header. Formats without a header line have what their lines agree on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The session's id.
    pub id: Option<String>,
    /// The format's version; for pi, 1 when the header does not say.
    pub version: Option<u64>,
    /// When the session began.
    pub timestamp: Option<Timestamp>,
    /// The folder it ran in.
    pub cwd: Option<String>,
    /// The session it was forked from.
    pub parent_session: Option<String>,
    /// The header line as it stands in the file.
    pub raw: Option<String>,
}
