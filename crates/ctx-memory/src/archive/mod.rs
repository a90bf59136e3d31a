//! `segments.jsonl`: what was said, word for word, a line for each segment.
//!
//! ```text
//! message --> SegmentMaker (text, redaction, tags, id) --> Segments::add --> commit --> the disk
//! ```
//!
//! The file is the truth: it is only appended to, or replaced atomically. In memory there is a small
//! row for each segment; its text is read when somebody wants it.
//!
//! - **Several processes** may have one archive open. Whoever writes takes the lock beside the file,
//!   reads what others wrote since, writes, and lets go; a generation in the lock file tells the
//!   others that the file was replaced.
//! - **What [`Segments::commit`] acknowledged is on the disk.** A write that fails is taken back, and
//!   what was to be written waits for the next commit.
//! - **A torn last line** is moved to `segments.jsonl.torn-<n>` by whoever writes next; lines in the
//!   middle that cannot be read are skipped and counted, and moved to `segments.jsonl.unreadable`
//!   when the file is written anew.
//! - **What was forgotten stays out**: `segments.jsonl.forgotten` keeps the ids, written before anything
//!   is erased. They are hashes, and no word of it.
//! - **A segment is stored as it is, however long**: an archive that shortened what it keeps would
//!   lose what it is for, and a line costs time and memory in proportion to its length, no more.

mod file;
mod forgotten;
mod lines;
mod make;
mod row;
mod scan;
mod segments;
mod sessions;
mod take;
mod upkeep;

pub use make::{SegmentMaker, text_of};
pub use row::RowRef;
pub use segments::{Changes, Damage, Limits, Segments};
pub use sessions::{ArchiveLock, ArchivedSession, ArchivedSessions};
pub use take::Taken;
