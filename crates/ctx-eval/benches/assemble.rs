//! Measures the cost of a request: for a session assembled by all layers without cached counts, for
//! one more turn on an existing view, and for whole replays of growing length.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use ctx_config::Config;
use ctx_core::{
    AssembleRequest, ContextEngine, ContextView, Counter, Entry, Message, Services, Timestamp,
    TokenLedger, Tokens, TurnContext,
};
use ctx_engine_registry::{BuildContext, Registry};
use ctx_eval::{ReplaySetup, SessionReport, replay};
use ctx_session::{BranchMessage, ReplayMessage};
use ctx_testkit::{Sample, entries};

const WINDOW: Tokens = Tokens(128_000);

fn engine(config: &Config) -> Arc<dyn ContextEngine> {
    let registry = Registry::collect().expect("ids are unique");
    let services = Services::default();
    let context =
        BuildContext { config, services: &services, window: WINDOW.into(), registry: &registry };
    registry.build_engine(None, &context).expect("the default engine builds")
}

/// All layers on, including pruning by age.
fn all_layers() -> Config {
    let text = "{ agents: { defaults: { contextPruning: { mode: 'turn-age' } } } }";
    Config::parse(text).expect("the keys are known")
}

fn turn() -> TurnContext {
    TurnContext::at(Timestamp(1_767_700_000_000))
}

fn ledger() -> TokenLedger {
    TokenLedger::new(Counter::default(), WINDOW, Tokens(20_000))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().build().expect("a runtime").block_on(future)
}

fn assemble(engine: &dyn ContextEngine, mut view: ContextView, new: &[Arc<Entry>]) -> ContextView {
    for entry in new {
        view.append(entry.clone()).expect("a held message can be read");
    }
    let request = AssembleRequest { session_id: String::new(), view, turn: turn() };
    let mut view = block_on(engine.assemble(request)).expect("the layers do not fail").view;
    view.finish().expect("there is no system prompt");
    view
}

fn one_request(criterion: &mut Criterion) {
    let engine = engine(&all_layers());
    let messages = Sample::default().messages();
    let mut group = criterion.benchmark_group("assemble 1,000 messages, 200k tokens");
    group.bench_function("from cold counts", |bencher| {
        bencher.iter_batched(
            || entries(messages.clone()),
            |entries| black_box(assemble(&*engine, ContextView::new(ledger()), &entries)),
            BatchSize::LargeInput,
        );
    });
    let (old, new): (Vec<Message>, Vec<Message>) =
        (messages[..996].to_vec(), messages[996..].to_vec());
    group.bench_function("one more turn", |bencher| {
        bencher.iter_batched(
            || {
                let view = assemble(&*engine, ContextView::new(ledger()), &entries(old.clone()));
                (view, entries(new.clone()))
            },
            |(view, new)| black_box(assemble(&*engine, view, &new)),
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

fn replays(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("replay");
    group.sample_size(10);
    for messages in [25_000, 50_000, 100_000] {
        let sample = Sample { messages, tokens: messages * 50, ..Sample::default() };
        let line: Vec<ReplayMessage> = entries(sample.messages())
            .into_iter()
            .map(|entry| {
                let facts = entry.outline().expect("a held message can be read");
                let request = facts.role == ctx_core::Role::Assistant;
                ReplayMessage { item: BranchMessage { entry, request }, compactions: Vec::new() }
            })
            .collect();
        let setup = ReplaySetup {
            baseline: Default::default(),
            ledger: ledger(),
            engine: engine(&Config::default()),
            profile: Default::default(),
            model: None,
            prices: None,
            details: false,
        };
        group.throughput(Throughput::Elements(messages as u64));
        group.bench_function(BenchmarkId::from_parameter(messages), |bencher| {
            bencher.iter(|| {
                block_on(replay(&line, SessionReport::default(), &setup, |_| {})).expect("fits")
            });
        });
    }
    group.finish();
}

criterion_group!(benches, one_request, replays);
criterion_main!(benches);
