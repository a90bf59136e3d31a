//! Tries the models in order.

mod call_budget;
mod calls;
mod gauge;
mod prompt_messages;
mod retry;
mod spend;
mod strategy;
mod trim;

use std::collections::VecDeque;

use ctx_core::{SummaryModels, Tokens};

use crate::prompts::{Prompts, Subject};
use crate::{CallLog, Rung, SummaryDraft, SummaryJob};
use ctx_extract::{ExtractInput, extract};
use ctx_facts::FactLedger;

use calls::{Calls, Failure, TimeShare};
use strategy::{Input, ModelSummary, SummaryWriter};

/// No model is called for a summary below this size.
const LEAST_ASKED: Tokens = Tokens(128);

/// The beginning of a branch summary (pi).
const BRANCH_PREAMBLE: &str = "The user explored a different conversation branch before returning \
    here.\nSummary of that exploration:\n\n";

/// Tries one model after another for a summary, within the job's limits of time and cost.
///
/// Every model first gets all of the history, with up to three attempts per call where a retry may
/// help. Models for which single messages or the whole history were too large are then tried once
/// more without those messages. `None` if no model gave a usable summary; the extractive summariser
/// is next. The draft fits [`SummaryJob::summary_budget`]; it is not audited.
pub async fn ladder(
    job: &SummaryJob,
    models: &SummaryModels,
    log: &mut CallLog,
) -> Option<SummaryDraft> {
    climb(job, Subject::History, models, log).await
}

/// Summarises a branch of the conversation that the user left, under pi's preamble.
///
/// No layer calls it, as a request contains one branch only. It is used by [`branch_summary`].
///
/// ```
/// use std::sync::Arc;
///
/// use ctx_compaction::{CallLog, Config, SummaryJob, branch_ladder};
/// use ctx_facts::CitedMessage;
/// use ctx_core::{Counter, Message, Role, SummaryModels, Tokens};
/// use ctx_testkit::{ScriptedSummarizer, VirtualTimer};
///
/// let message = Message::text(Role::User, "try it with a thread for each session");
/// let said = CitedMessage { id: "0000002a".into(), message: message.into(), pinned: false };
/// let job = SummaryJob {
///     config: Arc::new(Config::default()),
///     messages: [said].into(),
///     sizes: Vec::new(),
///     groups: Vec::new(),
///     turn_start: None,
///     previous: None,
///     summary_budget: Tokens(1_000),
///     counter: Counter::default(),
///     focus: None,
///     instructions: Default::default(),
/// };
/// // A model that echoes its prompt, and a clock that does not wait.
/// let timer = VirtualTimer::default();
/// let chain = vec![Arc::new(ScriptedSummarizer::new("local/model")) as _];
/// let models = SummaryModels { chain, timer: Arc::new(timer.clone()) };
///
/// let draft = timer.run(branch_ladder(&job, &models, &mut CallLog::default())).unwrap();
/// assert!(draft.text.starts_with("The user explored a different conversation branch"));
/// assert!(draft.text.contains("a thread for each session [e:0000002a]"));
/// ```
pub async fn branch_ladder(
    job: &SummaryJob,
    models: &SummaryModels,
    log: &mut CallLog,
) -> Option<SummaryDraft> {
    let preamble = job.counter.text(BRANCH_PREAMBLE);
    let job = SummaryJob { summary_budget: job.summary_budget - preamble, ..job.clone() };
    let draft = climb(&job, Subject::Branch, models, log).await?;
    let text = format!("{BRANCH_PREAMBLE}{}{}", draft.text, draft.notes);
    Some(SummaryDraft { text, notes: String::new(), ..draft })
}

/// Summarises the messages left behind, for a host that moves a session to another branch. If no
/// model writes the summary, it is extracted.
pub async fn branch_summary(job: &SummaryJob, models: Option<&SummaryModels>) -> String {
    let mut log = CallLog::default();
    if let Some(models) = models
        && let Some(draft) = branch_ladder(job, models, &mut log).await
    {
        return draft.text;
    }
    let text = extract(&ExtractInput {
        state: None,
        messages: &job.messages,
        facts: &FactLedger::of(&job.messages).facts(),
        previous: None,
        turn_start: None,
        focus: None,
        budget: job.summary_budget - job.counter.text(BRANCH_PREAMBLE),
        counter: &job.counter,
    });
    format!("{BRANCH_PREAMBLE}{text}")
}

async fn climb(
    job: &SummaryJob,
    subject: Subject,
    models: &SummaryModels,
    log: &mut CallLog,
) -> Option<SummaryDraft> {
    if job.summary_budget < LEAST_ASKED {
        let budget = job.summary_budget;
        log.notes.push(format!("no model was called: {budget} tokens are too few for a summary"));
        return None;
    }
    let prompts = Prompts::of(job);
    let calls = Calls::new(job, &*models.timer, log);
    let mut round: VecDeque<_> = models.chain.iter().map(|model| (model, Input::All)).collect();
    let mut again = VecDeque::new();
    while let Some((model, input)) = round.pop_front() {
        let time_share = if round.is_empty() { TimeShare::All } else { TimeShare::Half };
        match attempt(job, subject, &prompts, &calls, (&**model, time_share), input).await {
            Ok(draft) => return Some(draft),
            Err(failure) if failure.is_final() => return None,
            Err(_) if input != Input::All => {}
            Err(Failure::Oversized(_)) => again.push_back((model, Input::WithoutOversized)),
            Err(failure) if failure.is_about_length() => again.push_back((model, Input::Less)),
            Err(_) => {}
        }
        if round.is_empty() {
            std::mem::swap(&mut round, &mut again);
        }
    }
    None
}

async fn attempt(
    job: &SummaryJob,
    subject: Subject,
    prompts: &Prompts,
    calls: &Calls<'_>,
    asked: (&dyn ctx_core::Summarizer, TimeShare),
    input: Input,
) -> Result<SummaryDraft, Failure> {
    let write =
        async || SummaryWriter::new(job, subject, prompts, calls, asked, input)?.summarize().await;
    let written = write().await;
    let model = asked.0.name().to_owned();
    if let Err(failure) = &written {
        calls.note(format!("{model}: {}", failure.reason()));
    }
    let ModelSummary { text, notes, omitted } = written?;
    let rung = if omitted == 0 { Rung::Model } else { Rung::WithoutOversized };
    Ok(SummaryDraft { text, notes, rung, model })
}

/// Returns the text that replaces history without a summary.
pub(crate) fn summary_unavailable(messages: usize, oversized: usize) -> String {
    format!("Context contained {messages} messages ({oversized} oversized). Summary unavailable.")
}
