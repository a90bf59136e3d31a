//! How one model is brought to summarise more than fits into one call.

mod condense;
mod multi_part;
mod rolling;

use std::ops::Range;

use ctx_core::{Summarizer, SummaryRequest, Tokens};
use futures_util::future::try_join;

use crate::call_room::CallRoom;
use crate::calls::{Calls, Failure, Patience};
use crate::gauge::Gauge;
use crate::material::Material;
use crate::prompts::{Prompts, Subject};
use crate::{
    ChunkRatio, Job, OVERSIZED_SHARE, SAFETY_MARGIN, SUMMARIZATION_OVERHEAD_TOKENS, Strategy,
    TURN_CONTEXT_HEADING,
};

/// pi's words for a split turn with nothing before it.
const NO_PRIOR_HISTORY: &str = "No prior history.";

/// Stands for a part of which no message could be sent.
const TOO_LARGE: &str = "(its messages are too large to be summarised)";

/// Says in a rolling summary that messages were left out (Pi engine).
const OVERSIZED_OMITTED_NOTICE: &str = "[部分大消息因超限被省略]";

/// How much a model is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// Everything; a message past half of the window is reason to ask another model.
    All,
    /// Everything but messages past half of the window.
    WithoutOversized,
    /// Everything but messages past a quarter of the window, in chunks half as large.
    Less,
}

/// What a model wrote, and how many messages it was not shown.
pub(crate) struct Written {
    pub(crate) text: String,
    /// Those messages, for who reads the summary.
    pub(crate) notes: String,
    pub(crate) omitted: usize,
}

/// One model at work on one job.
pub(crate) struct Desk<'a, 'l> {
    job: &'a Job,
    subject: Subject,
    prompts: &'a Prompts,
    calls: &'a Calls<'l>,
    model: &'a dyn Summarizer,
    patience: Patience,
    material: Material,
    room: CallRoom,
    /// What counts for requests: no script too low.
    gauge: Gauge,
    previous: Option<String>,
}

impl<'a, 'l> Desk<'a, 'l> {
    pub(crate) fn new(
        job: &'a Job,
        subject: Subject,
        prompts: &'a Prompts,
        calls: &'a Calls<'l>,
        (model, patience): (&'a dyn Summarizer, Patience),
        input: Input,
    ) -> Result<Self, Failure> {
        let window = model.window();
        let limit = if input == Input::Less { window.scale(OVERSIZED_SHARE) } else { window };
        let gauge = Gauge::for_models(job.counter);
        let mut material = Material::of(job, limit, &gauge);
        if input == Input::All && !material.omitted.is_empty() {
            return Err(Failure::Oversized(material.omitted.len()));
        }
        if !material.says_something(0..job.said.len()) {
            return Err(Failure::Nothing);
        }
        let previous = job.previous.as_ref().map(|previous| without_file_lists(&previous.text));
        let previous = previous.filter(|text| !text.trim().is_empty());
        let fixed = gauge.text(&prompts.longest());
        let measure = previous.as_deref().map_or(Tokens::ZERO, |text| gauge.text(text));
        let ratio = job.config.chunk_ratio.of(material.sizes(), window);
        // What it thinks stands in the window as well.
        let window = window - model.answer_overhead();
        let room = |ratio| CallRoom::of(window, job.summary_budget, fixed, measure, ratio);
        let whole = || room(None).filter(|room| material.all().scale(SAFETY_MARGIN) <= room.chunk);
        let room = match (job.config.strategy, input) {
            (Strategy::Single, Input::All | Input::WithoutOversized) => room(None),
            (_, Input::Less) => room(Some(ratio * 0.5)),
            // A share of a small window would make calls of less than is kept free for their answers.
            _ if window.scale(ratio) < SUMMARIZATION_OVERHEAD_TOKENS.scale(2.0) => room(None),
            // History is cut because it does not fit, so what fits is not.
            _ => whole().or_else(|| room(Some(ratio))),
        };
        let room = room.ok_or(Failure::TooSmall)?;
        material.bound(room.chunk, &gauge);
        Ok(Self { job, subject, prompts, calls, model, patience, material, room, gauge, previous })
    }

    /// The summary, inside the job's budget.
    pub(crate) async fn summarize(&self) -> Result<Written, Failure> {
        let notes = self.notes();
        let budget = self.job.summary_budget - self.count(&notes);
        let len = self.job.said.len();
        let text = match self.job.turn_start.filter(|&at| at < len) {
            None => self.history(0..len, budget).await?,
            Some(at) => self.split_turn(at, budget).await?,
        };
        Ok(Written { text, notes, omitted: self.material.omitted.len() })
    }

    /// History and the beginning of a turn, each with its own prompt, at the same time. The previous
    /// summary is kept also when the turn is all there is (pi 0.73.1 loses it then).
    async fn split_turn(&self, at: usize, budget: Tokens) -> Result<String, Failure> {
        let len = self.job.said.len();
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
        if !self.material.says_something(range.clone()) {
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
        if !self.material.says_something(range.clone()) {
            return Ok(TOO_LARGE.to_owned());
        }
        self.roll(Subject::TurnPrefix, range, None, budget, "turn prefix").await
    }

    /// What is said behind the summary of messages that were not sent: as many lines as a quarter
    /// of the budget holds.
    fn notes(&self) -> String {
        let room = self.job.summary_budget.scale(0.25);
        let notice = match self.job.config.strategy {
            Strategy::Rolling => Some(OVERSIZED_OMITTED_NOTICE),
            Strategy::MultiPart | Strategy::Single => None,
        };
        let mut text = String::new();
        if self.material.omitted.is_empty() {
            return text;
        }
        let lines = notice.into_iter().chain(self.material.omitted.iter().map(String::as_str));
        for line in lines {
            let separator = if text.is_empty() { "\n\n" } else { "\n" };
            let longer = [text.as_str(), separator, line].concat();
            if self.count(&longer) > room {
                break;
            }
            text = longer;
        }
        text
    }

    async fn ask(&self, task: &str, request: &SummaryRequest) -> Result<String, Failure> {
        self.calls.ask(self.model, self.patience, task, request).await
    }

    /// The size of a summary, as its budget is counted.
    fn count(&self, text: &str) -> Tokens {
        self.job.counter.text(text)
    }
}

impl ChunkRatio {
    /// In how many parts a history is split at least: as many chunks as make up a window.
    #[must_use]
    pub fn parts(self, sizes: &[Tokens], window: Tokens) -> usize {
        (1.0 / self.of(sizes, window)).ceil() as usize
    }
}

/// An earlier summary without its lists of files: they are carried over as data.
fn without_file_lists(summary: &str) -> String {
    let mut inside = false;
    let lines = summary.lines().filter(|line| match line.trim() {
        "<read-files>" | "<modified-files>" => {
            inside = true;
            false
        }
        "</read-files>" | "</modified-files>" => {
            inside = false;
            false
        }
        // A block that never ends hides nothing but its own lines.
        line => {
            inside &= !line.starts_with('#');
            !inside
        }
    });
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}
