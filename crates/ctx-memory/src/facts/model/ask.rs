//! Extracts facts by models, with a deadline and a budget; falls back to rules.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use ctx_core::{Chars, Role, Summarizer, Summary, SummaryModels, SummaryRequest, Tokens, Usage};
use futures_util::future::{Either, select};

use super::prompt::{SYSTEM, Shown, prompt};
use super::read::read;
use crate::facts::{
    DailyBudget, Extraction, Fact, SOURCES_MAX, SourceMessage, SpendGuard, find_facts,
};
use ctx_redact::Redactor;
use ctx_text::without_injected;

/// The maximum length of an answer.
const ANSWER: Tokens = Tokens(4_000);

/// The number of characters shown of one message, from its beginning and its end.
const MESSAGE_MAX: u32 = 6_000;

/// The number of characters shown in one call, however large the window.
const CALL_MAX: u32 = 60_000;

/// The deadline of a run: less than any host waits for it.
const DEADLINE: Duration = Duration::from_secs(90);

/// Extracts facts by a model. Falls back to [`find_facts`] if no model answers in time, the daily budget
/// is spent, or there is no model.
///
/// A model's answer is untrusted: items are refused and reported if they cannot be read, delete
/// facts, hold secrets, or contain numbers, paths or names that are not in the messages.
pub struct ModelExtractor {
    models: SummaryModels,
    cap: DailyBudget,
    spending: Mutex<SpendGuard>,
}

ctx_core::partial_debug!(ModelExtractor, it, models = it.models);

impl ModelExtractor {
    /// Returns an extractor that uses the first of these models that answers.
    #[must_use]
    pub fn new(models: SummaryModels, cap: DailyBudget) -> Self {
        Self { models, cap, spending: Mutex::new(SpendGuard::in_memory()) }
    }

    /// Records each call there before it is made.
    #[must_use]
    pub(crate) fn with_spending(self, spending: SpendGuard) -> Self {
        Self { spending: Mutex::new(spending), ..self }
    }

    /// Returns the facts in these messages of one session, in order. `known` are the current facts
    /// most similar to them; the model may refer to these.
    pub async fn extract(&self, said: &[SourceMessage<'_>], known: &[Fact]) -> Extraction {
        let begun = self.models.timer.elapsed();
        let mut run = Extraction::default();
        let room = self.call_chars();
        let shown = shown(said);
        let mut rest = shown.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(fitting(rest, room));
            rest = later;
            let answer = match room {
                0 => None,
                _ => self.ask(now, known, begun, &mut run).await,
            };
            let Some(answer) = answer else {
                let said: Vec<SourceMessage<'_>> =
                    now.iter().map(|(_, said, _)| said.clone()).collect();
                run.candidates.extend(find_facts(&said));
                continue;
            };
            let read = read(&answer.text, now);
            if read.is_prose {
                run.warn(
                    "the model answered in prose instead of a list of facts; nothing was taken",
                );
            }
            if answer.cut_off {
                run.warn("the model's list of facts was cut off; the complete facts were used");
            }
            run.proposals.extend(read.proposals);
            run.rejected.extend(read.rejected);
        }
        run
    }

    /// Calls the models in turn and returns the first answer.
    async fn ask(
        &self,
        shown: &[Shown<'_>],
        known: &[Fact],
        begun: Duration,
        run: &mut Extraction,
    ) -> Option<Summary> {
        let text = prompt(shown, known);
        let spending = || self.spending.lock().unwrap_or_else(PoisonError::into_inner);
        for model in &self.models.chain {
            let request = SummaryRequest {
                system: SYSTEM.to_owned(),
                prompt: text.clone(),
                max_tokens: ANSWER,
            };
            let estimate = price(model.as_ref(), &expected(&text));
            if !spending().budget().allows(&self.cap, estimate) {
                run.warn("the daily budget for extracting facts is spent; rules are used instead");
                return None;
            }
            let passed = self.models.timer.elapsed().saturating_sub(begun);
            let left = DEADLINE.saturating_sub(passed);
            if left.is_zero() {
                run.warn("extracting facts took too long; rules are used instead");
                return None;
            }
            let recorded = spending().expect(estimate);
            if let Err(e) = recorded {
                run.warn(format!(
                    "cannot record the cost of a model call; rules are used instead: {e}"
                ));
                return None;
            }
            let answer = select(model.summarize(request), self.models.timer.sleep(left)).await;
            let (paid, answer) = match answer {
                Either::Left((Ok(answer), _)) => {
                    let usd = answer.usage.as_ref().map_or(estimate, |u| price(model.as_ref(), u));
                    (usd, Ok(answer))
                }
                Either::Left((Err(e), _)) => {
                    (if e.may_be_billed() { estimate } else { 0.0 }, Err(e.to_string()))
                }
                // The request may still be answered and charged.
                Either::Right(_) => (estimate, Err("no answer in time".to_owned())),
            };
            let settled = spending().settle(estimate, paid);
            if let Err(e) = settled {
                run.warn(format!("the cost of a model call was not recorded: {e}"));
            }
            run.spent.calls += 1;
            run.spent.usd += paid;
            match answer {
                Ok(answer) => return Some(answer),
                Err(e) => run.warn(format!("{} found no facts: {e}", model.name())),
            }
        }
        None
    }

    /// Returns the number of characters a call may show.
    fn call_chars(&self) -> u32 {
        let windows = self.models.chain.iter().map(|model| {
            let taken = ANSWER + model.answer_overhead() + Tokens(2_000);
            // Two characters per token is enough for any language.
            model.window().0.saturating_sub(taken.0).saturating_mul(2)
        });
        windows.min().unwrap_or(0).min(CALL_MAX)
    }
}

/// Returns the messages that may be shown: from the user or the agent, without secrets, and without
/// recalled or injected text.
fn shown<'a>(said: &[SourceMessage<'a>]) -> Vec<Shown<'a>> {
    said.iter()
        .filter(|one| matches!(one.role, Role::User | Role::Assistant | Role::Other(_)))
        .map(|one| (one, without_injected(one.text)))
        .filter(|(_, own)| !own.is_empty())
        .enumerate()
        .map(|(n, (one, own))| {
            (n + 1, one.clone(), Redactor::builtin().redact(&ends(&own)).text.into_owned())
        })
        .collect()
}

/// Truncates a long text in its middle.
fn ends(text: &str) -> String {
    if Chars::of(text) <= Chars(MESSAGE_MAX) {
        return text.to_owned();
    }
    let head = ctx_core::text::head(text, Chars(MESSAGE_MAX / 3 * 2));
    let tail = ctx_core::text::tail(text, Chars(MESSAGE_MAX / 3));
    format!("{head}\n[...]\n{tail}")
}

/// Returns how many messages fit in one call: at least one, and at most [`SOURCES_MAX`].
fn fitting(shown: &[Shown<'_>], room: u32) -> usize {
    let mut taken = 0u32;
    let fits = shown.iter().take_while(|(_, _, text)| {
        taken = taken.saturating_add(Chars::of(text).0);
        taken <= room
    });
    fits.count().clamp(1, SOURCES_MAX).min(shown.len())
}

fn expected(prompt: &str) -> Usage {
    Usage { input: u64::from(Chars::of(prompt).0 / 3), output: 1_000, ..Usage::default() }
}

/// Returns the price of a call; zero if unknown, in which case the number of calls is the limit.
fn price(model: &dyn Summarizer, usage: &Usage) -> f64 {
    model.cost(usage).filter(|usd| usd.is_finite()).unwrap_or(0.0).max(0.0)
}
