//! A cache of vectors, because a model may need minutes to embed the same texts again.

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ctx_core::{Embedder, Error, ErrorKind, Result};
use sha2::{Digest, Sha256};

/// The beginning of a vector cache file.
const MAGIC: &[u8; 8] = b"ctxvec1\n";

type Key = [u8; 16];

/// An embedder that keeps vectors by text and embedder, in a file or in memory. A damaged file
/// counts as empty, because its vectors can be computed again.
pub struct VectorCache {
    embedder: Arc<dyn Embedder>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    file: Option<PathBuf>,
    known: HashMap<Key, Vec<f32>>,
    is_changed: bool,
    fault: Option<Error>,
}

impl VectorCache {
    /// Returns an embedder that calls another one for the vectors that are not in `file`, which may
    /// not exist yet.
    #[must_use]
    pub fn new(embedder: Arc<dyn Embedder>, file: Option<&Path>) -> Self {
        let bytes = file.and_then(|file| ctx_disk::read(file).ok());
        let known = bytes.and_then(|bytes| read(&bytes)).unwrap_or_default();
        let file = file.map(Path::to_owned);
        Self { embedder, kept: Mutex::new(Kept { file, known, ..Kept::default() }) }
    }

    /// Writes the file, if there is one and anything is new. After a failure it is not written
    /// again, and [`take_fault`](Self::take_fault) returns the error; the vectors stay in memory.
    pub fn save(&self) {
        let mut kept = self.kept();
        let Some(file) = kept.file.clone().filter(|_| kept.is_changed) else { return };
        kept.is_changed = false;
        if let Err(error) = write(&file, &kept.known) {
            kept.fault = Some(
                Error::new(ErrorKind::Io, "cannot write the vector cache")
                    .with("path", file.display())
                    .hint("give another --cache, or none")
                    .source(error),
            );
            kept.file = None;
        }
    }

    /// Returns the error of writing the file, once.
    pub fn take_fault(&self) -> Option<Error> {
        self.kept().fault.take()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl Embedder for VectorCache {
    fn name(&self) -> &str {
        self.embedder.name()
    }

    fn dimensions(&self) -> usize {
        self.embedder.dimensions()
    }

    async fn embed(&self, texts: &[String]) -> Result<Vec<Vec<f32>>> {
        let keys: Vec<Key> = texts.iter().map(|text| key(self.name(), text)).collect();
        let missing: Vec<usize> = {
            let kept = self.kept();
            (0..texts.len()).filter(|&n| !kept.known.contains_key(&keys[n])).collect()
        };
        let asked: Vec<String> = missing.iter().map(|&n| texts[n].clone()).collect();
        let made = if asked.is_empty() { Vec::new() } else { self.embedder.embed(&asked).await? };
        if made.len() != asked.len() {
            let error =
                Error::new(ErrorKind::Upstream, "the embedder returned a wrong number of vectors");
            let error = error.with("embedder", self.name()).with("texts", asked.len());
            return Err(error.with("vectors", made.len()));
        }
        let mut kept = self.kept();
        kept.is_changed |= !made.is_empty();
        kept.known.extend(missing.iter().map(|&n| keys[n]).zip(made));
        Ok(keys.iter().map(|key| kept.known.get(key).cloned().unwrap_or_default()).collect())
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

    /// Returns no vector, whatever it is asked.
    struct Silent;

    #[async_trait]
    impl Embedder for Silent {
        fn name(&self) -> &str {
            "silent"
        }

        fn dimensions(&self) -> usize {
            2
        }

        async fn embed(&self, _: &[String]) -> Result<Vec<Vec<f32>>> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn an_embedder_that_leaves_texts_out_is_an_error() {
        let cache = VectorCache::new(Arc::new(Silent), None);
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let error = runtime.block_on(cache.embed(&["a".to_owned()])).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Upstream);
    }

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
    }
}
