//! Summarises more history with one model than fits into one call.

mod condense;
mod multi_part;
mod rolling;

use std::ops::Range;

use ctx_core::{Summarizer, SummaryRequest, Tokens};
use futures_util::future::try_join;

use crate::chunk::OVERSIZED_SHARE;
use crate::prompts::{Prompts, Subject};
use crate::{ChunkRatio, SAFETY_MARGIN, SUMMARIZATION_OVERHEAD_TOKENS, Strategy, SummaryJob};
use ctx_extract::TURN_CONTEXT_HEADING;

use super::call_budget::CallBudget;
use super::calls::{Calls, Failure, TimeShare};
use super::gauge::Gauge;
use super::prompt_messages::PromptMessages;

/// pi's text for a split turn with nothing before it.
const NO_PRIOR_HISTORY: &str = "No prior history.";

/// Replaces a part of which no message could be sent.
const TOO_LARGE: &str = "(its messages are too large to be summarised)";

/// Notes in a rolling summary that messages were dropped (Pi engine).
const OVERSIZED_OMITTED_NOTICE: &str = "[部分大消息因超限被省略]";

/// How much a model is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// Everything; a message over half of the context window fails the model.
    All,
    /// Everything but messages over half of the window.
    WithoutOversized,
    /// Everything but messages over a quarter of the window, in chunks half as large.
    Less,
}

/// A model's summary, and how many messages it was not shown.
pub(crate) struct ModelSummary {
    pub(crate) text: String,
    /// A note on those messages, for the reader of the summary.
    pub(crate) notes: String,
    pub(crate) omitted: usize,
}

/// One model processing one job.
pub(crate) struct SummaryWriter<'a, 'l> {
    job: &'a SummaryJob,
    subject: Subject,
    prompts: &'a Prompts,
    calls: &'a Calls<'l>,
    model: &'a dyn Summarizer,
    time_share: TimeShare,
    messages: PromptMessages,
    budget: CallBudget,
    /// The gauge for requests, which never underestimates a script.
    gauge: Gauge,
    previous: Option<String>,
}

impl<'a, 'l> SummaryWriter<'a, 'l> {
    pub(crate) fn new(
        job: &'a SummaryJob,
        subject: Subject,
        prompts: &'a Prompts,
        calls: &'a Calls<'l>,
        (model, time_share): (&'a dyn Summarizer, TimeShare),
        input: Input,
    ) -> Result<Self, Failure> {
        let window = model.window();
        let limit = if input == Input::Less { window.scale(OVERSIZED_SHARE) } else { window };
        let gauge = Gauge::for_models(job.counter);
        let mut messages = PromptMessages::of(job, limit, &gauge);
        if input == Input::All && !messages.omitted.is_empty() {
            return Err(Failure::Oversized(messages.omitted.len()));
        }
        if !messages.has_text(0..job.messages.len()) {
            return Err(Failure::Nothing);
        }
        let previous =
            job.previous.as_ref().map(|previous| ctx_extract::without_blocks(&previous.text));
        let previous = previous.filter(|text| !text.trim().is_empty());
        let fixed = gauge.text(&prompts.longest());
        let measure = previous.as_deref().map_or(Tokens::ZERO, |text| gauge.text(text));
        let ratio = job.config.chunk_ratio.of(messages.sizes(), window);
        // The model's thinking takes part of the window as well.
        let window = window - model.answer_overhead();
        let budget = |ratio| CallBudget::of(window, job.summary_budget, fixed, measure, ratio);
        let whole =
            || budget(None).filter(|budget| messages.all().scale(SAFETY_MARGIN) <= budget.chunk);
        let budget = match (job.config.strategy, input) {
            (Strategy::Single, Input::All | Input::WithoutOversized) => budget(None),
            (_, Input::Less) => budget(Some(ratio * 0.5)),
            // A chunk of a small window would be smaller than the reserve for its answer.
            _ if window.scale(ratio) < SUMMARIZATION_OVERHEAD_TOKENS.scale(2.0) => budget(None),
            // History is compacted because it is too large; a part that fits one call is not split.
            _ => whole().or_else(|| budget(Some(ratio))),
        };
        let budget = budget.ok_or(Failure::TooSmall)?;
        messages.bound(budget.chunk, &gauge);
        Ok(Self {
            job,
            subject,
            prompts,
            calls,
            model,
            time_share,
            messages,
            budget,
            gauge,
            previous,
        })
    }

    /// Writes the summary, within the job's budget.
    pub(crate) async fn summarize(&self) -> Result<ModelSummary, Failure> {
        let notes = self.notes();
        let budget = self.job.summary_budget - self.count(&notes);
        let len = self.job.messages.len();
        let text = match self.job.turn_start.filter(|&at| at < len) {
            None => self.history(0..len, budget).await?,
            Some(at) => self.split_turn(at, budget).await?,
        };
        Ok(ModelSummary { text, notes, omitted: self.messages.omitted.len() })
    }

    /// Summarises the history and the beginning of a turn concurrently, each with its own prompt.
    /// The previous summary is kept even if the turn is all there is (pi 0.73.1 loses it then).
    async fn split_turn(&self, at: usize, budget: Tokens) -> Result<String, Failure> {
        let len = self.job.messages.len();
        let budget = budget - self.count(TURN_CONTEXT_HEADING) - Tokens(2);
        // pi gives 0.8 of the reserve to history and 0.5 to the turn.
        let (share, turn) = (budget.scale(8.0 / 13.0), budget.scale(5.0 / 13.0));
        let prefix = self.turn_prefix(at..len, turn);
        let (history, prefix) = if at == 0 && self.previous.is_none() {
            (NO_PRIOR_HISTORY.to_owned(), prefix.await?)
        } else {
            try_join(self.history(0..at, share), prefix).await?
        };
        Ok(format!("{history}{TURN_CONTEXT_HEADING}{prefix}"))
    }

    async fn history(&self, range: Range<usize>, budget: Tokens) -> Result<String, Failure> {
        if !self.messages.has_text(range.clone()) {
            let kept = self.previous.as_deref().unwrap_or(TOO_LARGE);
            return Ok(self.fitted(kept.to_owned(), budget, "previous summary").await);
        }
        match self.job.config.strategy {
            Strategy::MultiPart => self.multi_part(range, budget).await,
            Strategy::Rolling | Strategy::Single => {
                let previous = self.previous.clone();
                self.roll(self.subject, range, previous, budget, "summary").await
            }
        }
    }

    async fn turn_prefix(&self, range: Range<usize>, budget: Tokens) -> Result<String, Failure> {
        if !self.messages.has_text(range.clone()) {
            return Ok(TOO_LARGE.to_owned());
        }
        self.roll(Subject::TurnPrefix, range, None, budget, "turn prefix").await
    }

    /// Returns the notes on messages that were not sent, appended to the summary: as many lines as
    /// fit a quarter of the budget.
    fn notes(&self) -> String {
        let budget = self.job.summary_budget.scale(0.25);
        let notice = match self.job.config.strategy {
            Strategy::Rolling => Some(OVERSIZED_OMITTED_NOTICE),
            Strategy::MultiPart | Strategy::Single => None,
        };
        let mut text = String::new();
        if self.messages.omitted.is_empty() {
            return text;
        }
        let lines = notice.into_iter().chain(self.messages.omitted.iter().map(String::as_str));
        for line in lines {
            let separator = if text.is_empty() { "\n\n" } else { "\n" };
            let longer = [text.as_str(), separator, line].concat();
            if self.count(&longer) > budget {
                break;
            }
            text = longer;
        }
        text
    }

    async fn ask(&self, task: &str, request: &SummaryRequest) -> Result<String, Failure> {
        self.calls.ask(self.model, self.time_share, task, request).await
    }

    /// Counts a summary in the tokens of its budget.
    fn count(&self, text: &str) -> Tokens {
        self.job.counter.text(text)
    }
}

impl ChunkRatio {
    /// Returns the minimum number of parts of a history: as many as chunks fit into a window.
    #[must_use]
    pub fn parts(self, sizes: &[Tokens], window: Tokens) -> usize {
        (1.0 / self.of(sizes, window)).ceil() as usize
    }
}
