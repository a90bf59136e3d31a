//! The files of a folder, without those that nobody wants to read.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use ignore::WalkBuilder;
use serde::{Deserialize, Serialize};

/// A file that was written later than this before it was indexed may be written again within the
/// same tick of its file system's clock.
const SETTLED: Duration = Duration::from_secs(2);

/// A walk with a deadline looks at the clock after so many entries.
const ENTRIES: usize = 256;

/// What was not indexed, and why. Files that `.gitignore`, `.ignore` and the like name are not
/// counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Files and folders whose name begins with a dot.
    pub hidden: usize,
    /// Files that hold no text.
    pub binary: usize,
    /// Files that are too large.
    pub large: usize,
    /// Symbolic links. What they lead to in the folder is found by itself, and what is outside stays
    /// outside.
    pub links: usize,
    /// What cannot be read, is neither file nor folder, or has a name that is no text.
    pub unreadable: usize,
}

/// A file that may be indexed.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    /// From the folder on, with `/`.
    pub(super) path: String,
    pub(super) bytes: u64,
    /// None where it is too young to tell by.
    pub(super) stamp: Option<Stamp>,
}

/// When a file was last changed: its content and, where the system keeps it, anything about it.
/// Nanoseconds since 1970; a file that has the same stamp and length is not read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp(i64, i64);

impl Stamp {
    fn of(metadata: &Metadata, now: SystemTime) -> Option<Self> {
        let modified = metadata.modified().ok()?;
        let changed = changed(metadata);
        let stamp = Self(nanos(modified)?, changed.unwrap_or_default());
        let settled = nanos(now.checked_sub(SETTLED)?)?;
        // Anybody may set the time of the content, into the future as well; the other is the system's.
        (changed.unwrap_or(stamp.0) < settled).then_some(stamp)
    }
}

fn nanos(time: SystemTime) -> Option<i64> {
    i64::try_from(time.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_nanos()).ok()
}

#[cfg(unix)]
fn changed(metadata: &Metadata) -> Option<i64> {
    use std::os::unix::fs::MetadataExt;
    metadata.ctime().checked_mul(1_000_000_000)?.checked_add(metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn changed(_: &Metadata) -> Option<i64> {
    None
}

/// What a walk found.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// In the order of their names.
    pub(super) found: Vec<Candidate>,
    pub(super) skipped: Skipped,
    /// Whether there was no time for all of it.
    pub(super) is_cut_short: bool,
}

impl Walked {
    /// The bytes of all that was found.
    pub(super) fn bytes(&self) -> u64 {
        self.found.iter().fold(0, |sum, candidate| sum.saturating_add(candidate.bytes))
    }
}

/// The candidates in `root`, all of them where it takes no longer than `until`; `except` is left out
/// with all it holds.
pub(super) fn walk(root: &Path, except: &Path, largest: u64, until: Option<Instant>) -> Walked {
    let now = SystemTime::now();
    let hidden = Arc::new(AtomicUsize::new(0));
    let (counted, except) = (hidden.clone(), except.to_owned());
    let walker = WalkBuilder::new(root)
        .hidden(false)
        .require_git(false)
        .follow_links(false)
        .sort_by_file_name(Ord::cmp)
        .filter_entry(move |entry| {
            let is_hidden =
                entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".");
            if is_hidden {
                counted.fetch_add(1, Ordering::Relaxed);
            }
            !is_hidden && entry.path() != except
        })
        .build();
    let mut walked = Walked::default();
    let Walked { found, skipped, .. } = &mut walked;
    for (entry, nth) in walker.zip(1usize..) {
        if nth % ENTRIES == 0 && until.is_some_and(|until| Instant::now() >= until) {
            walked.is_cut_short = true;
            break;
        }
        let Ok(entry) = entry else {
            skipped.unreadable += 1;
            continue;
        };
        let Some(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            continue;
        }
        if kind.is_symlink() {
            skipped.links += 1;
            continue;
        }
        let metadata = entry.metadata().ok().filter(|_| kind.is_file());
        let path = entry.path().strip_prefix(root).ok().and_then(relative);
        let (Some(metadata), Some(path)) = (metadata, path) else {
            skipped.unreadable += 1;
            continue;
        };
        if metadata.len() > largest {
            skipped.large += 1;
            continue;
        }
        found.push(Candidate { path, bytes: metadata.len(), stamp: Stamp::of(&metadata, now) });
    }
    walked.skipped.hidden = hidden.load(Ordering::Relaxed);
    walked
}

/// A path inside the folder, with `/`; `None` for one that is no text or leads anywhere else.
fn relative(path: &Path) -> Option<String> {
    let mut name = String::new();
    for part in path.components() {
        let std::path::Component::Normal(part) = part else { return None };
        if !name.is_empty() {
            name.push('/');
        }
        name.push_str(part.to_str()?);
    }
    (!name.is_empty()).then_some(name)
}

/// Where a path of [`relative`] is. `None` for one that was not made by it.
pub(super) fn place(root: &Path, path: &str) -> Option<PathBuf> {
    let is_inside = !path.is_empty()
        && Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    is_inside.then(|| root.join(path))
}
