//! Embedding models of a host, called with a deadline.

use std::sync::Arc;
use std::time::Duration;

use ctx_core::{Embedder, Error, ErrorKind, Result, Timer};
use futures_util::future::{Either, select};

/// An embedding model, and the clock for its deadlines.
#[derive(Clone)]
pub struct VectorModel {
    /// The model.
    pub embedder: Arc<dyn Embedder>,
    /// The clock.
    pub timer: Arc<dyn Timer>,
    /// The deadline of a query; without its vector, search is lexical. Default: 2 s.
    pub query_deadline: Duration,
    /// The deadline of a batch of segments. Default: 60 s.
    pub batch_deadline: Duration,
}

impl VectorModel {
    /// Returns a model with the default deadlines.
    #[must_use]
    pub fn new(embedder: Arc<dyn Embedder>, timer: Arc<dyn Timer>) -> Self {
        let (query_deadline, batch_deadline) = (Duration::from_secs(2), Duration::from_secs(60));
        Self { embedder, timer, query_deadline, batch_deadline }
    }
}

/// Returns the vectors of texts, if they arrive in time and are valid in number, length and values.
pub async fn vectors_of(
    model: &VectorModel,
    texts: &[String],
    within: Duration,
) -> Result<Vec<Vec<f32>>> {
    let embedder = &*model.embedder;
    let made = match select(embedder.embed(texts), model.timer.sleep(within)).await {
        Either::Left((made, _)) => made?,
        Either::Right(_) => {
            return Err(Error::new(
                ErrorKind::Timeout,
                "the embedding model did not answer in time",
            )
            .with("model", embedder.name())
            .with("waited", format!("{} s", within.as_secs_f32()))
            .retryable()
            .hint("search is lexical until then; check the server"));
        }
    };
    let length = embedder.dimensions();
    let is_sound =
        |vector: &Vec<f32>| vector.len() == length && vector.iter().all(|x| x.is_finite());
    if made.len() == texts.len() && made.iter().all(is_sound) {
        return Ok(made);
    }
    Err(Error::new(ErrorKind::Upstream, "the embedding model returned invalid vectors")
        .with("model", embedder.name())
        .with("vectors", format!("{} of {}", made.len(), texts.len()))
        .with("dimensions", length)
        .hint(
            "check that `embeddingSource` names an embedding model; search is lexical until then",
        ))
}
