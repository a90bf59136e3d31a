//! The ladder of models.

use ctx_core::{SummaryModels, Tokens};

use crate::calls::{Calls, Failure, Patience};
use crate::prompts::{Prompts, Subject};
use crate::strategy::{Desk, Input};
use crate::{Draft, Extract, Job, Log, Rung, extract, facts};

/// A shorter summary than this is not worth a model's while.
const LEAST_ASKED: Tokens = Tokens(128);

/// What a branch summary begins with (pi).
const BRANCH_PREAMBLE: &str = "The user explored a different conversation branch before returning \
    here.\nSummary of that exploration:\n\n";

/// Asks one model after another for a summary, inside the job's time and money.
///
/// Every model is asked for all of the history first, each call up to three times where trying
/// again may help. Models for which messages are too large, or for which all of it was, are then
/// asked once more without these. `None`: no model gave a summary that can be used, and the
/// extractive summariser is next. The draft is inside [`Job::summary_budget`]; it has not been
/// audited.
pub async fn ladder(job: &Job, models: &SummaryModels, log: &mut Log) -> Option<Draft> {
    climb(job, Subject::History, models, log).await
}

/// The same for a branch of the conversation that the user left: what was found there, headed by
/// pi's words for it.
///
/// No layer calls it: a request sees one branch only. It is for [`branch_summary`].
///
/// ```
/// use std::sync::Arc;
///
/// use ctx_compaction::{Config, Job, Log, Said, branch_ladder};
/// use ctx_core::{Counter, Message, Role, SummaryModels, Tokens};
/// use ctx_testkit::{ScriptedSummarizer, VirtualTimer};
///
/// let message = Message::text(Role::User, "try it with a thread for each session");
/// let said = Said { id: "0000002a".into(), message: message.into(), pinned: false };
/// let job = Job {
///     config: Arc::new(Config::default()),
///     said: [said].into(),
///     sizes: Vec::new(),
///     groups: Vec::new(),
///     turn_start: None,
///     previous: None,
///     summary_budget: Tokens(1_000),
///     counter: Counter::default(),
///     focus: None,
///     instructions: Default::default(),
/// };
/// // A model that tells what it was told, and a clock that does not wait.
/// let timer = VirtualTimer::default();
/// let chain = vec![Arc::new(ScriptedSummarizer::new("local/model")) as _];
/// let models = SummaryModels { chain, timer: Arc::new(timer.clone()) };
///
/// let draft = timer.run(branch_ladder(&job, &models, &mut Log::default())).unwrap();
/// assert!(draft.text.starts_with("The user explored a different conversation branch"));
/// assert!(draft.text.contains("a thread for each session [e:0000002a]"));
/// ```
pub async fn branch_ladder(job: &Job, models: &SummaryModels, log: &mut Log) -> Option<Draft> {
    let preamble = job.counter.text(BRANCH_PREAMBLE);
    let job = Job { summary_budget: job.summary_budget - preamble, ..job.clone() };
    let draft = climb(&job, Subject::Branch, models, log).await?;
    let text = format!("{BRANCH_PREAMBLE}{}{}", draft.text, draft.notes);
    Some(Draft { text, notes: String::new(), ..draft })
}

/// A summary of the messages that are left behind, for the host that moves a session from one branch to
/// another: where no model writes it, it is extracted.
pub async fn branch_summary(job: &Job, models: Option<&SummaryModels>) -> String {
    let mut log = Log::default();
    if let Some(models) = models
        && let Some(draft) = branch_ladder(job, models, &mut log).await
    {
        return draft.text;
    }
    let text = extract(&Extract {
        said: &job.said,
        facts: &facts(&job.said),
        previous: None,
        turn_start: None,
        focus: None,
        budget: job.summary_budget - job.counter.text(BRANCH_PREAMBLE),
        counter: &job.counter,
    });
    format!("{BRANCH_PREAMBLE}{text}")
}

async fn climb(
    job: &Job,
    subject: Subject,
    models: &SummaryModels,
    log: &mut Log,
) -> Option<Draft> {
    if job.summary_budget < LEAST_ASKED {
        let room = job.summary_budget;
        log.notes.push(format!("no model was asked: {room} tokens are too few for a summary"));
        return None;
    }
    let prompts = Prompts::of(job);
    let calls = Calls::new(job, &*models.timer, log);
    let last = models.chain.len().saturating_sub(1);
    let mut again = Vec::new();
    for (at, model) in models.chain.iter().enumerate() {
        let patience = if at < last { Patience::Half } else { Patience::All };
        let asked = (&**model, patience);
        match attempt(job, subject, &prompts, &calls, asked, Input::All).await {
            Ok(draft) => return Some(draft),
            Err(failure) if failure.is_final() => return None,
            Err(Failure::Oversized(_)) => again.push((model, Input::WithoutOversized)),
            Err(failure) if failure.is_about_length() => again.push((model, Input::Less)),
            Err(_) => {}
        }
    }
    let last = again.len().saturating_sub(1);
    for (at, (model, input)) in again.into_iter().enumerate() {
        let patience = if at < last { Patience::Half } else { Patience::All };
        match attempt(job, subject, &prompts, &calls, (&**model, patience), input).await {
            Ok(draft) => return Some(draft),
            Err(failure) if failure.is_final() => return None,
            Err(_) => {}
        }
    }
    None
}

async fn attempt(
    job: &Job,
    subject: Subject,
    prompts: &Prompts,
    calls: &Calls<'_>,
    asked: (&dyn ctx_core::Summarizer, Patience),
    input: Input,
) -> Result<Draft, Failure> {
    let written = match Desk::new(job, subject, prompts, calls, asked, input) {
        Ok(desk) => desk.summarize().await,
        Err(failure) => Err(failure),
    };
    let model = asked.0.name().to_owned();
    match written {
        Ok(written) => {
            let rung = match written.omitted {
                0 => Rung::Model,
                _ => Rung::WithoutOversized,
            };
            Ok(Draft { text: written.text, notes: written.notes, rung, model })
        }
        Err(failure) => {
            calls.note(format!("{model}: {}", failure.reason()));
            Err(failure)
        }
    }
}

/// What stands for history of which no summary could be made.
#[must_use]
pub fn summary_unavailable(messages: usize, oversized: usize) -> String {
    format!("Context contained {messages} messages ({oversized} oversized). Summary unavailable.")
}
