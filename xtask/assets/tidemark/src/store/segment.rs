//! One file of the log.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crc_slice::crc32c;

/// Length, checksum.
const HEAD: usize = 8;

/// One file of the log: records one after the other, each with its length and checksum.
pub struct Segment {
    path: PathBuf,
    file: File,
    len: u64,
}

impl Segment {
    /// Opens or makes the file.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let len = file.seek(SeekFrom::End(0))?;
        Ok(Self { path: path.to_owned(), file, len })
    }

    /// Writes one record.
    pub fn append(&mut self, body: &[u8]) -> io::Result<u64> {
        let at = self.len;
        let mut head = [0; HEAD];
        head[..4].copy_from_slice(&(body.len() as u32).to_le_bytes());
        head[4..].copy_from_slice(&crc32c(body).to_le_bytes());
        self.file.write_all(&head)?;
        self.file.write_all(body)?;
        self.len += (HEAD + body.len()) as u64;
        Ok(at)
    }

    /// Forces it to the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// How long it is, in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Reads all whole records and cuts off what follows the last one.
    pub fn recover(&mut self, mut each: impl FnMut(Vec<u8>)) -> io::Result<u64> {
        self.file.seek(SeekFrom::Start(0))?;
        let mut reader = BufReader::new(&self.file);
        let mut good = 0;
        let mut head = [0; HEAD];
        loop {
            if reader.read_exact(&mut head).is_err() {
                break;
            }
            let len = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
            let sum = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
            if good + (HEAD + len) as u64 > self.len {
                break;
            }
            let mut body = vec![0; len];
            if reader.read_exact(&mut body).is_err() || crc32c(&body) != sum {
                break;
            }
            good += (HEAD + len) as u64;
            each(body);
        }
        let torn = self.len - good;
        if torn > 0 {
            tracing::warn!(path = %self.path.display(), torn, "cut a torn record off");
            self.file.set_len(good)?;
            self.len = good;
        }
        Ok(torn)
    }
}
