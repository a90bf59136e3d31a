//! The log on disk.

mod record;
mod segment;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub use record::{Record, RecordError};
use segment::Segment;

use crate::config::Fsync;

/// A segment that is longer than this is closed and a new one begun.
const SEGMENT_BYTES: u64 = 64 << 20;

/// How often `Fsync::Interval` syncs.
const INTERVAL: Duration = Duration::from_millis(10);

/// Why the log could not be read or written.
#[derive(Debug)]
pub enum StoreError {
    /// The system refused.
    Io(io::Error),
    /// A record is whole and yet makes no sense.
    Record(RecordError),
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<RecordError> for StoreError {
    fn from(error: RecordError) -> Self {
        Self::Record(error)
    }
}

/// All segments of one folder.
pub struct Store {
    folder: PathBuf,
    current: Segment,
    number: u32,
    fsync: Fsync,
    synced: Instant,
    scratch: Vec<u8>,
}

impl Store {
    /// Opens the folder, and makes it if it is not there.
    pub fn open(folder: &Path, fsync: Fsync) -> Result<Self, StoreError> {
        fs::create_dir_all(folder)?;
        let number = numbers(folder)?.last().copied().unwrap_or(1);
        let current = Segment::open(&path_of(folder, number))?;
        Ok(Self {
            folder: folder.to_owned(),
            current,
            number,
            fsync,
            synced: Instant::now(),
            scratch: Vec::with_capacity(4096),
        })
    }

    /// Reads all records, oldest first.
    pub fn recover(&mut self) -> Result<Vec<Record>, StoreError> {
        let mut records = Vec::new();
        let mut broken = None;
        for number in numbers(&self.folder)? {
            let mut segment = Segment::open(&path_of(&self.folder, number))?;
            segment.recover(|body| match Record::decode(&body) {
                Ok(record) => records.push(record),
                Err(error) => broken = broken.take().or(Some(error)),
            })?;
        }
        match broken {
            Some(error) => Err(error.into()),
            None => Ok(records),
        }
    }

    /// Writes a record, and syncs if it is time.
    pub fn append(&mut self, record: &Record) -> Result<(), StoreError> {
        self.scratch.clear();
        record.encode(&mut self.scratch);
        self.current.append(&self.scratch)?;
        let due = match self.fsync {
            Fsync::Always => true,
            Fsync::Interval => self.synced.elapsed() >= INTERVAL,
            Fsync::Never => false,
        };
        if due {
            self.current.sync()?;
            self.synced = Instant::now();
        }
        if self.current.len() > SEGMENT_BYTES {
            self.roll()?;
        }
        Ok(())
    }

    /// Forces all to the disk.
    pub fn close(&mut self) -> Result<(), StoreError> {
        Ok(self.current.sync()?)
    }

    fn roll(&mut self) -> Result<(), StoreError> {
        self.current.sync()?;
        self.number += 1;
        self.current = Segment::open(&path_of(&self.folder, self.number))?;
        Ok(())
    }
}

fn path_of(folder: &Path, number: u32) -> PathBuf {
    folder.join(format!("{number:08}.tide"))
}

fn numbers(folder: &Path) -> io::Result<Vec<u32>> {
    let mut numbers = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if let Some(number) = name.to_str().and_then(|n| n.strip_suffix(".tide")) {
            numbers.extend(number.parse::<u32>());
        }
    }
    numbers.sort_unstable();
    Ok(numbers)
}
