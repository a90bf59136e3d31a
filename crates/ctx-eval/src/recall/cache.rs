//! A cache of vectors, because a model may need minutes to embed the same texts again.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use ctx_core::{Embedder, Error, ErrorKind, Result};
use sha2::{Digest, Sha256};

/// Vectors by a hash of the embedder and the text. The file has them as JSON.
type Vectors = HashMap<String, Vec<f32>>;

/// An embedder that keeps vectors by text and embedder, in a file or in memory. A damaged file
/// counts as empty, because its vectors can be computed again.
pub struct VectorCache {
    embedder: Arc<dyn Embedder>,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    file: Option<PathBuf>,
    known: Vectors,
    is_changed: bool,
    fault: Option<Error>,
}

impl VectorCache {
    /// Returns an embedder that calls another one for the vectors that are not in `file`, which may
    /// not exist yet.
    #[must_use]
    pub fn new(embedder: Arc<dyn Embedder>, file: Option<&Path>) -> Self {
        let bytes = file.and_then(|file| ctx_disk::read(file).ok());
        let known = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
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
        let keys: Vec<String> = texts.iter().map(|text| key(self.name(), text)).collect();
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
        kept.known.extend(missing.iter().map(|&n| keys[n].clone()).zip(made));
        Ok(keys.iter().map(|key| kept.known.get(key).cloned().unwrap_or_default()).collect())
    }
}

fn key(embedder: &str, text: &str) -> String {
    let mut hash = Sha256::new();
    hash.update((embedder.len() as u64).to_le_bytes());
    hash.update(embedder);
    hash.update(text);
    hash.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn write(file: &Path, known: &Vectors) -> ctx_core::Result<()> {
    ctx_disk::create_private_dir(ctx_disk::parent(file))?;
    ctx_disk::replace(file, |out| Ok(serde_json::to_writer(out, known)?))
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
        let known = || VectorCache::new(Arc::new(Silent), Some(&file)).kept().known.clone();
        assert!(known().is_empty());
        let vectors = Vectors::from([("1".into(), vec![0.1, -2.0]), ("2".into(), vec![])]);
        write(&file, &vectors).unwrap();
        assert_eq!(known(), vectors);
        let bytes = std::fs::read(&file).unwrap();
        std::fs::write(&file, &bytes[..bytes.len() - 1]).unwrap();
        assert!(known().is_empty());
    }
}
