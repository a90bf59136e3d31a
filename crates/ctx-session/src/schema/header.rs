//! The first lines of ctx sessions and of overlays.

use std::path::Path;

use ctx_core::{Error, ErrorKind, Result, Timestamp};
use serde::{Deserialize, Serialize};

use super::entry::{iso, one_line};
use crate::disk::newer;
use crate::key::FileId;

/// The version of pi's session format that is written.
pub(crate) const PI_VERSION: u64 = 3;

/// The header mark of a file that ctx wrote and may append to.
pub(crate) const CTX_MARK: u64 = 1;

/// The command that converts another file to a ctx session.
const CONVERT: &str = "`ctx convert FILE --to ctx --output NEW`";

/// The header of a new session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: FileId,
    /// The time at which it begins.
    pub timestamp: Timestamp,
    /// The folder the agent works in.
    pub cwd: String,
    /// The transcript it was forked from.
    pub parent_session: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionHeader {
    #[serde(rename = "type", default)]
    kind: String,
    #[serde(default)]
    version: u64,
    #[serde(default)]
    pub(crate) id: String,
    #[serde(default)]
    timestamp: String,
    #[serde(default)]
    cwd: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_session: Option<String>,
    #[serde(default)]
    ctx: u64,
}

/// The version of overlays.
const OVERLAY_VERSION: u64 = 1;

#[derive(Serialize, Deserialize)]
struct OverlayHeader {
    #[serde(rename = "type")]
    kind: String,
    version: u64,
    source: String,
}

/// Returns the header of a ctx session as a line.
pub(crate) fn header_line(session: &NewSession) -> Result<Vec<u8>> {
    let header = SessionHeader {
        kind: "session".into(),
        version: PI_VERSION,
        id: session.id.to_string(),
        timestamp: iso(session.timestamp)?,
        cwd: session.cwd.clone(),
        parent_session: session.parent_session.clone(),
        ctx: CTX_MARK,
    };
    one_line(&header)
}

/// Whether a header belongs to a ctx session, to which ctx may append.
pub(crate) fn is_ctx_header(line: &str) -> bool {
    check_session_header(line.as_bytes()).is_ok()
}

pub(crate) fn check_session_header(line: &[u8]) -> Result<SessionHeader> {
    let foreign = "ctx stores additions to another program's file in an overlay";
    let header = match serde_json::from_slice::<SessionHeader>(line) {
        Ok(header) if header.kind == "session" => header,
        _ => {
            return Err(Error::new(ErrorKind::UnknownFormat, "not a ctx session")
                .hint(format!("its first line is not a session header; {foreign}")));
        }
    };
    if header.ctx > CTX_MARK {
        return Err(newer("ctx session", header.ctx, CTX_MARK));
    }
    if header.ctx != CTX_MARK {
        return Err(Error::new(ErrorKind::InvalidInput, "the session was not written by ctx")
            .hint(format!("{foreign}; to continue in a ctx session, convert it: {CONVERT}")));
    }
    if header.version > PI_VERSION {
        return Err(newer("session", header.version, PI_VERSION));
    }
    if header.version != PI_VERSION {
        return Err(Error::new(ErrorKind::UnknownFormat, "unsupported session version")
            .with("version", header.version)
            .with("supported", PI_VERSION)
            .hint(format!("ctx does not upgrade it in place; convert it: {CONVERT}")));
    }
    Ok(header)
}

/// Returns the first line of the overlay of the transcript at `source`.
pub(crate) fn overlay_header_line(source: &Path) -> Result<Vec<u8>> {
    let header = OverlayHeader {
        kind: "overlay".into(),
        version: OVERLAY_VERSION,
        source: source.to_string_lossy().into_owned(),
    };
    one_line(&header)
}

/// Checks the first line of an overlay.
pub(crate) fn check_overlay_header(line: &[u8]) -> Result<()> {
    match serde_json::from_slice::<OverlayHeader>(line) {
        Ok(header) if header.kind == "overlay" && header.version == OVERLAY_VERSION => Ok(()),
        Ok(header) if header.kind == "overlay" && header.version > OVERLAY_VERSION => {
            Err(newer("overlay", header.version, OVERLAY_VERSION).hint(
                "update ctx, or move the file away to begin a new overlay; the transcript is not \
                 affected",
            ))
        }
        _ => Err(Error::new(ErrorKind::Corrupt, "the overlay's first line is damaged")
            .hint("move the file away to begin a new overlay; the transcript is not affected")),
    }
}
