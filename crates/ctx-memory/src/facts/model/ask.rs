//! Asking models, in time and within the budget; rules do the rest.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::{
    Chars, Result, Role, Summarizer, Summary, SummaryModels, SummaryRequest, Tokens, Usage,
};
use futures_util::future::{Either, select};

use super::prompt::{SYSTEM, prompt};
use super::read::read;
use crate::Redactor;
use crate::facts::{
    Budget, Cap, Extracted, Extractor, Fact, IsSecret, Rules, SOURCES_MAX, Said, Spent, is_injected,
};

/// The longest answer that is wanted.
const ANSWER: Tokens = Tokens(4_000);

/// So much of one message is shown, its beginning and its end.
const MESSAGE_MAX: u32 = 6_000;

/// So much is shown in one call, however large the window.
const CALL_MAX: u32 = 60_000;

/// The time that a run is given unless the host says otherwise.
const DEADLINE: Duration = Duration::from_secs(120);

/// Finds facts by a model, as fallback by [`Rules`]: where no model answers in time, where the
/// day's budget is spent, and where there is none.
///
/// What a model answers is data of an unknown hand: items that cannot be read, that delete, that
/// hold secrets, or whose numbers, paths and names were not said, are refused and told of.
pub struct ModelExtractor {
    models: SummaryModels,
    rules: Rules,
    is_secret: IsSecret,
    cap: Cap,
    deadline: Duration,
    budget: Mutex<Budget>,
    accounts: Option<Arc<dyn Accounts>>,
}

impl std::fmt::Debug for ModelExtractor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ModelExtractor").field("models", &self.models).finish_non_exhaustive()
    }
}

/// Where it is kept what calls cost, so that one that is never heard of again is paid for too.
pub(crate) trait Accounts: Send + Sync {
    /// Notes a call that is about to be made, and what is expected of its price; one that cannot be
    /// noted is not made.
    fn expect(&self, usd: f64) -> Result<()>;

    /// Notes what the call that was expected to cost so much did cost.
    fn settle(&self, expected: f64, paid: f64) -> Result<()>;
}

/// A message as it is shown: its number, itself, its text.
type Shown<'a> = (usize, Said<'a>, String);

impl ModelExtractor {
    /// An extractor that asks these models, the first that answers. `budget` is what was spent
    /// [today](Budget::at); whoever has it adds what a run [spent](Extracted::spent) and keeps it.
    #[must_use]
    pub fn new(models: SummaryModels, budget: Budget, cap: Cap) -> Self {
        let is_secret: IsSecret = Arc::new(|text| Redactor::builtin().redact(text).found > 0);
        let rules = Rules::new(is_secret.clone());
        let budget = Mutex::new(budget);
        Self { models, rules, is_secret, cap, deadline: DEADLINE, budget, accounts: None }
    }

    /// The time for a whole run. Default: 120 s.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Has each call noted before it is made.
    #[must_use]
    pub(crate) fn with_accounts(self, accounts: Arc<dyn Accounts>) -> Self {
        Self { accounts: Some(accounts), ..self }
    }

    fn spend(&self, spent: Spent, total: &mut Spent) {
        self.budget.lock().unwrap_or_else(PoisonError::into_inner).add(spent);
        total.calls += spent.calls;
        total.usd += spent.usd;
    }

    /// Asks the models in turn, and says what the first one answered.
    async fn ask(&self, shown: &[Shown<'_>], known: &[Fact], run: &mut Run) -> Option<Summary> {
        let borrowed: Vec<_> =
            shown.iter().map(|(number, said, text)| (*number, *said, text.as_str())).collect();
        let text = prompt(&borrowed, known);
        for model in &self.models.chain {
            let request = SummaryRequest {
                system: SYSTEM.to_owned(),
                prompt: text.clone(),
                max_tokens: ANSWER,
            };
            let estimate = price(model.as_ref(), &expected(&text));
            let budget = *self.budget.lock().unwrap_or_else(PoisonError::into_inner);
            if !budget.allows(&self.cap, estimate) {
                run.warn("the day's budget for finding facts is spent; rules do the rest");
                return None;
            }
            let left =
                self.deadline.saturating_sub(self.models.timer.elapsed().saturating_sub(run.begun));
            if left.is_zero() {
                run.warn("finding facts took too long; rules do the rest");
                return None;
            }
            if let Some(Err(e)) = self.accounts.as_ref().map(|accounts| accounts.expect(estimate)) {
                run.warn(format!("what a model costs cannot be noted; rules do the rest: {e}"));
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
                // What was asked may be answered yet, and paid for.
                Either::Right(_) => (estimate, Err("no answer in time".to_owned())),
            };
            let settled = self.accounts.as_ref().map(|accounts| accounts.settle(estimate, paid));
            if let Some(Err(e)) = settled {
                run.warn(format!("what a model did cost is not noted: {e}"));
            }
            self.spend(Spent { calls: 1, usd: paid }, &mut run.found.spent);
            match answer {
                Ok(answer) => return Some(answer),
                Err(e) => run.warn(format!("{} found no facts: {e}", model.name())),
            }
        }
        None
    }

    /// As much as a call may show.
    fn call_chars(&self) -> u32 {
        let windows = self.models.chain.iter().map(|model| {
            let taken = ANSWER + model.answer_overhead() + Tokens(2_000);
            // Two characters a token leaves room for any language.
            model.window().0.saturating_sub(taken.0).saturating_mul(2)
        });
        windows.min().unwrap_or(0).min(CALL_MAX)
    }
}

/// What a run has found so far.
struct Run {
    begun: Duration,
    found: Extracted,
}

impl Run {
    fn warn(&mut self, warning: impl Into<String>) {
        let warning = warning.into();
        if !self.found.warnings.contains(&warning) {
            self.found.warnings.push(warning);
        }
    }
}

#[async_trait]
impl Extractor for ModelExtractor {
    async fn extract(&self, said: &[Said<'_>], known: &[Fact]) -> Result<Extracted> {
        let begun = self.models.timer.elapsed();
        let mut run = Run { begun, found: Extracted::default() };
        let room = self.call_chars();
        let shown = shown(said);
        let mut rest = shown.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(fitting(rest, room));
            rest = later;
            let answer = match room {
                0 => None,
                _ => self.ask(now, known, &mut run).await,
            };
            let Some(answer) = answer else {
                let said: Vec<Said<'_>> = now.iter().map(|(_, said, _)| *said).collect();
                run.found.candidates.extend(self.rules.find(&said));
                continue;
            };
            let borrowed: Vec<_> =
                now.iter().map(|(number, said, text)| (*number, *said, text.as_str())).collect();
            let read = read(&answer.text, &borrowed, self.is_secret.as_ref());
            if read.is_prose {
                run.warn(
                    "the model answered in prose instead of a list of facts; nothing was taken",
                );
            }
            if answer.cut_off {
                run.warn("the model's list of facts was cut off; what came of it was taken");
            }
            run.found.proposals.extend(read.proposals);
            run.found.refused.extend(read.refused);
        }
        Ok(run.found)
    }
}

/// The messages that may be shown: said by the person or the agent, without secrets, and nothing
/// that was recalled or injected.
fn shown<'a>(said: &[Said<'a>]) -> Vec<Shown<'a>> {
    said.iter()
        .filter(|one| matches!(one.role, Role::User | Role::Assistant | Role::Other(_)))
        .filter(|one| !one.text.trim().is_empty() && !is_injected(one.text))
        .enumerate()
        .map(|(n, one)| {
            (n + 1, *one, Redactor::builtin().redact(&ends(one.text)).text.into_owned())
        })
        .collect()
}

/// The beginning and the end of a text that is too long.
fn ends(text: &str) -> String {
    if Chars::of(text) <= Chars(MESSAGE_MAX) {
        return text.to_owned();
    }
    let head = ctx_core::text::head(text, Chars(MESSAGE_MAX / 3 * 2));
    let tail = ctx_core::text::tail(text, Chars(MESSAGE_MAX / 3));
    format!("{head}\n[...]\n{tail}")
}

/// How many messages one call shows: one at least, and no more than a fact can name as sources.
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

/// What a call costs; nothing where no price is known: the number of calls bounds it.
fn price(model: &dyn Summarizer, usage: &Usage) -> f64 {
    model.cost(usage).filter(|usd| usd.is_finite()).unwrap_or(0.0).max(0.0)
}
