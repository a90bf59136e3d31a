//! Random sessions, and the simplest possible model of the required contents of a request.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use ctx_core::{
    BashRun, Block, Counter, CounterKind, Entry, Image, Message, RawJson, Role, TokenLedger,
    Tokens, ToolCall, ToolResult,
};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

/// One step of a session.
#[derive(Clone)]
pub(crate) enum Step {
    Append(Box<Message>),
    Finish,
    Calibrate(u64),
    Drop(usize),
    Trim(usize),
    Insert(usize),
    Pin(usize),
}

/// Short, to make a failing session readable.
impl fmt::Debug for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Append(message) => f.write_str(&outline_of(message)),
            Self::Finish => write!(f, "finish"),
            Self::Calibrate(percent) => write!(f, "calibrate {percent} %"),
            Self::Drop(at) => write!(f, "drop {at}"),
            Self::Trim(at) => write!(f, "trim {at}"),
            Self::Insert(at) => write!(f, "insert {at}"),
            Self::Pin(at) => write!(f, "pin {at}"),
        }
    }
}

fn outline_of(message: &Message) -> String {
    let blocks: Vec<String> = message.blocks.iter().map(outline).collect();
    format!("{} [ {} ]", message.role, blocks.join(" "))
}

/// Fails with the outlines of both.
pub(crate) fn assert_same(left: &[Arc<Message>], right: &[Arc<Message>], what: &str) {
    let outlines = |messages: &[Arc<Message>]| {
        let all: Vec<String> = messages.iter().map(|m| outline_of(m)).collect();
        all.join("\n  ")
    };
    assert!(left == right, "{what}:\n  {}\nand\n  {}", outlines(left), outlines(right));
}

fn outline(block: &Block) -> String {
    match block {
        Block::Text { text } => format!("text({})", text.len()),
        Block::Thinking { thinking, .. } => format!("thinking({})", thinking.len()),
        Block::ToolCall(call) => format!("call {}({})", call.id, call.arguments.as_str().len()),
        Block::ToolResult(result) => {
            let content: Vec<_> = result.content.iter().map(outline).collect();
            format!("result {}({})", result.call_id, content.join(" "))
        }
        Block::Image(_) => "image".into(),
        Block::Bash(run) => format!("bash({}, {})", run.output.len(), run.exclude_from_context),
        Block::Opaque { json } => format!("opaque({})", json.as_str().len()),
    }
}

pub(crate) fn text() -> impl Strategy<Value = String> {
    let unit = select(vec!["a", " ", "\n", "字", "ம", "😀", "word ", "\u{0}", "👩‍👩‍👧‍👦", "{\"k\": 1}"]);
    let count = prop_oneof![
        3 => 0..4usize,
        6 => 1..400usize,
        2 => 400..6_000usize,
        1 => 6_000..30_000usize,
    ];
    (unit, count).prop_map(|(unit, count)| unit.repeat(count.min(40_000 / unit.len())))
}

fn id() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "c", "d", "e", "f", "g", "h"]).prop_map(str::to_owned)
}

pub(crate) fn call(id: impl AsRef<str>, arguments: &str) -> Block {
    Block::ToolCall(ToolCall::new(id.as_ref(), "read_file", RawJson::from_text(arguments)))
}

pub(crate) fn result(id: impl AsRef<str>, content: Vec<Block>) -> Block {
    Block::ToolResult(ToolResult {
        call_id: id.as_ref().into(),
        name: None,
        content,
        is_error: false,
    })
}

fn plain_block() -> impl Strategy<Value = Block> {
    prop_oneof![
        6 => text().prop_map(Block::text),
        1 => Just(Block::Image(Image {
            mime_type: "image/png".into(),
            data: "aGk=".into(),
            is_url: false,
        })),
        1 => text().prop_map(|t| Block::Opaque { json: RawJson::from_text(serde_json::json!(t).to_string()) }),
    ]
}

fn call_block() -> impl Strategy<Value = Block> {
    let arguments = prop_oneof![
        Just("{}".to_owned()),
        Just("[ 1.50,   null ]".to_owned()),
        text().prop_map(|t| serde_json::json!({ "path": t, "deep": [{ "text": t }] }).to_string()),
        (1..3_000usize).prop_map(|n| format!("{}{}", "[".repeat(n), "]".repeat(n))),
    ];
    (id(), arguments).prop_map(|(id, arguments)| call(id, &arguments))
}

fn result_block() -> impl Strategy<Value = Block> {
    (id(), vec(plain_block(), 0..3)).prop_map(|(id, content)| result(id, content))
}

fn thinking() -> impl Strategy<Value = Block> {
    text().prop_map(|thinking| Block::Thinking { thinking, signature: Some("proof".into()) })
}

fn assistant_block() -> impl Strategy<Value = Block> {
    prop_oneof![2 => plain_block(), 1 => thinking(), 4 => call_block()]
}

/// A message that could be in a transcript, well-formed or not.
pub(crate) fn message() -> impl Strategy<Value = Message> {
    let role = select(vec![
        Role::Custom,
        Role::CompactionSummary,
        Role::BranchSummary,
        Role::Other("narrator".into()),
    ]);
    let bash = (text(), any::<bool>()).prop_map(|(output, exclude_from_context)| BashRun {
        command: "make".into(),
        output,
        exclude_from_context,
        ..BashRun::default()
    });
    prop_oneof![
        4 => vec(plain_block(), 0..3).prop_map(|b| Message::new(Role::User, b)),
        5 => vec(assistant_block(), 0..4).prop_map(|b| Message::new(Role::Assistant, b)),
        5 => vec(result_block(), 1..3).prop_map(|b| Message::new(Role::ToolResult, b)),
        2 => vec(prop_oneof![result_block(), plain_block()], 1..4)
            .prop_map(|b| Message::new(Role::User, b)),
        1 => text().prop_map(|t| Message::text(Role::System, t)),
        1 => bash.prop_map(|run| Message::new(Role::BashExecution, vec![Block::Bash(run)])),
        1 => (role, vec(plain_block(), 0..2)).prop_map(|(role, b)| Message::new(role, b)),
        // No real agent sends these; they must not cause errors.
        1 => vec(prop_oneof![call_block(), result_block(), plain_block()], 0..5)
            .prop_map(|b| Message::new(Role::Assistant, b)),
        1 => vec(text().prop_map(Block::text), 0..200).prop_map(|b| Message::new(Role::User, b)),
    ]
}

/// Messages of a well-behaved agent: calls, and most of their results.
fn turn() -> impl Strategy<Value = Vec<Message>> {
    let results = vec((vec(plain_block(), 0..2), 0..10u8), 1..6);
    (text(), results, any::<bool>(), any::<u32>()).prop_map(|(ask, results, together, salt)| {
        let ids: Vec<String> = (0..results.len()).map(|n| format!("{salt:x}-{n}")).collect();
        let calls = ids.iter().map(|id| call(id, "{\"n\": 1}")).collect();
        let answers = ids.iter().zip(results).filter(|(_, (_, luck))| *luck > 0);
        let answers: Vec<Block> = answers.map(|(id, (content, _))| result(id, content)).collect();
        let mut turn = vec![Message::text(Role::User, ask), Message::new(Role::Assistant, calls)];
        match together {
            true if !answers.is_empty() => turn.push(Message::new(Role::User, answers)),
            _ => turn.extend(answers.into_iter().map(|b| Message::new(Role::ToolResult, vec![b]))),
        }
        turn
    })
}

/// Some steps of a session.
pub(crate) fn steps() -> impl Strategy<Value = Vec<Step>> {
    let at = || 0..64usize;
    let step = prop_oneof![
        10 => message().prop_map(|m| vec![Step::Append(Box::new(m))]),
        3 => turn().prop_map(|turn| turn.into_iter().map(|m| Step::Append(Box::new(m))).collect()),
        4 => Just(vec![Step::Finish]),
        1 => (50..300u64).prop_map(|percent| vec![Step::Calibrate(percent)]),
        2 => at().prop_map(|at| vec![Step::Drop(at)]),
        2 => at().prop_map(|at| vec![Step::Trim(at)]),
        1 => at().prop_map(|at| vec![Step::Insert(at)]),
        1 => at().prop_map(|at| vec![Step::Pin(at)]),
    ];
    vec(step, 1..40).prop_map(|steps| steps.into_iter().flatten().collect())
}

/// A budget: any counter, any surcharge, any window that the guard accepts.
pub(crate) fn ledger() -> impl Strategy<Value = TokenLedger> {
    let window = prop_oneof![3 => Just(16_000u32), 2 => 16_000..200_000u32];
    (
        select(CounterKind::ALL),
        (select(&[0u32, 50]), any::<bool>()),
        window,
        0..40_000u32,
        0..3_000u32,
    )
        .prop_map(|(kind, (call_tokens, free_user_images), window, reserve, fixed)| {
            let counter = Counter { kind, call_tokens, free_user_images };
            TokenLedger::new(counter, Tokens(window), Tokens(reserve))
                .with_system(Tokens(fixed / 2))
                .with_tools(Tokens(fixed / 2))
        })
}

/// The required contents of a request, derived from the appended messages alone.
#[derive(Debug, Default)]
pub(crate) struct Expected {
    pub(crate) newest_user: Option<String>,
    pub(crate) calls_in_progress: Vec<String>,
    pub(crate) pinned: BTreeSet<String>,
    answering: bool,
}

impl Expected {
    pub(crate) fn append(&mut self, entry: &Entry) {
        let message = entry.message().unwrap();
        if !message.in_model_context() {
            return;
        }
        let mut has_content = message.blocks.iter().filter(|b| !matches!(b, Block::ToolResult(_)));
        if message.role == Role::User && has_content.next().is_some() {
            self.newest_user = Some(entry.id().to_string());
        }
        if matches!(message.role, Role::System | Role::CompactionSummary) {
            self.pinned.insert(entry.id().to_string());
        }
        let answering = message.role == Role::Assistant;
        if answering {
            if !self.answering {
                self.calls_in_progress.clear();
            }
            self.calls_in_progress.extend(message.tool_calls().map(|c| c.id.to_string()));
        }
        self.answering = answering;
    }
}

pub(crate) fn entry(n: usize, message: Message) -> Arc<Entry> {
    Arc::new(Entry::in_memory(format!("{n:08x}"), message))
}

/// Add a named test for each failure found here. With `$CTX_TEST_CASES` set to `all` all cases run,
/// otherwise a quarter.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let is_all = std::env::var("CTX_TEST_CASES").is_ok_and(|cases| cases == "all");
    let cases = if is_all { cases } else { cases.div_ceil(4) };
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(cases) }
}
