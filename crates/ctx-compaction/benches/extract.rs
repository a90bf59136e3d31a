//! Measures the extractive summary of a session of 200,000 tokens.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use ctx_core::{Block, Counter, Message, RawJson, Role, Tokens, ToolCall};
use ctx_extract::{ExtractInput, extract};
use ctx_facts::{CitedMessage, FactKind, LedgerFacts, RequiredFact};

/// Adds the messages of turn `n`; no two turns are the same.
fn turn(n: usize, prose: usize, out: &mut Vec<Message>) {
    out.push(Message::text(
        Role::User,
        format!("please fix part {n} of `src/part_{n}.rs`. Never touch `lib_{n}.rs`. 不要改接口。"),
    ));
    for (step, (name, arguments)) in [
        ("read", format!(r#"{{"path":"src/part_{n}.rs"}}"#)),
        ("edit", format!(r#"{{"path":"src/part_{n}.rs","newText":"let x = {n};"}}"#)),
        ("bash", format!(r#"{{"command":"cd /srv && cargo test part_{n} 2>&1 | tail -5"}}"#)),
        ("bash", format!(r#"{{"command":"git commit -am 'part {n}'"}}"#)),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("call_{n}_{step}");
        let arguments = RawJson::from_text(arguments);
        let call = ToolCall::new(id.as_str(), name, arguments);
        let words = Block::text(format!("Now let me look at step {step} of part {n}."));
        out.push(Message::new(Role::Assistant, vec![words, Block::ToolCall(call)]));
        let mut result = String::new();
        for line in 0..60 {
            let _ = writeln!(result, "{line:>4}    let value_{line} = compute({n}, {line});");
        }
        result.push_str(match step {
            2 => "test result: ok. 12 passed; 0 failed",
            3 => "[main 1a2b3c4] part",
            _ => "",
        });
        out.push(Message::tool_result(id, result));
    }
    let mut answer = format!("Fixed part {n}: the root cause was a stale cache in `part_{n}`.\n\n");
    for line in 0..prose {
        let _ = writeln!(
            answer,
            "The loader of part {n}.{line} reads `config_{line}.toml` because the watcher needs it."
        );
    }
    answer.push_str("\nNext steps:\n- write the docs\n- tag a release\n");
    out.push(Message::text(Role::Assistant, answer));
}

/// A session of about 200,000 tokens: mostly tool results, or mostly prose.
fn session(prose: usize) -> Vec<CitedMessage> {
    let (mut messages, mut tokens, mut n) = (Vec::new(), 0, 0);
    while tokens < 200_000 {
        let from = messages.len();
        turn(n, prose, &mut messages);
        let fresh = messages.get(from..).unwrap_or_default();
        tokens += fresh.iter().map(|m| Counter::default().message(m).get()).sum::<u64>();
        n += 1;
    }
    let said = messages.into_iter().enumerate().map(|(n, message)| CitedMessage {
        id: format!("{n:08x}").into(),
        message: Arc::new(message),
        pinned: false,
    });
    said.collect()
}

fn run(criterion: &mut Criterion) {
    for (name, prose) in [("work", 4), ("talk", 200)] {
        let said = session(prose);
        let required: Vec<RequiredFact> = (0..500)
            .map(|n| RequiredFact {
                kind: FactKind::ALL[n % FactKind::ALL.len()],
                text: format!("part_{n}"),
                entry: said[n * 7 % said.len()].id.clone(),
                weight: 0.5,
                by_user: false,
                order: 0,
            })
            .collect();
        let counter = Counter::default();
        let job = ExtractInput {
            state: None,
            messages: &said,
            facts: &LedgerFacts { required: required.clone(), ..LedgerFacts::default() },
            previous: None,
            turn_start: None,
            focus: Some("the cache"),
            budget: Tokens(8_000),
            counter: &counter,
        };
        criterion.bench_function(&format!("extract/{name}"), |b| {
            b.iter(|| extract(black_box(&job)));
        });
    }
}

criterion_group!(benches, run);
criterion_main!(benches);
