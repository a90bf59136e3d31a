//! A cache of vectors, because a model may need minutes to embed the same texts again.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use ctx_core::{Embedder, Error, ErrorKind, Result};
use sha2::{Digest, Sha256};

/// The beginning of a vector cache file.
const MAGIC: &[u8; 8] = b"ctxvec1\n";

type Key = [u8; 16];

/// Vectors by text and embedder, kept in a file or in memory. A damaged file counts as empty,
/// because its vectors can be computed again.
#[derive(Debug, Default)]
pub struct VectorCache {
    file: Option<PathBuf>,
    known: HashMap<Key, Vec<f32>>,
    is_changed: bool,
    fault: Option<Error>,
}

impl VectorCache {
    /// Opens the vectors in a file, which may not exist yet.
    #[must_use]
    pub fn open(file: &Path) -> Self {
        let known = ctx_disk::read(file).ok().and_then(|bytes| read(&bytes)).unwrap_or_default();
        Self { file: Some(file.to_owned()), known, is_changed: false, fault: None }
    }

    /// Returns one vector per text, in order.
    ///
    /// # Errors
    ///
    /// Errors of the embedder. [`ErrorKind::Upstream`] if the numbers of vectors and texts differ.
    pub async fn embed(
        &mut self,
        embedder: &dyn Embedder,
        texts: &[String],
    ) -> Result<Vec<Vec<f32>>> {
        let keys: Vec<Key> = texts.iter().map(|text| key(embedder.name(), text)).collect();
        let missing: Vec<usize> =
            (0..texts.len()).filter(|&n| !self.known.contains_key(&keys[n])).collect();
        if !missing.is_empty() {
            let asked: Vec<String> = missing.iter().map(|&n| texts[n].clone()).collect();
            let made = embedder.embed(&asked).await?;
            if made.len() != asked.len() {
                return Err(Error::new(
                    ErrorKind::Upstream,
                    "the embedder returned a wrong number of vectors",
                )
                .with("embedder", embedder.name())
                .with("texts", asked.len())
                .with("vectors", made.len()));
            }
            self.known.extend(missing.iter().map(|&n| keys[n]).zip(made));
            self.is_changed = true;
        }
        Ok(keys.iter().map(|key| self.known.get(key).cloned().unwrap_or_default()).collect())
    }

    /// Writes the file, if there is one and anything is new. After a failure it is not written
    /// again, and [`take_fault`](Self::take_fault) returns the error; the vectors stay in memory.
    pub fn save(&mut self) {
        let Some(file) = self.file.as_ref().filter(|_| self.is_changed) else { return };
        self.is_changed = false;
        if let Err(error) = write(file, &self.known) {
            self.fault = Some(
                Error::new(ErrorKind::Io, "cannot write the vector cache")
                    .with("path", file.display())
                    .hint("give another --cache, or none")
                    .source(error),
            );
            self.file = None;
        }
    }

    /// Returns the error of writing the file, once.
    pub fn take_fault(&mut self) -> Option<Error> {
        self.fault.take()
    }
}

fn key(embedder: &str, text: &str) -> Key {
    let mut hash = Sha256::new();
    hash.update((embedder.len() as u64).to_le_bytes());
    hash.update(embedder);
    hash.update(text);
    let mut key = [0; 16];
    key.copy_from_slice(&hash.finalize()[..16]);
    key
}

/// The format: magic, then for each vector its key, its length (u32, little endian) and its numbers
/// (f32).
fn write(file: &Path, known: &HashMap<Key, Vec<f32>>) -> ctx_core::Result<()> {
    ctx_disk::create_private_dir(ctx_disk::parent(file))?;
    ctx_disk::replace(file, |out| {
        out.write_all(MAGIC)?;
        for (key, vector) in known {
            out.write_all(key)?;
            out.write_all(&(vector.len() as u32).to_le_bytes())?;
            for number in vector {
                out.write_all(&number.to_le_bytes())?;
            }
        }
        Ok(())
    })
}

fn read(bytes: &[u8]) -> Option<HashMap<Key, Vec<f32>>> {
    let mut rest = bytes.strip_prefix(MAGIC)?;
    let mut known = HashMap::new();
    while !rest.is_empty() {
        let (key, after) = rest.split_first_chunk::<16>()?;
        let (length, after) = after.split_first_chunk::<4>()?;
        let size = usize::try_from(u32::from_le_bytes(*length)).ok()?.checked_mul(4)?;
        let (numbers, after) = after.split_at_checked(size)?;
        let (numbers, _) = numbers.as_chunks::<4>();
        known.insert(*key, numbers.iter().map(|number| f32::from_le_bytes(*number)).collect());
        rest = after;
    }
    Some(known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn written_vectors_are_read_and_a_damaged_file_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new").join("vectors");
        let known = HashMap::from([([1; 16], vec![0.5, -2.0]), ([2; 16], vec![])]);
        write(&file, &known).unwrap();
        let bytes = std::fs::read(&file).unwrap();
        assert_eq!(read(&bytes), Some(known));
        assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        assert_eq!(read(b"something else"), None);
        assert!(VectorCache::open(&folder.path().join("none")).known.is_empty());
    }
}
