//! The one way to a model: each call is bounded in time and money, tried again where that may help,
//! and recorded whatever becomes of it.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Summarizer, Summary, SummaryRequest, Timer, Tokens, Usage};
use futures_util::future::{Either, select};

use crate::answer::{Flaw, checked};
use crate::gauge::Gauge;
use crate::retry::{self, MAX_ATTEMPTS};
use crate::spend::Spend;
use crate::{Call, Job, Log, SAFETY_MARGIN};

/// Why a model gave no summary.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It refused, or failed as often as it may.
    Refused(Error),
    /// It did not answer in the time it had.
    Timeout,
    /// The time of the whole compaction is over.
    Deadline,
    /// The next call could cost more than may be spent.
    Spend,
    /// Its window leaves no room for history.
    TooSmall,
    /// Messages are too large for it.
    Oversized(usize),
    /// Nothing is left that it could be shown.
    Nothing,
    /// Its answers cannot be used.
    Unusable(Flaw),
}

impl Failure {
    /// Whether nobody is to be asked any more.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Refused(error) => error.kind() == ErrorKind::Cancelled,
            Self::Deadline => true,
            _ => false,
        }
    }

    /// Whether the model may do better with less to read.
    pub(crate) fn is_about_length(&self) -> bool {
        match self {
            Self::Refused(error) => error.kind() == ErrorKind::Overflow,
            Self::Unusable(flaw) => *flaw == Flaw::CutOff,
            _ => false,
        }
    }

    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Refused(error) => error.to_string(),
            Self::Timeout => "no answer in time".to_owned(),
            Self::Deadline => "the time for this compaction is over".to_owned(),
            Self::Spend => "the next call could exceed maxSpendUsd".to_owned(),
            Self::TooSmall => "its window leaves no room for history".to_owned(),
            Self::Oversized(1) => "1 message is past half of its window".to_owned(),
            Self::Oversized(n) => format!("{n} messages are past half of its window"),
            Self::Nothing => "every message is too large for it".to_owned(),
            Self::Unusable(flaw) => flaw.reason().to_owned(),
        }
    }
}

/// What may be spent of a compaction's time on one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    /// All that is left.
    All,
    /// Half of what is left: another model is waiting for its turn.
    Half,
}

/// The calls of one compaction.
pub(crate) struct Calls<'a> {
    timer: &'a dyn Timer,
    deadline: Duration,
    gauge: Gauge,
    seed: u64,
    // Parallel calls share it; it is never held across an await.
    state: Mutex<State<'a>>,
}

struct State<'a> {
    log: &'a mut Log,
    spend: Spend,
}

impl<'a> Calls<'a> {
    /// The clock starts now.
    pub(crate) fn new(job: &Job, timer: &'a dyn Timer, log: &'a mut Log) -> Self {
        let time = Duration::from_secs(u64::from(job.config.timeout_seconds));
        let ends = [job.said.first(), job.said.last()];
        let ids = ends.map(|said| said.map(|said| said.id.as_bytes()).unwrap_or_default());
        Self {
            timer,
            deadline: timer.elapsed().saturating_add(time),
            gauge: Gauge::for_models(job.counter),
            seed: retry::hash(&[ids[0], ids[1], &job.said.len().to_le_bytes()]),
            state: Mutex::new(State { log, spend: Spend::new(job.config.max_spend_usd) }),
        }
    }

    /// Tells the reader of the receipt something.
    pub(crate) fn note(&self, note: String) {
        self.state().log.notes.push(note);
    }

    /// Asks `model` until there is an answer that can be used, or no hope of one.
    pub(crate) async fn ask(
        &self,
        model: &dyn Summarizer,
        patience: Patience,
        task: &str,
        request: &SummaryRequest,
    ) -> Result<String, Failure> {
        let prompt = self.gauge.text(&request.system) + self.gauge.text(&request.prompt);
        if prompt + request.max_tokens + model.answer_overhead() > model.window() {
            return Err(Failure::TooSmall);
        }
        let mut request = request.clone();
        let mut is_told = false;
        let mut attempt = 1;
        loop {
            let left = self.deadline.saturating_sub(self.timer.elapsed());
            if left.is_zero() {
                return Err(Failure::Deadline);
            }
            let time = if patience == Patience::Half { left / 2 } else { left };
            let failure = match self.once(model, time, task, &request, prompt).await {
                Ok(text) => return Ok(text),
                Err(failure) => failure,
            };
            let asked = match &failure {
                Failure::Refused(error) if may_pass(error) => error.wait(),
                // Told what was wrong it may do better; a third time it hardly does. An answer that
                // was cut off will be cut off again: the caller asks for less.
                Failure::Unusable(flaw) if *flaw != Flaw::CutOff && !is_told => {
                    is_told = true;
                    let _ = write!(
                        request.prompt,
                        "\n\nYour last answer could not be used: {}. \
                        Write the summary itself, of the conversation above.",
                        flaw.reason()
                    );
                    None
                }
                _ => return Err(failure),
            };
            let wait = retry::wait(attempt, self.seed ^ retry::hash(&[task.as_bytes()]), asked);
            if attempt == MAX_ATTEMPTS || wait >= time {
                return Err(failure);
            }
            self.timer.sleep(wait).await;
            attempt += 1;
        }
    }

    /// One call.
    async fn once(
        &self,
        model: &dyn Summarizer,
        time: Duration,
        task: &str,
        request: &SummaryRequest,
        prompt: Tokens,
    ) -> Result<String, Failure> {
        // Counters run low on real text, so the estimate takes their margin.
        let estimate = model.cost(&Usage {
            input: prompt.scale(SAFETY_MARGIN).get(),
            output: (request.max_tokens + model.answer_overhead()).get(),
            ..Usage::default()
        });
        let mut open = self.open(model, task, estimate)?;
        let asked = self.timer.elapsed();
        let answer = select(model.summarize(request.clone()), self.timer.sleep(time)).await;
        match answer {
            Either::Left((Ok(answer), _)) => {
                let cost = answer.usage.as_ref().and_then(|usage| model.cost(usage));
                let checked = checked(&answer, &request.prompt);
                open.close(Ending::Answer(&answer, cost, checked.as_ref().err()));
                checked.map_err(Failure::Unusable)
            }
            Either::Left((Err(error), _)) => {
                open.close(Ending::Error(&error));
                Err(Failure::Refused(error))
            }
            Either::Right(_) => {
                let waited = self.timer.elapsed().saturating_sub(asked);
                let why = format!("no answer after {} s", waited.as_secs());
                open.close(Ending::Abandoned(&why));
                let over = self.timer.elapsed() >= self.deadline;
                Err(if over { Failure::Deadline } else { Failure::Timeout })
            }
        }
    }

    fn open<'c>(
        &'c self,
        model: &dyn Summarizer,
        task: &str,
        estimate: Option<f64>,
    ) -> Result<Open<'c, 'a>, Failure> {
        let mut state = self.state();
        if !state.spend.promise(estimate) {
            return Err(Failure::Spend);
        }
        if estimate.is_none() && state.spend.is_capped() {
            let note = format!("{}: no price is known, so no cap on spending", model.name());
            if !state.log.notes.contains(&note) {
                state.log.notes.push(note);
            }
        }
        drop(state);
        Ok(Open {
            calls: self,
            model: model.name().to_owned(),
            task: task.to_owned(),
            estimate,
            began: self.timer.elapsed(),
            is_closed: false,
        })
    }

    fn state(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the same call may succeed later. What a model cannot do, or cannot hold, it never will.
fn may_pass(error: &Error) -> bool {
    let is_lasting =
        matches!(error.kind(), ErrorKind::Overflow | ErrorKind::Capability | ErrorKind::Cancelled);
    error.is_retryable() && !is_lasting
}

/// A call under way. One that is dropped (a sibling failed, the caller went away) is recorded too.
struct Open<'c, 'a> {
    calls: &'c Calls<'a>,
    model: String,
    task: String,
    estimate: Option<f64>,
    began: Duration,
    is_closed: bool,
}

#[derive(Clone, Copy)]
enum Ending<'e> {
    Answer(&'e Summary, Option<f64>, Option<&'e Flaw>),
    Error(&'e Error),
    Abandoned(&'e str),
}

impl Open<'_, '_> {
    fn close(&mut self, ending: Ending<'_>) {
        self.is_closed = true;
        let millis = self.calls.timer.elapsed().saturating_sub(self.began).as_millis();
        let mut state = self.calls.state();
        let answered = matches!(ending, Ending::Answer(..));
        let (error, usage, cost_usd) = match ending {
            Ending::Answer(answer, cost, flaw) => {
                let cost = state.spend.settle(self.estimate, cost);
                (flaw.map(|flaw| flaw.reason().to_owned()), answer.usage, cost)
            }
            Ending::Error(error) => {
                let cost = match error.may_be_billed() {
                    true => state.spend.settle(self.estimate, None),
                    false => {
                        state.spend.release(self.estimate);
                        None
                    }
                };
                (Some(error.to_string()), None, cost)
            }
            Ending::Abandoned(why) => {
                (Some(why.to_owned()), None, state.spend.settle(self.estimate, None))
            }
        };
        state.log.cost_usd = state.spend.total();
        state.log.calls.push(Call {
            model: std::mem::take(&mut self.model),
            task: std::mem::take(&mut self.task),
            ok: error.is_none(),
            answered,
            error,
            usage,
            cost_usd,
            millis: u64::try_from(millis).unwrap_or(u64::MAX),
        });
    }
}

impl Drop for Open<'_, '_> {
    fn drop(&mut self) {
        if !self.is_closed {
            self.close(Ending::Abandoned("given up before it answered"));
        }
    }
}
