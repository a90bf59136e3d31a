//! `segments.jsonl`: the verbatim text of messages, one segment per line.
//!
//! ```text
//! message --> SegmentMaker (text, redaction, id) --> Segments::insert --> commit --> the disk
//! ```
//!
//! The file is the source of truth: it is only appended to, or replaced atomically. Memory holds a
//! small row per segment; texts are read on demand.
//!
//! - **Several processes** may open one archive. A writer takes the lock beside the file, reads
//!   others' lines, writes, and releases the lock. A generation number in the lock file tells the
//!   others that the file was replaced.
//! - **Segments that `Segments::commit` acknowledged are on the disk.** A failed write is rolled
//!   back, and its segments wait for the next commit.
//! - **A torn last line** is moved to `segments.jsonl.torn-<n>` by the next writer. Unreadable
//!   lines in the middle are skipped and counted, and moved to `segments.jsonl.unreadable` when the
//!   file is rewritten.
//! - **Forgotten segments stay out**: `segments.jsonl.forgotten` keeps their ids, which are hashes
//!   and contain no text. The ids are written before anything is erased.
//! - **Opening reads the rows** of `segments.jsonl.rows`, which is derived, and only newer lines.
//! - **A segment of any length is stored in full**: a truncated archive would defeat its purpose. A
//!   line costs time and memory in proportion to its length.

mod file;
mod forgotten;
mod kept_rows;
mod lines;
mod maintenance;
mod row;
mod scan;
mod segment_maker;
mod segments;
mod sessions;
mod source;

pub(crate) use file::{LinesFile, ReadPosition};
pub(crate) use lines::LineReader;
pub(crate) use row::ArchiveRow;
pub use segment_maker::{SegmentMaker, text_of};
pub use segments::ArchiveLimits;
pub(crate) use segments::{Changes, Segments};
pub use sessions::{ArchiveLock, ArchivedSession, ArchivedSessions};
pub use source::AddOutcome;
pub(crate) use source::Source;
