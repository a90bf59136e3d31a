//! Measures planning the compaction of a session of 200,000 tokens, finding its required facts, and
//! auditing and repairing a summary; and the same for the last 200,000 of 2,000,000 tokens, whose facts
//! all count. `cargo bench -p ctx-compaction --bench audit`

#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)] // Made by a macro; a bench fails by panicking.

use std::fmt::Write;
use std::hint::black_box;
use std::sync::Arc;

use criterion::{Criterion, criterion_group, criterion_main};
use ctx_compaction::{
    CompactionPlan, Config, History, PlanLimits, PlanOutcome, RepairOptions, SourceIndex,
    Ungrounded, audit, plan, repair,
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

/// The entries of a session of this size.
fn entries(most: u64) -> Vec<Arc<Entry>> {
    let (mut out, mut tokens, mut n) = (Vec::new(), 0, 0);
    while tokens < most {
        for message in turn(n) {
            tokens += Counter::default().message(&message).get();
            out.push(Arc::new(Entry::in_memory(format!("{:08x}", out.len()), message)));
        }
        n += 1;
    }
    out
}

/// A history of these entries, and its plan.
fn planned(view: &ContextView, config: &Config) -> (History, CompactionPlan) {
    let history = History::of(view).unwrap();
    match plan(&history, config, PlanLimits::default()).unwrap() {
        PlanOutcome::Compact(plan) => (history, plan),
        PlanOutcome::Nothing(reason) => panic!("{reason}"),
    }
}

fn view(entries: &[Arc<Entry>]) -> ContextView {
    let ledger = TokenLedger::new(Counter::default(), Tokens(200_000), Tokens(20_000));
    let mut view = ContextView::new(ledger);
    entries.iter().for_each(|entry| view.append(entry.clone()).unwrap());
    view
}

fn run(criterion: &mut Criterion) {
    let (config, counter) = (Config::default(), Counter::default());
    let all = entries(2_000_000);
    let last = all.len() / 10;
    for (name, from) in [("200k", all.len() - last), ("2M", 0)] {
        let view = view(&all[all.len() - last..]);
        let (history, plan) = planned(&view, &config);
        let said = history.read(0..plan.cut);
        let earlier =
            all[from..all.len() - last].iter().filter_map(|entry| CitedMessage::of(entry));
        let mut ledger = FactLedger::default();
        earlier.chain(said.iter().cloned()).for_each(|one| ledger.read(&one));
        let facts = ledger.facts();
        let grounds = SourceIndex::of(&said, None, &[]);
        let job = ExtractInput {
            state: None,
            messages: &said,
            facts: &facts,
            previous: None,
            turn_start: None,
            focus: None,
            budget: plan.summary_budget,
            counter: &counter,
        };
        // A good draft with unsupported claims.
        let mut draft = extract(&job);
        draft.push_str(
            "\n- It also changed src/invented.rs in 987 ms.\n- See https://nowhere.example/x\n",
        );
        let (count, size) = (facts.required.len(), counter.text(&draft).0);
        println!("{name}: {count} facts, a draft of {size} tokens");
        let ungrounded = Ungrounded::Remove;
        let how = RepairOptions { budget: plan.summary_budget, counter: &counter, ungrounded };
        let mut bench = |what: &str, run: &dyn Fn()| {
            criterion.bench_function(&format!("{name}: {what}"), |b| b.iter(run));
        };
        bench("facts", &|| drop(black_box(required_facts(&said))));
        bench("facts, messages read", &|| drop(black_box(ledger.facts())));
        bench("grounds", &|| drop(black_box(SourceIndex::of(&said, None, &[]))));
        bench("audit", &|| drop(black_box(audit(&draft, &facts.required, &grounds))));
        bench("repair", &|| drop(black_box(repair(&draft, &facts.required, &grounds, &how))));
        bench("plan, facts, grounds, audit and repair, messages read", &|| {
            let (history, plan) = planned(&view, &config);
            let said = history.read(0..plan.cut);
            let found = ledger.facts();
            let grounds = SourceIndex::of(&said, None, &[]);
            // Repair audits the draft first.
            black_box(repair(&draft, &found.required, &grounds, &how));
        });
    }
}

criterion_group!(benches, run);
criterion_main!(benches);
