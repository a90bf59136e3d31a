//! The ladder of models, with scripted models and a virtual clock.

mod everything;
mod faults;
mod hostile;
mod limits;
mod strategies;

use std::sync::Arc;

use ctx_compaction::{CallLog, Config, SummaryDraft, SummaryJob, ladder};
use ctx_core::{Counter, Message, Role, Summarizer, SummaryModels, Tokens};
use ctx_facts::{CitedMessage, PreviousSummary};
use ctx_testkit::{ScriptedSummarizer, VirtualTimer};

/// A summary that a model may write of [`job`].
const GOOD: &str =
    "## Goal\n- Fix the retry loop in src/http.rs [e:00000000]\n\n## Next Steps\n1. Run the tests";

fn said(messages: impl IntoIterator<Item = Message>) -> Arc<[CitedMessage]> {
    let said = messages.into_iter().enumerate().map(|(n, message)| CitedMessage {
        id: format!("{n:08x}").into(),
        message: Arc::new(message),
        pinned: false,
    });
    said.collect()
}

fn job_of(config: Config, messages: impl IntoIterator<Item = Message>) -> SummaryJob {
    let messages = said(messages);
    let counter = Counter::default();
    SummaryJob {
        config: Arc::new(config),
        sizes: messages.iter().map(|said| counter.message(&said.message)).collect(),
        groups: Vec::new(),
        messages,
        turn_start: None,
        previous: None,
        summary_budget: Tokens(1_000),
        counter,
        focus: None,
        instructions: Default::default(),
    }
}

/// Eight messages about a retry loop.
fn job(config: Config) -> SummaryJob {
    job_of(config, talk(8))
}

fn talk(len: usize) -> Vec<Message> {
    (0..len)
        .map(|n| match n % 2 {
            0 => Message::text(Role::User, format!("fix the retry loop in src/http.rs, step {n}")),
            _ => {
                Message::text(Role::Assistant, format!("fixed the loop, the tests pass, step {n}"))
            }
        })
        .collect()
}

fn previous(text: &str) -> Option<PreviousSummary> {
    let tokens = Counter::default().text(text);
    Some(PreviousSummary { text: text.to_owned(), tokens, ..Default::default() })
}

/// Runs the ladder to its end. The result fits the job's budget, whatever the models do.
fn climb(
    job: &SummaryJob,
    chain: &[&Arc<ScriptedSummarizer>],
) -> (Option<SummaryDraft>, CallLog, VirtualTimer) {
    let timer = VirtualTimer::default();
    let (draft, log) = climb_by(job, chain, &timer);
    (draft, log, timer)
}

fn climb_by(
    job: &SummaryJob,
    chain: &[&Arc<ScriptedSummarizer>],
    timer: &VirtualTimer,
) -> (Option<SummaryDraft>, CallLog) {
    let chain = chain.iter().map(|model| Arc::clone(model) as Arc<dyn Summarizer>).collect();
    let models = SummaryModels { chain, timer: Arc::new(timer.clone()) };
    let mut log = CallLog::default();
    let draft = timer.run(ladder(job, &models, &mut log));
    if let Some(draft) = &draft {
        let whole = format!("{}{}", draft.text, draft.notes);
        assert!(job.counter.text(&whole) <= job.summary_budget, "{whole}");
    }
    (draft, log)
}

fn model(name: &str) -> ScriptedSummarizer {
    ScriptedSummarizer::new(name)
}

/// The calls as `model: task`, or `model: task!` if it failed.
fn calls(log: &CallLog) -> Vec<String> {
    let mark = |ok| if ok { "" } else { "!" };
    log.calls.iter().map(|c| format!("{}: {}{}", c.model, c.task, mark(c.ok))).collect()
}

fn assert_send<T: Send>(value: T) -> T {
    value
}

#[test]
fn the_ladder_can_be_awaited_on_any_thread() {
    let job = job(Config::default());
    let timer = VirtualTimer::default();
    let models = SummaryModels { chain: Vec::new(), timer: Arc::new(timer.clone()) };
    let mut log = CallLog::default();
    assert_eq!(timer.run(assert_send(ladder(&job, &models, &mut log))), None);
}
