//! Models that write summaries, and their time limit.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::{Result, Tokens, Usage};

/// A request to summarise one text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryRequest {
    /// The system prompt.
    pub system: String,
    /// The conversation and the task.
    pub prompt: String,
    /// The maximum number of output tokens.
    pub max_tokens: Tokens,
}

/// The answer of a model to a [`SummaryRequest`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// The answer's text.
    pub text: String,
    /// Whether the answer was truncated at its length limit.
    pub cut_off: bool,
    /// The usage that the provider reported.
    pub usage: Option<Usage>,
}

/// A model that writes summaries.
///
/// The kind of an error says what to do next. [`Overflow`](crate::ErrorKind::Overflow) and
/// [`Capability`](crate::ErrorKind::Capability) concern this model, and another may succeed; a
/// [retryable](crate::Error::is_retryable) error may pass on a retry.
#[async_trait]
pub trait Summarizer: Send + Sync {
    /// Returns a name for receipts and logs, for example `anthropic/claude-haiku-4-5`.
    fn name(&self) -> &str;

    /// Returns the context window of the model. No request exceeds it, including its answer.
    fn window(&self) -> Tokens;

    /// Returns the cost of a call with that usage in USD; `None` if the price is unknown.
    fn cost(&self, usage: &Usage) -> Option<f64> {
        let _ = usage;
        None
    }

    /// Returns the tokens an answer may use besides its text: thinking, which is billed as output
    /// and uses the window. They are added to [`SummaryRequest::max_tokens`]. Default: zero.
    fn answer_overhead(&self) -> Tokens {
        Tokens::ZERO
    }

    /// Writes one summary.
    async fn summarize(&self, request: SummaryRequest) -> Result<Summary>;
}

/// The clock for timeouts of calls, because this crate has no clock.
#[async_trait]
pub trait Timer: Send + Sync {
    /// Returns the time since some fixed moment.
    fn elapsed(&self) -> Duration;
    /// Sleeps for `duration`.
    async fn sleep(&self, duration: Duration);
}

/// The models that may write a summary, and the clock for their timeouts. Without a clock no model
/// is called, because a call could not time out.
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
