//! Folders and files that nobody but their owner may look into.

use std::collections::HashMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::Result;
use std::path::Path;
use std::time::SystemTime;

/// What is let go of is so much at once that the next is far: to look for the oldest costs as much as
/// there are files.
const LEFT: f64 = 0.9;

/// The files of a folder: how large they are, and which was used last.
#[derive(Debug, Default)]
pub(crate) struct Files {
    all: HashMap<String, Used>,
    bytes: u64,
    clock: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Used {
    bytes: u64,
    at: u64,
}

impl Files {
    /// Those that are there, in the order of their changes.
    pub(crate) fn of(folder: &Path, id_of: impl Fn(&Path) -> Option<String>) -> Self {
        let listed = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<(SystemTime, u64, String)> = listed
            .filter_map(|file| {
                let meta = file.metadata().ok()?;
                let changed = meta.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                Some((changed, meta.len(), id_of(&file.path())?))
            })
            .collect();
        found.sort();
        let mut files = Self::default();
        for (_, bytes, id) in found {
            files.grew(&id, bytes);
        }
        files
    }

    /// Notes that a file was used, and is larger by so many bytes.
    pub(crate) fn grew(&mut self, id: &str, bytes: u64) {
        self.clock += 1;
        self.bytes += bytes;
        let clock = self.clock;
        let used = self.all.entry(id.to_owned()).or_default();
        *used = Used { bytes: used.bytes + bytes, at: clock };
    }

    /// Notes that a file is gone.
    pub(crate) fn gone(&mut self, id: &str) {
        self.bytes -= self.all.remove(id).map_or(0, |used| used.bytes);
    }

    /// Takes out those that have to go so that the rest is inside the limits: the ones used longest
    /// ago, and never the one in use.
    pub(crate) fn over(&mut self, bytes: u64, count: usize, in_use: &str) -> Vec<String> {
        if self.bytes <= bytes && self.all.len() <= count {
            return Vec::new();
        }
        let (bytes, count) = ((bytes as f64 * LEFT) as u64, (count as f64 * LEFT) as usize);
        let mut oldest: Vec<(u64, String)> =
            self.all.iter().map(|(id, used)| (used.at, id.clone())).collect();
        oldest.sort_unstable();
        let mut gone = Vec::new();
        for (_, id) in oldest {
            if self.bytes <= bytes && self.all.len() <= count {
                break;
            }
            if id != in_use {
                self.gone(&id);
                gone.push(id);
            }
        }
        gone
    }

    /// How many bytes they have together.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// Makes a folder, and those above it.
pub(crate) fn folder(path: &Path) -> Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Opens a file to append to.
pub(crate) fn append(path: &Path) -> Result<File> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
