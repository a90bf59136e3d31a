//! Models that write summaries, and the time they are given.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Result, Tokens, Usage};

/// One text to be summarised.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryRequest {
    /// What the model is told it is.
    pub system: String,
    /// The conversation and the task.
    pub prompt: String,
    /// The longest answer wanted.
    pub max_tokens: Tokens,
}

/// What a model answered to a [`SummaryRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The answer's text.
    pub text: String,
    /// Whether the answer ended at its length limit and so is not whole.
    pub cut_off: bool,
    /// What the provider reported.
    pub usage: Option<Usage>,
}

/// A model that writes summaries.
///
/// Errors say what to do next by their kind: [`Overflow`](crate::ErrorKind::Overflow) and
/// [`Capability`](crate::ErrorKind::Capability) are of this model and another may do better; one
/// that is [retryable](crate::Error::is_retryable) may pass when tried again.
#[async_trait]
pub trait Summarizer: Send + Sync {
    /// A name for receipts and logs, for example `anthropic/claude-haiku-4-5`.
    fn name(&self) -> &str;

    /// The model's own window. No request is larger, its answer included.
    fn window(&self) -> Tokens;

    /// What a call of that usage costs, in USD; `None` where no price is known.
    fn cost(&self, usage: &Usage) -> Option<f64> {
        let _ = usage;
        None
    }

    /// What an answer may use beside its text: thinking, which is billed as output and takes room
    /// in the window. It comes on top of [`SummaryRequest::max_tokens`]. Default: nothing.
    fn answer_overhead(&self) -> Tokens {
        Tokens::ZERO
    }

    /// Writes one summary.
    async fn summarize(&self, request: SummaryRequest) -> Result<Summary>;
}

/// The clock by which calls are waited for. Core has none of its own.
#[async_trait]
pub trait Timer: Send + Sync {
    /// Time since some fixed moment.
    fn elapsed(&self) -> Duration;
    /// Waits.
    async fn sleep(&self, duration: Duration);
}

/// The models that may write a summary, and the clock that bounds them. Without a clock no model
/// is asked: nobody could tell when to give up.
#[derive(Clone)]
pub struct SummaryModels {
    /// The configured model, then its fallbacks.
    pub chain: Vec<Arc<dyn Summarizer>>,
    /// The clock.
    pub timer: Arc<dyn Timer>,
}

impl fmt::Debug for SummaryModels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.chain.iter().map(|model| model.name())).finish()
    }
}
