//! Random sessions.

use std::sync::Arc;

use ctx_core::{
    BashRun, Block, ContextView, Counter, CounterKind, Entry, Message, RawJson, Role, TokenLedger,
    Tokens, ToolCall,
};
use proptest::prelude::*;

/// One step of a session; sizes are in characters.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    User(usize),
    Assistant(usize),
    /// Parallel calls, with the size of each result; the last result may be this many messages
    /// late.
    Calls(Vec<usize>, usize),
    /// A call without a result.
    Unanswered,
    /// A result without a call.
    Orphan(usize),
    Bash(usize),
    Custom(usize),
    Branch(usize),
    System(usize),
    Summary(usize),
}

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) steps: Vec<Step>,
    pub(crate) window: u32,
    pub(crate) reserve: u32,
    pub(crate) fixed: u32,
    pub(crate) counter: CounterKind,
    /// The tokens that the provider reports for 1,000 of the counter's.
    pub(crate) reported: u64,
    /// Every n-th message is pinned.
    pub(crate) pin_each: Option<usize>,
}

fn step() -> impl Strategy<Value = Step> {
    let size = || prop_oneof![6 => 0..400usize, 3 => 400..6_000usize, 1 => 6_000..60_000usize];
    prop_oneof![
        4 => size().prop_map(Step::User),
        4 => size().prop_map(Step::Assistant),
        6 => (prop::collection::vec(size(), 1..5), prop_oneof![9 => Just(0usize), 1 => 1..9usize])
            .prop_map(|(sizes, late)| Step::Calls(sizes, late)),
        1 => Just(Step::Unanswered),
        1 => size().prop_map(Step::Orphan),
        1 => size().prop_map(Step::Bash),
        1 => size().prop_map(Step::Custom),
        1 => size().prop_map(Step::Branch),
        1 => (0..400usize).prop_map(Step::System),
        1 => size().prop_map(Step::Summary),
    ]
}

pub(crate) fn session() -> impl Strategy<Value = Session> {
    (
        prop::collection::vec(step(), 0..40),
        prop_oneof![Just(4_000u32), Just(8_000), Just(16_000), Just(64_000), Just(200_000)],
        prop_oneof![Just(0u32), Just(500), Just(20_000), Just(1_000_000)],
        0..25u32,
        prop_oneof![Just(CounterKind::Chars4), Just(CounterKind::Chars3), Just(CounterKind::Cjk)],
        prop_oneof![Just(1_000u64), Just(700), Just(1_300), Just(9_000)],
        prop_oneof![3 => Just(None), 1 => (2..9usize).prop_map(Some)],
    )
        .prop_map(|(mut steps, window, reserve, fixed, counter, reported, pin_each)| {
            // Summaries replace what was before everything else.
            steps.sort_by_key(|step| !matches!(step, Step::Summary(_)));
            let fixed = window / 100 * fixed;
            Session { steps, window, reserve, fixed, counter, reported, pin_each }
        })
}

impl Session {
    pub(crate) fn view(&self) -> ContextView {
        let counter = Counter::new(self.counter);
        let mut ledger = TokenLedger::new(counter, Tokens(self.window), Tokens(self.reserve))
            .with_system(Tokens(self.fixed / 2))
            .with_tools(Tokens(self.fixed / 2));
        ledger.calibrate(self.reported, 1_000);
        let mut view = ContextView::new(ledger);
        for (n, message) in self.messages().into_iter().enumerate() {
            view.append(Arc::new(Entry::in_memory(format!("{n:08x}"), message))).unwrap();
            if self.pin_each.is_some_and(|each| n % each == 0) && !view.is_empty() {
                view.pin(view.len() - 1, "test", "test");
            }
        }
        view
    }

    fn messages(&self) -> Vec<Message> {
        let mut out: Vec<Message> = Vec::new();
        let mut late: Vec<(usize, Message)> = Vec::new();
        for (at, step) in self.steps.iter().enumerate() {
            match step {
                Step::User(size) => out.push(Message::text(Role::User, text(*size))),
                Step::Assistant(size) => out.push(Message::text(Role::Assistant, text(*size))),
                Step::Calls(sizes, delay) => {
                    let id = |n: usize| format!("{at}-{n}");
                    out.push(calls((0..sizes.len()).map(id)));
                    for (n, size) in sizes.iter().enumerate() {
                        let result = Message::tool_result(id(n), text(*size));
                        match *delay {
                            delay if delay > 0 && n + 1 == sizes.len() => {
                                late.push((at + delay, result));
                            }
                            _ => out.push(result),
                        }
                    }
                }
                Step::Unanswered => out.push(calls([format!("{at}-x")].into_iter())),
                Step::Orphan(size) => {
                    out.push(Message::tool_result(format!("{at}-o"), text(*size)));
                }
                Step::Bash(size) => {
                    let (command, output) = ("make".into(), text(*size));
                    let run = BashRun { command, output, ..BashRun::default() };
                    out.push(Message::new(Role::BashExecution, vec![Block::Bash(run)]));
                }
                Step::Custom(size) => out.push(Message::text(Role::Custom, text(*size))),
                Step::Branch(size) => out.push(Message::text(Role::BranchSummary, text(*size))),
                Step::System(size) => out.push(Message::text(Role::System, text(*size))),
                Step::Summary(size) => {
                    out.push(Message::text(Role::CompactionSummary, text(*size)));
                }
            }
            late.retain(|(due, result)| {
                let is_due = *due <= at;
                if is_due {
                    out.push(result.clone());
                }
                !is_due
            });
        }
        out
    }
}

fn calls(ids: impl Iterator<Item = String>) -> Message {
    let call = |id: String| {
        Block::ToolCall(ToolCall::new(id, "read", RawJson::from_text(r#"{"path":"src/a.rs"}"#)))
    };
    Message::new(Role::Assistant, ids.map(call).collect())
}

fn text(chars: usize) -> String {
    "word 上下 ".chars().cycle().take(chars).collect()
}
