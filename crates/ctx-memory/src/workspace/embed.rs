//! Vectors of chunks, where a model makes them.

use std::ops::ControlFlow;

use ctx_core::{Embedder, Error, ErrorKind, Result};

use super::Progress;
use super::chunk::chunks;
use super::index::{State, Workspace};
use super::read::{Content, read};
use crate::SegmentId;
use crate::near;
use crate::vectors::{Embedding, VectorFile};

/// So many texts are embedded at once.
const BATCH: usize = 32;

impl Workspace {
    /// Gives the chunks that have none their vectors, and says to how many. What a batch made is
    /// kept, whatever becomes of the next one. Call it after [`update`](Self::update).
    ///
    /// # Errors
    ///
    /// Where the model fails, or the vectors cannot be written.
    pub async fn embed(
        &self,
        embedder: &dyn Embedder,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<usize> {
        let mut file = VectorFile::open(self.vector_file(), embedding_of(embedder))?;
        let chunks = self.chunks_without(&mut file)?;
        let (mut made, all) = (0, chunks.len() as u64);
        for (nth, batch) in chunks.chunks(BATCH).enumerate() {
            if progress(Progress { done: (nth * BATCH) as u64, all }).is_break() {
                break;
            }
            let (ids, texts): (Vec<SegmentId>, Vec<String>) = self.texts(batch).into_iter().unzip();
            if texts.is_empty() {
                continue;
            }
            let vectors = embedder.embed(&texts).await?;
            if vectors.len() != texts.len() {
                return Err(Error::new(ErrorKind::Upstream, "the model left vectors out")
                    .with("model", embedder.name())
                    .with("vectors", format!("{} of {}", vectors.len(), texts.len()))
                    .hint("check that it is a model for embeddings; words alone decide now"));
            }
            for (id, vector) in ids.into_iter().zip(&vectors) {
                made += usize::from(file.add(id, vector)?);
            }
            file.commit()?;
        }
        self.forget_vectors();
        Ok(made)
    }

    fn vector_file(&self) -> std::path::PathBuf {
        self.store.join("vectors.bin")
    }

    /// The chunks that have no vector, by file. Vectors of chunks that are gone go.
    fn chunks_without(&self, file: &mut VectorFile) -> Result<Vec<(String, u32, SegmentId)>> {
        let guard = self.state()?;
        let Some(state) = guard.as_ref() else { return Ok(Vec::new()) };
        let rows = &state.rows;
        let all = (0..rows.len() as u32).filter_map(|row| {
            let (of, nth) = rows.chunk(row)?;
            Some((of.path.clone(), nth, rows.id(row)?))
        });
        let all: Vec<_> = all.collect();
        let live: std::collections::HashSet<SegmentId> = all.iter().map(|(.., id)| *id).collect();
        if file.iter().any(|(id, _)| !live.contains(&id)) {
            file.retain(|id| live.contains(&id))?;
        }
        Ok(all.into_iter().filter(|(.., id)| !file.contains(*id)).collect())
    }

    /// The texts of chunks, each after its path; those whose files have changed are left out.
    fn texts(&self, of: &[(String, u32, SegmentId)]) -> Vec<(SegmentId, String)> {
        let mut texts = Vec::with_capacity(of.len());
        for same in of.chunk_by(|a, b| a.0 == b.0) {
            let Some((path, ..)) = same.first() else { continue };
            let content = read(&self.folder, path, self.settings.largest_file);
            let Content::Text(text) = content else { continue };
            let made = chunks(&text.text, self.settings.chunk, &self.settings.counter);
            for (_, nth, id) in same {
                let chunk = made.get(*nth as usize).filter(|_| text.hash.chunk(path, *nth) == *id);
                texts.extend(chunk.map(|chunk| (*id, format!("{path}\n{}", chunk.text))));
            }
        }
        texts
    }

    /// The vectors that `embedding` made, read the first time; `None` where there are none.
    pub(super) fn vectors<'s>(
        &self,
        state: &'s mut State,
        embedding: &Embedding,
    ) -> Option<&'s near::Rows> {
        if state.vectors.as_ref().is_none_or(|(of, _)| of != embedding) {
            let mut vectors = near::Rows::new(embedding.dimensions);
            // Vectors that cannot be read are done without.
            if let Ok(file) = VectorFile::open(self.vector_file(), embedding.clone()) {
                for row in 0..state.rows.len() as u32 {
                    let vector = state.rows.id(row).and_then(|id| file.get(id));
                    if let Some(vector) = vector {
                        vectors.add(row, vector);
                    }
                }
            }
            state.vectors = Some((embedding.clone(), vectors));
        }
        state.vectors.as_ref().map(|(_, vectors)| vectors)
    }
}

/// What makes vectors, by its name.
pub(super) fn embedding_of(embedder: &dyn Embedder) -> Embedding {
    Embedding::new(embedder.name(), embedder.dimensions())
}
