//! Finds the files of a folder, without ignored ones.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use ignore::WalkBuilder;
use serde::{Deserialize, Serialize};

/// A file that was written less than this before it was indexed may be written again within the
/// same tick of the file system's clock.
const SETTLED: Duration = Duration::from_secs(2);

/// A walk with a deadline checks the clock after this many entries.
const ENTRIES: usize = 256;

/// What was not indexed, and why. Files ignored by `.gitignore`, `.ignore` and the like are not
/// counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// Files and folders whose name begins with a dot.
    pub hidden: usize,
    /// Files that hold no text.
    pub binary: usize,
    /// Files that are too large.
    pub large: usize,
    /// Symbolic links. A target inside the folder is found by itself; one outside is not indexed.
    pub links: usize,
    /// Entries that cannot be read, are neither file nor folder, or have a name that is not valid
    /// text.
    pub unreadable: usize,
}

/// A file that may be indexed.
#[derive(Clone, Debug)]
pub(super) struct WalkedFile {
    /// Relative to the folder, with `/`.
    pub(super) path: String,
    pub(super) bytes: u64,
    /// `None` if the file is too new to rely on it.
    pub(super) stamp: Option<Stamp>,
}

/// When a file was last changed: its content and, if the system records it, its metadata.
/// Nanoseconds since 1970. A file with the same stamp and length is not read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp(i64, i64);

impl Stamp {
    fn of(metadata: &Metadata, now: SystemTime) -> Option<Self> {
        let modified = metadata.modified().ok()?;
        let changed = changed(metadata);
        let stamp = Self(nanos(modified)?, changed.unwrap_or_default());
        let settled = nanos(now.checked_sub(SETTLED)?)?;
        // The modification time can be set to any value, even in the future; the change time is set
        // by the system.
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

/// The result of a walk.
#[derive(Debug, Default)]
pub(super) struct Walked {
    /// Sorted by name.
    pub(super) found: Vec<WalkedFile>,
    pub(super) skipped: Skipped,
    /// Whether the deadline passed before the end.
    pub(super) is_cut_short: bool,
}

impl Walked {
    /// The total size of the files found.
    pub(super) fn bytes(&self) -> u64 {
        self.found.iter().fold(0, |sum, candidate| sum.saturating_add(candidate.bytes))
    }
}

/// Returns the candidates in `root`, as far as found until the deadline `until`. Skips `except` and
/// everything below it.
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
        found.push(WalkedFile { path, bytes: metadata.len(), stamp: Stamp::of(&metadata, now) });
    }
    walked.skipped.hidden = hidden.load(Ordering::Relaxed);
    walked
}

/// Returns a path relative to the folder, with `/`; `None` if it is not valid text or leads
/// outside.
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

/// Converts a path of [`relative`] back. Returns `None` for any other path.
pub(super) fn place(root: &Path, path: &str) -> Option<PathBuf> {
    let is_inside = !path.is_empty()
        && Path::new(path).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    is_inside.then(|| root.join(path))
}
