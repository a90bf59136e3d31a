//! Speed of the counters, and cost of a request. `cargo bench -p ctx-core --features o200k`

#![allow(missing_docs, clippy::unwrap_used)] // for the macro; a bench may panic

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use ctx_core::{
    Block, ContextView, Counter, CounterKind, Entry, Message, RawJson, Role, TokenLedger, Tokens,
    ToolCall,
};

const PROSE: &str = "The quick brown fox reads src/main.rs, finds 3 errors in it, and mends two. ";

/// The `n`th message of an agent's session: a question, a tool call, its result, or a report.
fn message(n: usize, tokens: usize) -> Message {
    let text = PROSE.repeat(tokens * 4 / PROSE.len() + 1);
    let id = format!("call-{}", n / 4);
    match n % 4 {
        0 => Message::text(Role::User, text),
        1 => {
            let arguments = RawJson::from_text(format!("{{\"text\":\"{text}\"}}"));
            let (name, spelling) = ("write".to_owned(), Default::default());
            let call = ToolCall { id: id.into(), name, arguments, spelling };
            Message::new(Role::Assistant, vec![Block::ToolCall(call)])
        }
        2 => Message::tool_result(id, text),
        _ => Message::text(Role::Assistant, text),
    }
}

fn entries(count: usize, tokens: usize) -> Vec<Arc<Entry>> {
    (0..count).map(|n| Arc::new(Entry::in_memory(format!("{n:08x}"), message(n, tokens)))).collect()
}

fn view(window: u32) -> ContextView {
    let ledger = TokenLedger::new(Counter::default(), Tokens(window), Tokens(window / 10));
    ContextView::new(ledger)
}

fn filled(window: u32, entries: &[Arc<Entry>]) -> ContextView {
    let mut view = view(window);
    for entry in entries {
        view.append(entry.clone()).unwrap();
    }
    view.finish().unwrap();
    view
}

fn counting(c: &mut Criterion) {
    let mut group = c.benchmark_group("count");
    for (script, text) in
        [("ascii", PROSE.repeat(14_000)), ("chinese", "上下文窗口。".repeat(58_000))]
    {
        group.throughput(Throughput::Bytes(text.len() as u64));
        for kind in CounterKind::ALL {
            let counter = Counter::new(*kind);
            group.bench_function(format!("{kind}/{script}"), |b| {
                b.iter(|| counter.text(black_box(&text)));
            });
        }
    }
    group.finish();
}

/// Requests over 1,000 messages of 200,000 tokens.
fn requests(c: &mut Criterion) {
    let mut group = c.benchmark_group("1,000 messages");
    for (name, window) in [("all fit", 400_000), ("half fit", 100_000)] {
        group.bench_function(format!("cold, {name}"), |b| {
            // New entries each time, because entries cache their counts.
            b.iter_batched(|| entries(1_000, 200), |e| filled(window, &e), BatchSize::LargeInput);
        });
        let warm = entries(1_000, 200);
        group.bench_function(format!("counted before, {name}"), |b| {
            b.iter(|| filled(window, &warm));
        });
        group.bench_function(format!("one more turn, {name}"), |b| {
            let turn = entries(1_004, 200).split_off(1_000);
            let open = || (filled(window, &warm), turn.clone());
            b.iter_batched(
                open,
                |(mut view, turn)| {
                    for entry in turn {
                        view.append(entry).unwrap();
                    }
                    view.finish().unwrap();
                    view
                },
                BatchSize::LargeInput,
            );
        });
    }
    group.finish();
}

/// A session with one request after every message. Twice the messages must take twice the time.
fn sessions(c: &mut Criterion) {
    let mut group = c.benchmark_group("a request after every message");
    group.sample_size(10);
    for count in [25_000, 50_000, 100_000] {
        let entries = entries(count, 50);
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(format!("{count}"), |b| {
            b.iter(|| {
                let mut view = view(100_000);
                for entry in &entries {
                    view.append(entry.clone()).unwrap();
                    view.finish().unwrap();
                }
                view.total()
            });
        });
    }
    group.finish();
}

criterion_group!(benches, counting, requests, sessions);
criterion_main!(benches);
