//! The single path to a model: each call is limited in time and cost, retried where that may help,
//! and always recorded.

use std::fmt::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ctx_core::{Error, ErrorKind, Summarizer, Summary, SummaryRequest, Timer, Tokens, Usage};
use futures_util::future::{Either, select};

use crate::answer::{Flaw, checked};
use crate::fnv1a::fnv1a;
use crate::{CallLog, SAFETY_MARGIN, SummaryCall, SummaryJob};

use super::gauge::Gauge;
use super::retry::{self, MAX_ATTEMPTS};
use super::spend::Spend;

/// Why a model produced no summary.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It refused, or failed in every attempt.
    Refused(Error),
    /// It did not answer within its time limit.
    Timeout,
    /// The time limit of the whole compaction has passed.
    Deadline,
    /// The next call could exceed the cost limit.
    Spend,
    /// Its context window has no budget for history.
    TooSmall,
    /// This many messages are too large for it.
    Oversized(usize),
    /// None of the messages can be sent to it.
    Nothing,
    /// Its answers are unusable.
    Unusable(Flaw),
}

impl Failure {
    /// Whether no further model should be called.
    pub(crate) fn is_final(&self) -> bool {
        match self {
            Self::Refused(error) => error.kind() == ErrorKind::Cancelled,
            Self::Deadline => true,
            _ => false,
        }
    }

    /// Whether the model may succeed with a shorter input.
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
            Self::Deadline => "the time limit of this compaction has passed".to_owned(),
            Self::Spend => "the next call could exceed maxSpendUsd".to_owned(),
            Self::TooSmall => "its context window is too small for any history".to_owned(),
            Self::Oversized(1) => "1 message exceeds half of its context window".to_owned(),
            Self::Oversized(n) => format!("{n} messages exceed half of its context window"),
            Self::Nothing => "every message is too large for it".to_owned(),
            Self::Unusable(flaw) => flaw.reason().to_owned(),
        }
    }
}

/// The share of a compaction's remaining time that one call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeShare {
    /// All of it.
    All,
    /// Half of it, because a fallback model may follow.
    Half,
}

/// The calls of one compaction.
pub(crate) struct Calls<'a> {
    timer: &'a dyn Timer,
    deadline: Duration,
    gauge: Gauge,
    seed: u64,
    // Shared by parallel calls; the lock is never held across an await.
    state: Mutex<CallState<'a>>,
}

struct CallState<'a> {
    log: &'a mut CallLog,
    spend: Spend,
}

impl<'a> Calls<'a> {
    /// Starts the clock.
    pub(crate) fn new(job: &SummaryJob, timer: &'a dyn Timer, log: &'a mut CallLog) -> Self {
        let time = Duration::from_secs(u64::from(job.config.timeout_seconds));
        let ends = [job.messages.first(), job.messages.last()];
        let ids = ends.map(|end| end.map(|message| message.id.as_bytes()).unwrap_or_default());
        Self {
            timer,
            deadline: timer.elapsed().saturating_add(time),
            gauge: Gauge::for_models(job.counter),
            seed: fnv1a(&[ids[0], ids[1], &job.messages.len().to_le_bytes()]),
            state: Mutex::new(CallState { log, spend: Spend::new(job.config.max_spend_usd) }),
        }
    }

    /// Adds a note to the receipt.
    pub(crate) fn note(&self, note: String) {
        self.state().log.notes.push(note);
    }

    /// Calls `model` until it gives a usable answer or a retry cannot help.
    pub(crate) async fn ask(
        &self,
        model: &dyn Summarizer,
        time_share: TimeShare,
        task: &str,
        request: &SummaryRequest,
    ) -> Result<String, Failure> {
        let prompt = self.gauge.text(&request.system) + self.gauge.text(&request.prompt);
        if prompt + request.max_tokens + model.answer_overhead() > model.window() {
            return Err(Failure::TooSmall);
        }
        let mut request = request.clone();
        let mut was_corrected = false;
        let mut attempt = 1;
        loop {
            let left = self.deadline.saturating_sub(self.timer.elapsed());
            if left.is_zero() {
                return Err(Failure::Deadline);
            }
            let time = if time_share == TimeShare::Half { left / 2 } else { left };
            let failure = match self.once(model, time, task, &request, prompt).await {
                Ok(text) => return Ok(text),
                Err(failure) => failure,
            };
            let asked = match &failure {
                Failure::Refused(error) if may_pass(error) => error.wait(),
                // If told what was wrong, a model may improve on the second attempt, rarely on the
                // third. A truncated answer would be truncated again, so the caller asks for less.
                Failure::Unusable(flaw) if *flaw != Flaw::CutOff && !was_corrected => {
                    was_corrected = true;
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
            let wait = retry::wait(attempt, self.seed ^ fnv1a(&[task.as_bytes()]), asked);
            if attempt == MAX_ATTEMPTS || wait >= time {
                return Err(failure);
            }
            self.timer.sleep(wait).await;
            attempt += 1;
        }
    }

    /// Makes one call.
    async fn once(
        &self,
        model: &dyn Summarizer,
        time: Duration,
        task: &str,
        request: &SummaryRequest,
        prompt: Tokens,
    ) -> Result<String, Failure> {
        // Counters run low on real text, so the estimate includes the margin.
        let estimate = model.cost(&Usage {
            input: prompt.scale(SAFETY_MARGIN).get(),
            output: (request.max_tokens + model.answer_overhead()).get(),
            ..Usage::default()
        });
        let mut open = self.open(model, task, estimate)?;
        let started = self.timer.elapsed();
        let answer = select(model.summarize(request.clone()), self.timer.sleep(time)).await;
        match answer {
            Either::Left((Ok(answer), _)) => {
                let cost = answer.usage.as_ref().and_then(|usage| model.cost(usage));
                let checked = checked(&answer, &request.prompt).map_err(Failure::Unusable);
                let flaw = checked.as_ref().err().map(Failure::reason);
                open.close(Some((&answer, cost)), flaw, true);
                checked
            }
            Either::Left((Err(error), _)) => {
                open.close(None, Some(error.to_string()), error.may_be_billed());
                Err(Failure::Refused(error))
            }
            Either::Right(_) => {
                let waited = self.timer.elapsed().saturating_sub(started);
                open.close(None, Some(format!("no answer after {} s", waited.as_secs())), true);
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
    ) -> Result<OpenCall<'c, 'a>, Failure> {
        let mut state = self.state();
        if !state.spend.promise(estimate) {
            return Err(Failure::Spend);
        }
        if estimate.is_none() && state.spend.is_capped() {
            let note = format!("{}: unknown price, maxSpendUsd does not apply", model.name());
            if !state.log.notes.contains(&note) {
                state.log.notes.push(note);
            }
        }
        drop(state);
        Ok(OpenCall {
            calls: self,
            model: model.name().to_owned(),
            task: task.to_owned(),
            estimate,
            began: self.timer.elapsed(),
            is_closed: false,
        })
    }

    fn state(&self) -> MutexGuard<'_, CallState<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether the same call may succeed later. One that is unsupported or too long never will.
fn may_pass(error: &Error) -> bool {
    let is_lasting =
        matches!(error.kind(), ErrorKind::Overflow | ErrorKind::Capability | ErrorKind::Cancelled);
    error.is_retryable() && !is_lasting
}

/// A call in progress. One that is dropped (sibling failed, caller cancelled) is recorded too.
struct OpenCall<'c, 'a> {
    calls: &'c Calls<'a>,
    model: String,
    task: String,
    estimate: Option<f64>,
    began: Duration,
    is_closed: bool,
}

impl OpenCall<'_, '_> {
    /// Records the answer with its cost, or why there is none. A call without a known cost counts
    /// as estimated.
    fn close(
        &mut self,
        answer: Option<(&Summary, Option<f64>)>,
        error: Option<String>,
        may_be_billed: bool,
    ) {
        self.is_closed = true;
        let millis = self.calls.timer.elapsed().saturating_sub(self.began).as_millis();
        let mut state = self.calls.state();
        let cost = answer.and_then(|(_, cost)| cost);
        let cost_usd = match may_be_billed {
            true => state.spend.settle(self.estimate, cost),
            false => state.spend.release(self.estimate),
        };
        state.log.cost_usd = state.spend.total();
        state.log.calls.push(SummaryCall {
            model: std::mem::take(&mut self.model),
            task: std::mem::take(&mut self.task),
            ok: error.is_none(),
            answered: answer.is_some(),
            error,
            usage: answer.and_then(|(answer, _)| answer.usage),
            cost_usd,
            millis: u64::try_from(millis).unwrap_or(u64::MAX),
        });
    }
}

impl Drop for OpenCall<'_, '_> {
    fn drop(&mut self) {
        if !self.is_closed {
            self.close(None, Some("cancelled before it answered".to_owned()), true);
        }
    }
}
