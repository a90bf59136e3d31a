//! The bytes of a transcript: a file read on demand, or memory.

use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ctx_core::{Error, ErrorKind, Result};
use ctx_dialect::json::relaxed;
use foldhash::quality::FixedState;

mod lines;

use crate::disk;

pub(crate) use lines::{SourceLine, SourceLines};

/// The name of a transcript without a path.
const MEMORY: &str = "(memory)";

/// The first bytes of a stream, which must look like a transcript before the rest is read.
const CHECKED_BEGINNING: u64 = 1 << 20;

/// The longest stream that is read into memory, in bytes.
const LONGEST_STREAM: u64 = 2 << 30;

/// Checks that a stream with this beginning and name can be a transcript.
type Check = fn(&[u8], &str) -> Result<()>;

/// A byte range of a transcript.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Span {
    /// The number of bytes before it.
    pub(crate) offset: u64,
    /// Its length in bytes.
    pub(crate) len: u32,
}

impl Span {
    /// Returns the offset of the first byte after it.
    pub(crate) fn end(self) -> u64 {
        self.offset + u64::from(self.len)
    }
}

/// The position of an object in the source.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SourcePosition {
    pub(crate) span: Span,
    pub(crate) fingerprint: u64,
    pub(crate) line: u64,
    /// Whether it is valid JSON only after a repair by the relaxed parser.
    pub(crate) mended: bool,
}

impl SourcePosition {
    /// Returns the position of an object with these bytes; `None` for an object of over 4 GB.
    pub(crate) fn of(bytes: &[u8], offset: u64, line: u64) -> Option<Self> {
        let span = Span { offset, len: u32::try_from(bytes.len()).ok()? };
        Some(Self { span, fingerprint: fingerprint(bytes), line, mended: false })
    }
}

/// The bytes of a transcript.
pub(crate) struct Source {
    bytes: Bytes,
    path: Option<PathBuf>,
}

enum Bytes {
    File(File),
    Memory(Box<[u8]>),
}

impl Default for Source {
    /// An empty transcript.
    fn default() -> Self {
        Self::memory(Vec::new())
    }
}

impl Source {
    /// Opens a file. If it is not a regular file but, for example, a pipe, it is read into memory.
    pub(crate) fn open(path: &Path, check: Check) -> Result<Self> {
        let fail = |e| cannot_read(path, e);
        let metadata = std::fs::metadata(path).map_err(fail)?;
        if metadata.is_dir() {
            return Err(Error::new(ErrorKind::UnknownFormat, "a folder is not a transcript")
                .with("path", path.display())
                .hint("specify a session file inside it"));
        }
        let file = disk::open(path).map_err(fail)?;
        let bytes = match metadata.is_file() {
            true => Bytes::File(file),
            false => Bytes::Memory(stream(file, &path.display().to_string(), check)?.into()),
        };
        Ok(Self { bytes, path: Some(path.to_owned()) })
    }

    /// Reads a stream into memory, if it begins like a transcript: this rejects an endless stream
    /// before it fills the memory.
    pub(crate) fn stream(reader: impl Read, check: Check) -> Result<Self> {
        Ok(Self::memory(stream(reader, MEMORY, check)?))
    }

    pub(crate) fn memory(bytes: Vec<u8>) -> Self {
        Self { bytes: Bytes::Memory(bytes.into()), path: None }
    }

    /// Returns the same transcript with a path.
    pub(crate) fn at(self, path: PathBuf) -> Self {
        Self { path: Some(path), ..self }
    }

    /// Returns the same transcript with other bytes in memory.
    pub(crate) fn with_bytes(self, bytes: Vec<u8>) -> Self {
        Self { bytes: Bytes::Memory(bytes.into()), path: self.path }
    }

    /// Returns the path, or its substitute in errors.
    pub(crate) fn name(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => MEMORY.to_owned(),
        }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    pub(crate) fn len(&self) -> Result<u64> {
        match &self.bytes {
            Bytes::File(file) => Ok(file.metadata().map_err(|e| self.io(e))?.len()),
            Bytes::Memory(bytes) => Ok(bytes.len() as u64),
        }
    }

    /// Reads available bytes at `offset`, and returns their number: 0 at the end.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        match &self.bytes {
            Bytes::File(file) => read_file_at(file, offset, into),
            Bytes::Memory(bytes) => {
                let rest = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
                let rest = rest.unwrap_or_default();
                let n = rest.len().min(into.len());
                into[..n].copy_from_slice(&rest[..n]);
                Ok(n)
            }
        }
    }

    /// Returns the text of an object if the file still contains it. Invalid UTF-8 is replaced by
    /// U+FFFD.
    pub(crate) fn text(&self, place: SourcePosition) -> Result<String> {
        let bytes = self.read(place.span)?;
        if bytes.len() != place.span.len as usize || fingerprint(&bytes) != place.fingerprint {
            return Err(Error::new(
                ErrorKind::Corrupt,
                "the transcript changed while it was in use",
            )
            .with("path", self.name())
            .with("line", place.line)
            .hint("open it again; ctx follows appended lines, not rewritten ones"));
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(e) => String::from_utf8_lossy(e.as_bytes()).into_owned(),
        };
        Ok(if place.mended { relaxed(&text).unwrap_or(text) } else { text })
    }

    /// Reads the bytes of a span. Returns fewer if the file has become shorter.
    pub(crate) fn read(&self, span: Span) -> Result<Vec<u8>> {
        let mut bytes = vec![0; span.len as usize];
        let mut filled = 0;
        while filled < bytes.len() {
            match self.read_at(span.offset + filled as u64, &mut bytes[filled..]) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(self.io(e)),
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }

    /// Returns the bytes, if they are in memory.
    pub(crate) fn in_memory(&self) -> Option<&[u8]> {
        match &self.bytes {
            Bytes::File(_) => None,
            Bytes::Memory(bytes) => Some(bytes),
        }
    }

    /// Reads at most `most` bytes from the beginning.
    pub(crate) fn beginning(&self, most: usize) -> Result<Vec<u8>> {
        let len = usize::try_from(self.len()?).unwrap_or(usize::MAX).min(most);
        self.read(Span { offset: 0, len: u32::try_from(len).unwrap_or(u32::MAX) })
    }

    fn io(&self, e: io::Error) -> Error {
        cannot_read(Path::new(&self.name()), e)
    }
}

fn cannot_read(path: &Path, e: io::Error) -> Error {
    disk::io_error("cannot read the transcript", path, e)
        .hint_or("check that another program can read the file")
}

fn stream(mut reader: impl Read, name: &str, check: Check) -> Result<Vec<u8>> {
    let fail = |e| cannot_read(Path::new(name), e);
    let mut bytes = Vec::new();
    reader.by_ref().take(CHECKED_BEGINNING).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 == CHECKED_BEGINNING {
        check(&bytes, name)?;
        let rest = LONGEST_STREAM - CHECKED_BEGINNING;
        reader.take(rest).read_to_end(&mut bytes).map_err(fail)?;
    }
    if bytes.len() as u64 >= LONGEST_STREAM {
        return Err(Error::new(
            ErrorKind::InvalidInput,
            "the stream is too long to read into memory",
        )
        .with("path", name)
        .with("most", LONGEST_STREAM)
        .hint("write it to a file and open that: files are not read into memory"));
    }
    Ok(bytes)
}

#[cfg(unix)]
fn read_file_at(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    std::os::unix::fs::FileExt::read_at(file, into, offset)
}

#[cfg(windows)]
fn read_file_at(file: &File, offset: u64, into: &mut [u8]) -> io::Result<usize> {
    std::os::windows::fs::FileExt::seek_read(file, into, offset)
}

/// Returns a hash of bytes, to detect later changes. Valid only within one process.
fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = FixedState::with_seed(0).build_hasher();
    hasher.write(bytes);
    hasher.finish()
}
