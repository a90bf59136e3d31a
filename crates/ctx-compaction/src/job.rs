//! What a model is asked to do, and what comes of it.

use std::sync::Arc;

use ctx_core::{Counter, SummaryInstructions, Tokens};

use crate::{Call, Config, PreviousSummary, Rung, Said};

/// What is to be summarised by a model. It owns its data, because work that is awaited may not
/// borrow a view.
#[derive(Clone, Debug)]
pub struct Job {
    /// Strategy, ratios, limits of time and money.
    pub config: Arc<Config>,
    /// The messages, oldest first.
    pub said: Arc<[Said]>,
    /// Tokens of each message as it stood in the request. One that is missing is counted.
    pub sizes: Vec<Tokens>,
    /// The group of each message: a tool call and its results share one. A message without one
    /// stands alone.
    pub groups: Vec<u32>,
    /// Where a split turn begins: from here on the messages are the turn's prefix.
    pub turn_start: Option<usize>,
    /// What stands for the history before the first message.
    pub previous: Option<PreviousSummary>,
    /// The most the summary may measure, by `counter`.
    pub summary_budget: Tokens,
    /// How text is counted.
    pub counter: Counter,
    /// What the user wants the summary to dwell on. Untrusted.
    pub focus: Option<String>,
    /// How identifiers are to be treated, where the caller has wishes of its own.
    pub instructions: SummaryInstructions,
}

/// A summary that a model wrote. It is inside the job's budget, and has not been audited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The text.
    pub text: String,
    /// What ctx itself says behind it: which messages the model was not shown. No audit looks at it.
    pub notes: String,
    /// Whether it stands for all messages or for all but the oversized ones.
    pub rung: Rung,
    /// The model that wrote it.
    pub model: String,
}

/// What was done to get a summary. It is complete also when none came of it, and when the work was
/// dropped half-way.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Log {
    /// Every call, in the order in which they ended.
    pub calls: Vec<Call>,
    /// What was not sent, and why another model was asked, for people.
    pub notes: Vec<String>,
    /// What the calls cost, in USD; `None` where no price is known. A call that was given up, or that
    /// failed otherwise than by a refusal, is charged at its estimate: the provider may bill it.
    pub cost_usd: Option<f64>,
}
