//! The cost of calling an engine that is not built in.
//!
//! ```sh
//! cargo xtask plugins --release
//! cargo bench -p ctx-engine-registry --features plugins
//! ```
//!
//! `json` is a lower bound for a call that sends all messages in both directions: two `serde_json`
//! encodes and two decodes, from and to the host's typed messages, 400 messages of 885 KiB in
//! total. `whole` is that call, from the view before `assemble` to the view after it: the engine
//! gets all messages with their contents, answers with every message in full, and the answer is
//! checked and applied. `plan` is the first call of a session to an engine that answers with edits;
//! `next` is one more turn of a session that the engine knows; `open` measures loading, `hello`,
//! and the first answer.
//!
//! First, `json` and `whole` are measured alternately, so that noise affects both equally. The
//! ratios of their medians and of their minimums are printed.

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stderr)] // macro; a bench may panic

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use ctx_config::Config;
use ctx_core::{
    AssembleRequest, ContextEngine, ContextView, Counter, EngineState, Entry, Message, RawJson,
    Role, Services, Timestamp, TokenLedger, Tokens, ToolCall, TurnContext,
};
use ctx_engine_registry::find::Search;
use ctx_engine_registry::{BuildContext, Registry};

/// A window in which everything fits: only the round trip is measured.
const WINDOW: Tokens = Tokens(4_000_000);

fn message(n: usize, bytes: usize) -> Message {
    let text = format!("line {n} of \"a story\"\n\twith quotes, and 中文 too. ").repeat(64);
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let text = &text[..end];
    match n % 4 {
        0 => Message::text(Role::User, text),
        1 => Message::new(
            Role::Assistant,
            vec![
                ctx_core::Block::text(text),
                ctx_core::Block::ToolCall(ToolCall::new(
                    format!("call-{n}"),
                    "read",
                    RawJson::from_text(r#"{"path":"src/lib.rs"}"#),
                )),
            ],
        ),
        2 => Message::tool_result(format!("call-{}", n - 1), text),
        _ => Message::text(Role::Assistant, text),
    }
}

fn entries(messages: usize, bytes: usize) -> Vec<Arc<Entry>> {
    let entry = |n| Arc::new(Entry::in_memory(format!("{n:08x}"), message(n, bytes)));
    (0..messages).map(entry).collect()
}

fn view(entries: &[Arc<Entry>]) -> ContextView {
    let ledger = TokenLedger::new(Counter::default(), WINDOW, Tokens(8_000));
    let mut view = ContextView::new(ledger);
    for entry in entries {
        view.append(entry.clone()).unwrap();
    }
    view
}

fn plugins() -> Option<PathBuf> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target =
        target.unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target"));
    let plugins = target.join("plugins").canonicalize().ok()?;
    plugins.join("chaos/chaos.toml").is_file().then_some(plugins)
}

/// An engine of `target/plugins`, in this process or in its own process.
fn engine(plugins: &Path, id: &str, config: &str) -> Arc<dyn ContextEngine> {
    let trust = if id.ends_with("-process") { "process" } else { "in-process" };
    let config = Config::parse(&format!(
        "{{ plugins: {{ slots: {{ contextEngine: '{id}' }}, \
           engines: {{ '{id}': {{ trust: '{trust}', config: {config} }} }} }} }}"
    ))
    .unwrap();
    let search = Search::default().with_list(plugins.as_os_str());
    let registry = Registry::collect().unwrap().with_search(search);
    let services = Services::default();
    let context = BuildContext {
        config: &config,
        services: &services,
        window: WINDOW.into(),
        registry: &registry,
    };
    registry.build_engine(None, &context).unwrap()
}

fn assemble(engine: &dyn ContextEngine, session: &str, view: ContextView) -> ContextView {
    let turn = TurnContext::at(Timestamp(0));
    let request = AssembleRequest { session_id: session.to_owned(), view, turn };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let view = runtime.block_on(engine.assemble(request)).unwrap().into_view();
    let health = engine.health().unwrap();
    assert_eq!(health.state, EngineState::Ok, "{health:?}");
    view
}

/// The baseline: encodes and decodes the messages twice.
fn round_trip(messages: &[Arc<Message>]) -> Vec<Message> {
    let there = serde_json::to_vec(black_box(messages)).unwrap();
    let read: Vec<Message> = serde_json::from_slice(&there).unwrap();
    let back = serde_json::to_vec(&read).unwrap();
    serde_json::from_slice(&back).unwrap()
}

/// Measures the engines alternately. Each run uses a new view, so that all rows are sent again.
fn print_ratios(messages: &[Arc<Message>], whole: &[Arc<dyn ContextEngine>], large: &[Arc<Entry>]) {
    fn time<T>(work: impl FnOnce() -> T) -> Duration {
        let start = Instant::now();
        let done = work();
        let took = start.elapsed();
        drop(done);
        took
    }
    let mut times = vec![Vec::new(); 1 + whole.len()];
    for _ in 0..300 {
        times[0].push(time(|| round_trip(messages)));
        for (engine, times) in whole.iter().zip(&mut times[1..]) {
            let view = view(large);
            times.push(time(|| assemble(&**engine, "s", view)));
        }
    }
    for times in &mut times {
        times.sort_unstable();
    }
    for (name, of) in ["json", "dylib", "process"].iter().zip(&times) {
        let (median, least) = (of[of.len() / 2], of[0]);
        let ratio = |at: usize| of[at].as_secs_f64() / times[0][at].as_secs_f64();
        eprintln!(
            "{name:8} median {median:?}, {:.2} of json; minimum {least:?}, {:.2} of json",
            ratio(of.len() / 2),
            ratio(0),
        );
    }
}

/// Each call is for a session that the engine has not seen.
fn first_call(c: &mut Criterion, name: &str, engine: &dyn ContextEngine, entries: &[Arc<Entry>]) {
    let mut session = 0;
    c.bench_function(name, |b| {
        b.iter_batched(
            || {
                session += 1;
                (session.to_string(), view(entries))
            },
            |(session, view)| assemble(engine, &session, view),
            BatchSize::PerIteration,
        );
    });
}

fn engines(c: &mut Criterion) {
    let Some(plugins) = plugins() else {
        eprintln!("skipped: no plugins in target/plugins; run `cargo xtask plugins --release`");
        return;
    };
    let large = entries(400, 1_824);
    let messages: Vec<_> = large.iter().map(|entry| entry.message().unwrap()).collect();
    let json = serde_json::to_vec(&messages).unwrap();
    eprintln!("{} messages, {} KiB", messages.len(), json.len() / 1024);
    let whole = ["chaos", "chaos-process"].map(|id| engine(&plugins, id, "{ whole: true }"));
    print_ratios(&messages, &whole, &large);
    c.bench_function("json/two encodes, two decodes", |b| b.iter(|| round_trip(&messages)));
    for (carrier, whole) in ["dylib", "process"].iter().zip(&whole) {
        c.bench_function(&format!("{carrier}/whole"), |b| {
            b.iter_batched(
                || view(&large),
                |view| assemble(&**whole, "s", view),
                BatchSize::PerIteration,
            );
        });
    }
    let long = entries(2_000, 400);
    for (carrier, id) in [("dylib", "sliding-window"), ("process", "sliding-window-process")] {
        let planning = engine(&plugins, id, "{}");
        first_call(c, &format!("{carrier}/plan, 2,000 messages"), &*planning, &long);
        for messages in [500, 2_000] {
            let mut known = Some(assemble(&*planning, "known", view(&long[..messages])));
            known.as_mut().unwrap().finish().unwrap();
            let mut n = long.len();
            c.bench_function(&format!("{carrier}/next turn after {messages}"), |b| {
                b.iter(|| {
                    n += 4;
                    let mut view = known.take().unwrap();
                    for entry in entries_from(n) {
                        view.append(entry).unwrap();
                    }
                    let mut view = assemble(&*planning, "known", view);
                    view.finish().unwrap();
                    known = Some(view);
                });
            });
        }
        c.bench_function(&format!("{carrier}/open to first answer"), |b| {
            b.iter_batched(
                || view(&long[..10]),
                |view| assemble(&*engine(&plugins, id, "{}"), "s", view),
                BatchSize::PerIteration,
            );
        });
    }
}

/// Two messages of a conversation, starting at `n`.
fn entries_from(n: usize) -> [Arc<Entry>; 2] {
    [n, n + 3].map(|n| Arc::new(Entry::in_memory(format!("{n:08x}"), message(n, 200))))
}

criterion_group!(benches, engines);
criterion_main!(benches);
