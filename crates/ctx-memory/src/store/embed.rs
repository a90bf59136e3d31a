//! Vectors by a model, made when there is time.

use std::collections::HashSet;
use std::sync::PoisonError;
use std::time::Duration;

use ctx_core::text::head;
use ctx_core::{Chars, Error, ErrorKind, Result};
use futures_util::future::{Either, select};

use super::{Memory, VectorModel, Vectors};
use crate::apart::apart;
use crate::embed::LONGEST;
use crate::near::Rows;
use crate::{Segment, SegmentId, embedded_text};

/// So many texts are embedded at once, and so many bytes: a slow server has [`VectorModel::batch_deadline`]
/// for them.
const BATCH: usize = 32;
const BATCH_BYTES: usize = 64 << 10;

/// A text that is refused at this length is not refused for it.
const SHORTEST: u32 = 512;

/// A model that refuses so many texts one after the other, each by itself, refuses all.
const IN_A_ROW: usize = 3;

/// Said once, of whatever many messages.
const WITHOUT_DIRECTION: &str = "the model makes vectors of nothing but zeros: such messages are found \
                                 by their words alone; check that `embeddingSource` names a model for \
                                 embeddings";

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
    /// Of a long message its beginning is embedded. One that the model refuses even so is embedded shorter
    /// and shorter, and in the end passed over: it holds up no other.
    ///
    /// # Errors
    ///
    /// Where the model fails, or the archive cannot be read.
    pub async fn embed(&self) -> Result<usize> {
        let Some(model) = self.model() else { return Ok(0) };
        let _alone = self.inner.embedding.lock().await;
        if self.rests(model) {
            return Ok(0);
        }
        let mut pace = Pace { next: 0, texts: BATCH, longest: self.inner.unembedded().longest };
        let (mut made, mut refused) = (0, Vec::new());
        loop {
            let (batch, texts) = self.apart(move |memory| memory.next_batch(pace)).await??;
            let Some(&(first, id)) = batch.first() else {
                self.apart(|memory| memory.inner.flush_vectors()).await?;
                self.inner.unembedded().pass_over(&mut refused);
                self.nudge();
                return Ok(made);
            };
            let error = match vectors_of(model, &texts, model.batch_deadline).await {
                Ok(vectors) => {
                    self.unless_it_rests(model, Ok(()))?;
                    self.inner.unembedded().succeeded(pace.longest, &mut refused);
                    pace.next = batch.last().map_or(first, |(row, _)| *row).saturating_add(1);
                    pace.texts = (pace.texts * 2).min(BATCH);
                    let dimensions = model.embedder.dimensions();
                    let keep = move |memory: &Self| memory.keep(&batch, &vectors, dimensions);
                    made += self.apart(keep).await?;
                    continue;
                }
                Err(error) => error,
            };
            let length = texts.first().map_or(0, |text| text.encode_utf16().count() as u32);
            if !may_be_the_texts(&error) {
                return self.unless_it_rests(model, Err(error));
            } else if batch.len() > 1 {
                pace.texts = 1;
            } else if length > SHORTEST && error.kind() != ErrorKind::Timeout {
                pace.longest = (length / 2).max(SHORTEST);
            } else {
                refused.push(id);
                let is_for_now = error.is_retryable() || error.kind() == ErrorKind::Timeout;
                if is_for_now || refused.len() == IN_A_ROW {
                    self.inner.unembedded().later.extend(refused);
                    return self.unless_it_rests(model, Err(error));
                }
                self.inner.warn(format!("a message is found by its words alone: {error}"));
                pace.next = first.saturating_add(1);
                pace.longest = self.inner.unembedded().longest;
            }
        }
    }

    /// What waits for a disk, on a thread of its own.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T> {
        let memory = self.clone();
        apart("ctx-memory-embed", move || work(&memory)).await
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

    /// The next segments that have no vector, by their rows, and what of each is embedded.
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
        (pace.next..live.index.len() as u32).filter_map(wants).take(pace.texts).collect()
    }

    /// What of a segment is embedded, with the turns before it.
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

    /// Gives segments their vectors, and says how many took one. A vector without a direction is none,
    /// and is not asked for again.
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

/// Segments, by their rows.
type Batch = Vec<(u32, SegmentId)>;

/// How the segments without a vector are gone through.
#[derive(Clone, Copy, Debug)]
struct Pace {
    /// The row to go on with.
    next: u32,
    /// So many texts at once.
    texts: usize,
    /// No more of a text than this, in UTF-16 units.
    longest: u32,
}

/// What a model makes no vectors of, and how much of a text it takes.
#[derive(Debug)]
pub(super) struct Unembedded {
    /// Refused, or made into what is no vector: not asked for again by this process.
    never: HashSet<SegmentId>,
    /// Failed, perhaps for another reason: asked for again once all others have theirs.
    later: HashSet<SegmentId>,
    longest: u32,
}

impl Unembedded {
    fn is_wanted(&self, id: SegmentId) -> bool {
        !self.never.contains(&id) && !self.later.contains(&id)
    }

    /// Takes note that the model works: what it refused before was refused for what it is.
    fn succeeded(&mut self, longest: u32, refused: &mut Vec<SegmentId>) {
        self.longest = longest;
        self.never.extend(refused.drain(..));
    }

    /// Takes note that there is nothing left but what failed.
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

/// Whether another batch may fare better. A key that is refused, or a limit of so many requests, has
/// nothing to do with what was sent.
fn may_be_the_texts(error: &Error) -> bool {
    use ErrorKind::{Corrupt, Overflow, Timeout, Upstream};
    matches!(error.kind(), Corrupt | Overflow | Timeout | Upstream) && error.wait().is_none()
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
