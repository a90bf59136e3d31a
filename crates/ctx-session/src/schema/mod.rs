//! The JSON that ctx writes: entries and headers of pi's session format with ctx's additions, and
//! the header of overlays.

mod compaction;
mod custom;
mod edits;
mod entry;
mod header;

pub(crate) use compaction::{CTX_FIELD, CompactionExtra, compaction_entry};
pub(crate) use custom::{
    FORGOTTEN_TYPE, Forgotten, PROJECTIONS_TYPE, SYSTEM_PROMPT_TYPE, TOOLS_TYPE, UNDO_TYPE,
    forgotten_of, projections_entry,
};
pub(crate) use edits::{Edits, iso_or_epoch, json, write_error, write_json_line};
pub(crate) use header::{
    CTX_MARK, PI_VERSION, check_overlay_header, check_session_header, header_line, is_ctx_header,
    overlay_header_line,
};

pub use entry::NewEntry;
pub use header::NewSession;
