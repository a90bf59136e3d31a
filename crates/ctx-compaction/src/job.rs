//! The input and output of a model's summary.

use std::sync::Arc;

use ctx_core::{Counter, SummaryInstructions, Tokens};

use crate::{Config, Rung, SummaryCall};
use ctx_facts::{CitedMessage, PreviousSummary};

/// The input of a summary by a model. It owns its data, because a future must not borrow a view.
#[derive(Clone, Debug)]
pub struct SummaryJob {
    /// Strategy, ratios, limits of time and cost.
    pub config: Arc<Config>,
    /// The messages, oldest first.
    pub messages: Arc<[CitedMessage]>,
    /// Tokens of each message in the request. A missing size is counted.
    pub sizes: Vec<Tokens>,
    /// The group of each message: a tool call and its results share one. A message without a group
    /// is alone.
    pub groups: Vec<u32>,
    /// The start of a split turn: the messages from here on are the turn's prefix.
    pub turn_start: Option<usize>,
    /// The summary of the history before the first message.
    pub previous: Option<PreviousSummary>,
    /// The maximum size of the summary, by `counter`.
    pub summary_budget: Tokens,
    /// The counter for texts.
    pub counter: Counter,
    /// The user's focus for the summary. Untrusted.
    pub focus: Option<String>,
    /// The caller's instructions for writing the summary.
    pub instructions: SummaryInstructions,
}

/// A summary that a model wrote. It fits the job's budget and is not audited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryDraft {
    /// The text.
    pub text: String,
    /// Text that ctx appends: which messages the model was not shown. It is not audited.
    pub notes: String,
    /// Whether it covers all messages or all but the oversized ones.
    pub rung: Rung,
    /// The model that wrote it.
    pub model: String,
}

/// What was done to get a summary. It is complete even if none was produced, or if the future was
/// dropped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CallLog {
    /// Every call, in the order in which they ended.
    pub calls: Vec<SummaryCall>,
    /// For people: what was not sent, and why another model was tried.
    pub notes: Vec<String>,
    /// The cost of the calls in USD; `None` if no price is known. A call that was cancelled, or
    /// that failed other than by a refusal, is charged at its estimate: the provider may bill it.
    pub cost_usd: Option<f64>,
}
