//! Vectors by a model, made when there is time.

use std::sync::PoisonError;
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Result};
use futures_util::future::{Either, select};

use super::{Memory, VectorModel, Vectors};
use crate::near::Rows;
use crate::{Segment, SegmentId, embedded_text};

/// So many texts are embedded at once.
const BATCH: usize = 32;

/// A model that failed is not asked again for so long.
const REST: Duration = Duration::from_secs(60);

impl Memory {
    /// The vector of a query, where a model makes them; `None` where none does, and for a minute
    /// after it failed.
    ///
    /// # Errors
    ///
    /// Where the model fails, or answers with what is no vector of its own. Search without one.
    pub async fn vector_of(&self, query: &str) -> Result<Option<Vec<f32>>> {
        let Some(model) = self.model().filter(|model| !self.rests(model)) else { return Ok(None) };
        let made = vectors_of(model, &[query.to_owned()], model.query_deadline).await;
        Ok(self.unless_it_rests(model, made)?.into_iter().next())
    }

    /// Gives a vector to the segments that have none, where a model makes them, and says to how
    /// many. Nothing waits for it: until then, segments are found by their words. What a batch made
    /// is kept, whatever becomes of the next one. A model that failed is left alone for a minute.
    ///
    /// # Errors
    ///
    /// Where the model fails, or the archive cannot be read.
    pub async fn embed(&self) -> Result<usize> {
        let Some(model) = self.model().filter(|model| !self.rests(model)) else { return Ok(0) };
        self.inner.ensure_open()?;
        let (mut made, mut next) = (0, 0);
        loop {
            let (ids, after) = self.without_vector(next);
            if ids.is_empty() {
                self.inner.flush_vectors();
                self.nudge();
                return Ok(made);
            }
            next = after;
            let texts = self.texts(&ids)?;
            let vectors = vectors_of(model, &texts, model.batch_deadline).await;
            let vectors = self.unless_it_rests(model, vectors)?;
            made += self.keep(&ids, &vectors, model.embedder.dimensions());
            self.inner.flush_vectors();
        }
    }

    /// Whether the model failed not long ago: no turn waits for it again so soon.
    fn rests(&self, model: &VectorModel) -> bool {
        let until = *self.inner.rests_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| model.timer.elapsed() < until)
    }

    fn unless_it_rests<T>(&self, model: &VectorModel, made: Result<T>) -> Result<T> {
        let until = made.is_err().then(|| model.timer.elapsed().saturating_add(REST));
        *self.inner.rests_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
        made
    }

    /// The model, where its vectors count.
    fn model(&self) -> Option<&VectorModel> {
        match &self.inner.settings.vectors {
            Vectors::Model(model) if self.inner.settings.weight() > 0.0 => Some(model),
            _ => None,
        }
    }

    /// Segments of the rows from `next` on that have no vector, and where to go on.
    fn without_vector(&self, next: u32) -> (Vec<SegmentId>, u32) {
        let live = self.inner.live();
        let all = live.index.ids().len() as u32;
        let mut ids = Vec::with_capacity(BATCH);
        for row in next..all {
            if ids.len() == BATCH {
                return (ids, row);
            }
            let has = live.vectors.as_ref().is_some_and(|vectors| vectors.has(row));
            ids.extend(live.id(row).filter(|id| !has && live.row(*id) == Some(row)));
        }
        (ids, all)
    }

    /// What of each segment is embedded.
    fn texts(&self, ids: &[SegmentId]) -> Result<Vec<String>> {
        let before = self.inner.settings.search.embed_context;
        let mut texts = Vec::with_capacity(ids.len());
        for id in ids {
            let turns = {
                let live = self.inner.live();
                let mut turns = vec![*id];
                let mut row = live.row(*id);
                for _ in 0..before {
                    row = row.and_then(|row| live.index.neighbours_of(row)[0]);
                    turns.extend(row.and_then(|row| live.id(row)));
                }
                turns.reverse();
                turns
            };
            let turns: Vec<Segment> = self.get(&turns)?.into_iter().flatten().collect();
            texts.push(embedded_text(&turns, before));
        }
        Ok(texts)
    }

    /// Gives segments their vectors, and says how many took one.
    fn keep(&self, ids: &[SegmentId], vectors: &[Vec<f32>], dimensions: usize) -> usize {
        let mut kept = Vec::new();
        {
            let mut live = self.inner.live_mut();
            for (id, vector) in ids.iter().zip(vectors) {
                let Some(row) = live.row(*id) else { continue };
                if live.vectors.get_or_insert_with(|| Rows::new(dimensions)).add(row, vector) {
                    kept.push((*id, vector));
                }
            }
        }
        kept.iter().for_each(|(id, vector)| self.inner.keep_vector(*id, vector));
        kept.len()
    }
}

/// The vectors of texts, if they are there in time, and as many, as long and as sound as they should
/// be.
pub(crate) async fn vectors_of(
    model: &VectorModel,
    texts: &[String],
    within: Duration,
) -> Result<Vec<Vec<f32>>> {
    let embedder = &*model.embedder;
    let made = match select(embedder.embed(texts), model.timer.sleep(within)).await {
        Either::Left((made, _)) => made?,
        Either::Right(_) => {
            return Err(Error::new(ErrorKind::Timeout, "the model took too long to make vectors")
                .with("model", embedder.name())
                .with("waited", format!("{} s", within.as_secs_f32()))
                .retryable()
                .hint("words alone decide now; check the server"));
        }
    };
    let length = embedder.dimensions();
    let is_sound =
        |vector: &Vec<f32>| vector.len() == length && vector.iter().all(|x| x.is_finite());
    if made.len() == texts.len() && made.iter().all(is_sound) {
        return Ok(made);
    }
    Err(Error::new(ErrorKind::Upstream, "the model's vectors cannot be used")
        .with("model", embedder.name())
        .with("vectors", format!("{} of {}", made.len(), texts.len()))
        .with("dimensions", length)
        .hint("check that `embeddingSource` names a model for embeddings; words alone decide now"))
}
