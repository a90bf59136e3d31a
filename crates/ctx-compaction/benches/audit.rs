//! Measures planning the compaction of a session of 200,000 tokens, finding its required facts, and
//! auditing and repairing a summary. `cargo bench -p ctx-compaction --bench audit`

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)] // Made by a macro; a bench fails by panicking.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use ctx_compaction::{
    Config, History, PlanLimits, PlanOutcome, RepairOptions, SourceIndex, Ungrounded, audit, plan,
    repair,
};
use ctx_core::{
    Block, ContextView, Counter, Entry, Message, RawJson, Role, TokenLedger, Tokens, ToolCall,
};
use ctx_extract::{ExtractInput, extract};
use ctx_facts::{CitedMessage, FactLedger, required_facts};

/// One turn of an agent: it gets a request, reads, edits, tests and reports.
fn turn(n: usize) -> Vec<Message> {
    let mut out = vec![Message::text(
        Role::User,
        format!(
            "Please fix `part_{n}` in src/part_{n}.rs. Never touch lib/api_{n}.rs, it took 1{n} ms and \
             fails with HTTP 50{}; see https://bugs.example.org/{n} and #{n}. 不要改接口。",
            n % 5
        ),
    )];
    for step in 0..4 {
        let arguments = match step {
            0 => format!(r#"{{"path":"src/part_{n}.rs"}}"#),
            1 => format!(r#"{{"path":"src/part_{n}.rs","newText":"let x = {n};\nlet y = x;"}}"#),
            2 => format!(r#"{{"command":"cd /srv/app && cargo test part_{n} 2>&1 | tail -5"}}"#),
            _ => format!(r#"{{"command":"git commit -am 'part {n}'"}}"#),
        };
        let name = if step < 2 { "edit" } else { "bash" };
        let id = format!("call_{n}_{step}");
        let call = ToolCall::new(id.as_str(), name, RawJson::from_text(arguments));
        out.push(Message::new(Role::Assistant, vec![Block::ToolCall(call)]));
        let mut result = String::new();
        for line in 0..60 {
            let _ = writeln!(
                result,
                "{line:>4}  let value_{line} = compute({n}, {line}); // a_b/{n}.rs"
            );
        }
        let _ = writeln!(result, "error[E0{n:03}]: mismatched types\n  --> src/part_{n}.rs:{n}:5");
        out.push(Message::tool_result(id, result));
    }
    out.push(Message::text(
        Role::Assistant,
        format!(
            "Fixed `part_{n}` in src/part_{n}.rs:{n}. We chose a map instead of a list because it is \
             faster: 2{n} ms. The loader reads `config_{n}.toml` now.\n\n- [ ] docs/part_{n}.md\n"
        ),
    ));
    out
}

fn entries() -> Vec<Arc<Entry>> {
    let (mut out, mut tokens, mut n) = (Vec::new(), 0, 0);
    while tokens < 200_000 {
        for message in turn(n) {
            tokens += Counter::default().message(&message).get();
            out.push(Arc::new(Entry::in_memory(format!("{:08x}", out.len()), message)));
        }
        n += 1;
    }
    out
}

fn run(criterion: &mut Criterion) {
    let ledger = TokenLedger::new(Counter::default(), Tokens(200_000), Tokens(20_000));
    let mut view = ContextView::new(ledger);
    for entry in entries() {
        view.append(entry).unwrap();
    }
    let config = Config::default();
    let history = History::of(&view).unwrap();
    let PlanOutcome::Compact(planned) = plan(&history, &config, PlanLimits::default()).unwrap()
    else {
        panic!("200,000 tokens do not fit");
    };
    let said: Vec<CitedMessage> = history.read(0..planned.cut);
    let facts = FactLedger::of(&said).facts();
    let found = facts.required.clone();
    let grounds = SourceIndex::of(&said, None, &[]);
    let counter = Counter::default();
    let job = ExtractInput {
        state: None,
        messages: &said,
        facts: &facts,
        previous: None,
        turn_start: None,
        focus: None,
        budget: planned.summary_budget,
        counter: &counter,
    };
    // A good draft with unsupported claims.
    let mut draft = extract(&job);
    draft.push_str(
        "\n- It also changed src/invented.rs in 987 ms.\n- See https://nowhere.example/x\n",
    );
    println!("{} facts, a draft of {} tokens", found.len(), counter.text(&draft).0);
    let ungrounded = Ungrounded::Remove;
    let how = RepairOptions { budget: planned.summary_budget, counter: &counter, ungrounded };

    criterion.bench_function("facts", |b| b.iter(|| required_facts(black_box(&said))));
    criterion
        .bench_function("grounds", |b| b.iter(|| SourceIndex::of(black_box(&said), None, &[])));
    criterion.bench_function("audit", |b| b.iter(|| audit(black_box(&draft), &found, &grounds)));
    criterion
        .bench_function("repair", |b| b.iter(|| repair(black_box(&draft), &found, &grounds, &how)));
    criterion.bench_function("plan, facts, grounds, audit and repair", |b| {
        b.iter(|| {
            let history = History::of(black_box(&view)).unwrap();
            let PlanOutcome::Compact(planned) =
                plan(&history, &config, PlanLimits::default()).unwrap()
            else {
                panic!("200,000 tokens do not fit");
            };
            let said = history.read(0..planned.cut);
            let found = required_facts(&said);
            let grounds = SourceIndex::of(&said, None, &[]);
            // Repair audits the draft first.
            repair(&draft, &found, &grounds, &how)
        });
    });
}

criterion_group!(benches, run);
criterion_main!(benches);
