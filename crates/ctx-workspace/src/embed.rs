//! Vectors of chunks, if there is a model.

use std::collections::HashSet;
use std::ops::ControlFlow;

use ctx_core::{Embedder, Result};

use crate::Progress;
use crate::chunk::chunks;
use crate::index::{SearchState, Workspace};
use crate::read::{Content, read};
use ctx_search::vectors::{Embedding, VectorFile};
use ctx_search::{SegmentId, VectorModel, near, vectors_of};

/// The number of texts per batch.
const BATCH: usize = 32;

/// A chunk that has no vector yet.
pub(super) struct Waiting {
    path: String,
    nth: u32,
    id: SegmentId,
}

impl Workspace {
    /// Embeds the chunks without a vector, and returns their number. Each batch is stored, even if
    /// the next one fails. Call it after [`update`](Self::update). `progress` counts chunks.
    ///
    /// # Errors
    ///
    /// If the model fails or takes too long, or the vectors cannot be written.
    pub async fn embed(
        &self,
        model: &VectorModel,
        mut progress: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Result<usize> {
        let mut file = self.vector_file(embedding_of(&*model.embedder))?;
        let waiting = self.without_vector(&mut file)?;
        let (mut made, all) = (0, waiting.len() as u64);
        for (nth, batch) in waiting.chunks(BATCH).enumerate() {
            if progress(Progress { done: (nth * BATCH) as u64, all }).is_break() {
                break;
            }
            let (ids, texts): (Vec<_>, Vec<_>) = self.texts(batch).into_iter().unzip();
            if texts.is_empty() {
                continue;
            }
            let vectors = vectors_of(model, &texts, model.batch_deadline).await?;
            made += self.keep(&mut file, &ids, &vectors)?;
        }
        Ok(made)
    }

    /// Returns the vector of a question, for [`search`](Self::search).
    ///
    /// # Errors
    ///
    /// If the model fails or takes too long.
    pub async fn vector_of(
        &self,
        model: &VectorModel,
        question: &str,
    ) -> Result<(Embedding, Vec<f32>)> {
        let question = [question.to_owned()];
        let vector = vectors_of(model, &question, model.query_deadline).await?.pop();
        Ok((embedding_of(&*model.embedder), vector.unwrap_or_default()))
    }

    /// Stores the vectors of chunks, and returns how many were stored.
    pub(super) fn keep(
        &self,
        file: &mut VectorFile,
        ids: &[SegmentId],
        vectors: &[Vec<f32>],
    ) -> Result<usize> {
        let mut made = 0;
        for (id, vector) in ids.iter().zip(vectors) {
            made += usize::from(file.add(*id, vector)?);
        }
        file.commit()?;
        self.forget_vectors();
        Ok(made)
    }

    /// Opens the vectors that `embedding` made.
    pub(super) fn vector_file(&self, embedding: Embedding) -> Result<VectorFile> {
        VectorFile::open(self.store.join("vectors.bin"), embedding)
    }

    /// Returns the chunks without a vector, by file. Removes the vectors of chunks that no longer
    /// exist.
    pub(super) fn without_vector(&self, file: &mut VectorFile) -> Result<Vec<Waiting>> {
        let guard = self.state()?;
        let Some(state) = guard.as_ref() else { return Ok(Vec::new()) };
        let rows = &state.rows;
        let all = (0..rows.len() as u32).filter_map(|row| {
            let (of, nth) = rows.chunk(row)?;
            Some(Waiting { path: of.path.clone(), nth, id: rows.id(row)? })
        });
        let all: Vec<Waiting> = all.collect();
        let live: HashSet<SegmentId> = all.iter().map(|chunk| chunk.id).collect();
        if file.iter().any(|(id, _)| !live.contains(&id)) {
            file.retain(|id| live.contains(&id))?;
        }
        Ok(all.into_iter().filter(|chunk| !file.contains(chunk.id)).collect())
    }

    /// Returns the texts of chunks, each after its path. Chunks of changed files are skipped.
    pub(super) fn texts(&self, of: &[Waiting]) -> Vec<(SegmentId, String)> {
        let cut = self.settings.cut();
        let mut texts = Vec::with_capacity(of.len());
        for same in of.chunk_by(|a, b| a.path == b.path) {
            let Some(Waiting { path, .. }) = same.first() else { continue };
            let content = read(&self.folder, path, self.settings.largest_file);
            let Content::Text(text) = content else { continue };
            let made = chunks(&text.text, self.settings.chunk, &self.settings.counter);
            for Waiting { nth, id, .. } in same {
                let chunk =
                    made.get(*nth as usize).filter(|_| text.hash.chunk(&cut, path, *nth) == *id);
                texts.extend(chunk.map(|chunk| (*id, format!("{path}\n{}", chunk.text))));
            }
        }
        texts
    }

    /// Returns the vectors that `embedding` made, reading them on first use; `None` if there are
    /// none.
    pub(super) fn vectors<'s>(
        &self,
        state: &'s mut SearchState,
        embedding: &Embedding,
    ) -> Option<&'s near::Rows> {
        if state.vectors.as_ref().is_none_or(|(of, _)| of != embedding) {
            let mut vectors = near::Rows::new(embedding.dimensions);
            // Unreadable vectors are ignored.
            if let Ok(file) = self.vector_file(embedding.clone()) {
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

/// Returns the embedding of an embedder, by its name.
pub(super) fn embedding_of(embedder: &dyn Embedder) -> Embedding {
    Embedding::new(embedder.name(), embedder.dimensions())
}
