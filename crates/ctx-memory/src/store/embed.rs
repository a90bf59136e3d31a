//! Computes a model's vectors in the background.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::Duration;

use ctx_core::text::head;
use ctx_core::{Chars, Error, ErrorKind, Result};
use ctx_search::near::Rows;
use ctx_search::{
    LONGEST, Segment, SegmentId, VectorModel, embedded_text, spawn_blocking, vectors_of,
};

use super::{Memory, Vectors};

/// The maximum number of texts, and of bytes, per batch: a slow server must embed them within
/// [`VectorModel::batch_deadline`].
const BATCH: usize = 32;
const BATCH_BYTES: usize = 64 << 10;

/// A text that is refused at this length is not refused for its length.
const SHORTEST: u32 = 512;

/// A model that refuses this many consecutive texts, each sent alone, refuses all.
const IN_A_ROW: usize = 3;

/// Reported once for all affected messages.
const WITHOUT_DIRECTION: &str = "the model returns zero vectors: these messages are found \
                                 by their words only; check that `embeddingSource` names a model for \
                                 embeddings";

/// The pause after a failure of the model.
const REST: Duration = Duration::from_secs(60);

impl Memory {
    /// Returns the vector of a query; `None` without a model, and for a minute after it failed.
    ///
    /// # Errors
    ///
    /// If the model fails or returns an invalid vector. Search without a vector then.
    pub async fn vector_of(&self, query: &str) -> Result<Option<Vec<f32>>> {
        let Some(model) = self.model().filter(|model| !self.rests(model)) else { return Ok(None) };
        let made = vectors_of(model, &[query.to_owned()], model.query_deadline).await;
        Ok(self.record_outcome(model, made)?.into_iter().next())
    }

    /// Embeds the segments that have no vector, if there is a model, and returns their number.
    /// Nothing waits for it: until then, segments are found by their words. Each batch is stored,
    /// even if the next one fails. A model that failed is not called for a minute.
    ///
    /// Only the beginning of a long message is embedded. If the model refuses it, ever shorter
    /// beginnings are sent, and finally the message is skipped so that it does not block others.
    ///
    /// # Errors
    ///
    /// If the model fails, or the archive cannot be read.
    pub async fn embed(&self) -> Result<usize> {
        let Some(model) = self.model() else { return Ok(0) };
        let _alone = self.inner.embedding.lock().await;
        if self.rests(model) {
            return Ok(0);
        }
        let mut pace = Pace { next: 0, texts: BATCH, longest: self.inner.unembedded().longest };
        let (mut made, mut refused) = (0, Vec::new());
        loop {
            let (batch, texts) =
                self.spawn_blocking(move |memory| memory.next_batch(pace)).await??;
            let Some(&(first, id)) = batch.first() else {
                self.spawn_blocking(|memory| memory.inner.flush_vectors()).await?;
                self.inner.unembedded().pass_over(&mut refused);
                self.nudge();
                return Ok(made);
            };
            let error = match vectors_of(model, &texts, model.batch_deadline).await {
                Ok(vectors) => {
                    self.record_outcome(model, Ok(()))?;
                    self.inner.unembedded().succeeded(pace.longest, &mut refused);
                    pace.next = batch.last().map_or(first, |(row, _)| *row).saturating_add(1);
                    pace.texts = (pace.texts * 2).min(BATCH);
                    let dimensions = model.embedder.dimensions();
                    let keep = move |memory: &Self| memory.keep(&batch, &vectors, dimensions);
                    made += self.spawn_blocking(keep).await?;
                    continue;
                }
                Err(error) => error,
            };
            let length = texts.first().map_or(0, |text| text.encode_utf16().count() as u32);
            if !may_depend_on_texts(&error) {
                return self.record_outcome(model, Err(error));
            } else if batch.len() > 1 {
                pace.texts = 1;
            } else if length > SHORTEST && error.kind() != ErrorKind::Timeout {
                pace.longest = (length / 2).max(SHORTEST);
            } else {
                refused.push(id);
                let is_for_now = error.is_retryable() || error.kind() == ErrorKind::Timeout;
                if is_for_now || refused.len() == IN_A_ROW {
                    self.inner.unembedded().later.extend(refused);
                    return self.record_outcome(model, Err(error));
                }
                self.inner.warn(format!(
                    "a message has no vector and is found by its words only: {error}"
                ));
                pace.next = first.saturating_add(1);
                pace.longest = self.inner.unembedded().longest;
            }
        }
    }

    /// Runs blocking work on a separate thread.
    async fn spawn_blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T> {
        let memory = self.clone();
        spawn_blocking("ctx-memory-embed", move || work(&memory)).await
    }

    /// Whether the model failed recently, so that no turn waits for it again.
    fn rests(&self, model: &VectorModel) -> bool {
        let until = *self.inner.rests_until.lock().unwrap_or_else(PoisonError::into_inner);
        until.is_some_and(|until| model.timer.elapsed() < until)
    }

    fn record_outcome<T>(&self, model: &VectorModel, made: Result<T>) -> Result<T> {
        let until = made.is_err().then(|| model.timer.elapsed().saturating_add(REST));
        *self.inner.rests_until.lock().unwrap_or_else(PoisonError::into_inner) = until;
        made
    }

    /// Returns the model, if its vectors have a weight.
    fn model(&self) -> Option<&VectorModel> {
        match &self.inner.settings.vectors {
            Vectors::Model(model) if self.inner.settings.weight() > 0.0 => Some(model),
            _ => None,
        }
    }

    /// Returns the next segments without a vector, with their rows and the text to embed.
    fn next_batch(&self, pace: Pace) -> Result<(Batch, Vec<String>)> {
        self.inner.ensure_open()?;
        let mut batch = self.without_vector(pace);
        let (mut texts, mut bytes) = (Vec::with_capacity(batch.len()), 0);
        for (_, id) in &batch {
            let mut text = self.text(*id)?;
            let length = head(&text, Chars(pace.longest)).len();
            text.truncate(length);
            bytes += length;
            if bytes > BATCH_BYTES && !texts.is_empty() {
                break;
            }
            texts.push(text);
        }
        batch.truncate(texts.len());
        Ok((batch, texts))
    }

    fn without_vector(&self, pace: Pace) -> Batch {
        let unembedded = self.inner.unembedded();
        let live = self.inner.live();
        let wants = |row: u32| {
            let id = live.id(row).filter(|id| live.row(*id) == Some(row))?;
            let has = live.vectors.as_ref().is_some_and(|vectors| vectors.has(row));
            (!has && unembedded.is_wanted(id)).then_some((row, id))
        };
        (pace.next..live.index.row_count() as u32).filter_map(wants).take(pace.texts).collect()
    }

    /// Returns the text to embed for a segment, with the turns before it.
    fn text(&self, id: SegmentId) -> Result<String> {
        let before = self.inner.settings.search.embed_context;
        let turns = {
            let live = self.inner.live();
            let mut turns = vec![id];
            let mut row = live.row(id);
            for _ in 0..before {
                row = row.and_then(|row| live.index.neighbours_of(row)[0]);
                turns.extend(row.and_then(|row| live.id(row)));
            }
            turns.reverse();
            turns
        };
        let turns: Vec<Segment> = self.get(&turns)?.into_iter().flatten().collect();
        Ok(embedded_text(&turns, before))
    }

    /// Stores vectors and returns how many segments got one. A vector without a direction is
    /// dropped and not requested again.
    fn keep(&self, batch: &Batch, vectors: &[Vec<f32>], dimensions: usize) -> usize {
        let (mut kept, mut never) = (Vec::new(), Vec::new());
        {
            let mut live = self.inner.live_mut();
            for ((_, id), vector) in batch.iter().zip(vectors) {
                let Some(row) = live.row(*id) else { continue };
                let rows = live.vectors.get_or_insert_with(|| Rows::new(dimensions));
                if rows.add(row, vector) {
                    kept.push((*id, vector));
                } else if !rows.has(row) {
                    never.push(*id);
                }
            }
        }
        kept.iter().for_each(|(id, vector)| self.inner.keep_vector(*id, vector));
        self.inner.flush_vectors();
        if !never.is_empty() {
            self.inner.warn(WITHOUT_DIRECTION.into());
        }
        self.inner.unembedded().never.extend(never);
        kept.len()
    }
}

/// Segments and their rows.
type Batch = Vec<(u32, SegmentId)>;

/// How to iterate over the segments without a vector.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// The next row.
    next: u32,
    /// The maximum number of texts per batch.
    texts: usize,
    /// The maximum length of a text, in UTF-16 units.
    longest: u32,
}

/// Segments that cannot be embedded, and the length of text the model accepts.
#[derive(Debug)]
pub(super) struct Unembedded {
    /// Refused, or embedded to an invalid vector: not sent again by this process.
    never: HashSet<SegmentId>,
    /// Failed, perhaps for another reason: sent again once all others are done.
    later: HashSet<SegmentId>,
    longest: u32,
}

impl Unembedded {
    fn is_wanted(&self, id: SegmentId) -> bool {
        !self.never.contains(&id) && !self.later.contains(&id)
    }

    /// Records that the model works, so it refused earlier texts for their content.
    fn succeeded(&mut self, longest: u32, refused: &mut Vec<SegmentId>) {
        self.longest = longest;
        self.never.extend(refused.drain(..));
    }

    /// Records that only failed segments are left.
    fn pass_over(&mut self, refused: &mut Vec<SegmentId>) {
        self.never.extend(refused.drain(..));
        self.later.clear();
    }
}

impl Default for Unembedded {
    fn default() -> Self {
        Self { never: HashSet::new(), later: HashSet::new(), longest: LONGEST.0 }
    }
}

/// Whether another batch may succeed. A rejected key or a rate limit does not depend on the texts.
fn may_depend_on_texts(error: &Error) -> bool {
    use ErrorKind::{Corrupt, Overflow, Timeout, Upstream};
    matches!(error.kind(), Corrupt | Overflow | Timeout | Upstream) && error.wait().is_none()
}
