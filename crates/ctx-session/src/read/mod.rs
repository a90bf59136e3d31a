//! Code shared by the readers of the formats. Each converts a source to entries with a [`Builder`].

mod builder;
mod document;
mod header;
pub(crate) mod jsonl;
mod links;
mod problem;
mod recovery;
mod salvage;

use ctx_core::Timestamp;
use ctx_dialect::json::{Object, integer, string};

pub(crate) use builder::{Builder, Draft, Parent, shorten_id};
pub(crate) use document::{Document, into_json, read_messages};
pub use header::TranscriptHeader;
pub(crate) use problem::Problems;
pub use problem::{Problem, ProblemKind, Severity};

/// The model name of assistant messages that the client itself generated.
pub(crate) const SYNTHETIC: &str = "<synthetic>";

/// Returns an entry's time: ISO text, or milliseconds since the epoch.
pub(crate) fn timestamp(object: &Object<'_>) -> Option<Timestamp> {
    let raw = object.get("timestamp")?;
    match string(raw) {
        Some(text) => text.parse::<jiff::Timestamp>().ok().map(|t| Timestamp(t.as_millisecond())),
        None => integer(raw).map(Timestamp),
    }
}
