//! One more turn of a long session with all layers, with memory and without.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Result, ensure};
use ctx_config::Config;
use ctx_core::{
    ContextEngine, ContextView, Counter, Entry, MemoryStore, Message, NodeState, RecallRequest,
    Role, Services, TokenLedger, Tokens,
};
use ctx_engine_registry::{BuildContext, Registry};
// The layers register themselves, and only if they are linked.
use ctx_layers as _;
use ctx_memory::SessionMemory;
use ctx_testkit::{Sample, entries};
use futures_executor::block_on;

use super::corpus::{QUESTIONS, asked, questions};
use super::turn::now;
use crate::Effort;
use crate::figure::{Figure, Goal, Side, medians};
use crate::requests::assemble;

/// The session of 200,000 tokens fits, and is not compacted.
const WINDOW: Tokens = Tokens(300_000);

/// The number of messages of the session before the turn that is measured.
const BEFORE: usize = 996;

pub(super) fn measure(
    effort: Effort,
    session: &SessionMemory,
    print: &mut dyn FnMut(Figure),
) -> Result<()> {
    let session: Arc<dyn MemoryStore> = Arc::new(session.clone());
    let all = entries(Sample::default().messages());
    let (old, new) = all.split_at(BEFORE);
    let [with, without] = [Some(session.clone()), None].map(engine);
    let (with, without) = (with?, without?);
    let rounds = effort.rounds(100);
    let turn = |engine: &dyn ContextEngine| Ok(one_more(engine, old, new)?.0 * 1e3);
    let sides: [Side<'_>; 2] = [Box::new(|| turn(&*with)), Box::new(|| turn(&*without))];
    let [ours, limit] = medians(rounds, sides)?;
    let what = "assemble one more turn at 200k tokens with memory on, without a new question";
    print(
        Figure::new("memory-assemble", what, "µs", ours)
            .beside_limit("the same with memory off", limit)
            .goal(Goal::AtMost(50.0)),
    );
    let questions = questions();
    let mut n = 0;
    let recalled = || {
        n += 1;
        let question = Message::text(Role::User, asked(n, &questions));
        let entry = Arc::new(Entry::in_memory(format!("q{n}"), question));
        let (ms, view) = one_more(&*with, old, &[entry])?;
        let blocks = view.nodes().iter().filter(|node| node.state() == NodeState::Inserted);
        ensure!(blocks.count() > 0, "nothing is recalled for {}", asked(n, &questions));
        Ok(ms)
    };
    let mut m = QUESTIONS / 2;
    let search = || {
        m += 1;
        let request = RecallRequest {
            query: asked(m, &questions),
            now: now(),
            visible: Default::default(),
            min_score: 0.3,
            passages: 20,
            facts: 10,
        };
        let started = Instant::now();
        let found = block_on(session.recall(request))?;
        let took = started.elapsed();
        ensure!(!found.passages.is_empty(), "nothing is found");
        Ok(took.as_secs_f64() * 1e3)
    };
    let sides: [Side<'_>; 2] = [Box::new(recalled), Box::new(search)];
    let [ours, limit] = medians(rounds, sides)?;
    let what = "the same with a new question, for which memory is searched";
    print(
        Figure::new("memory-assemble-recall", what, "ms", ours)
            .beside_limit("the recall alone", limit)
            .goal(Goal::AtMost(2.0)),
    );
    Ok(())
}

/// Builds the default engine, with all layers.
fn engine(memory: Option<Arc<dyn MemoryStore>>) -> Result<Arc<dyn ContextEngine>> {
    let is_on = memory.is_some();
    let config = Config::parse(&format!(
        "{{ agents: {{ defaults: {{ memoryContext: {{ enabled: {is_on}, autoRecallMinScore: 0.3 }} }} }} }}"
    ))?;
    let registry = Registry::collect()?;
    let services = Services { memory, ..Services::default() };
    let context = BuildContext {
        config: &config,
        services: &services,
        window: WINDOW.into(),
        registry: &registry,
    };
    Ok(registry.build_engine(None, &context)?)
}

/// Assembles a session, adds entries, assembles it once more, and returns how many milliseconds the
/// latter takes.
fn one_more(
    engine: &dyn ContextEngine,
    old: &[Arc<Entry>],
    new: &[Arc<Entry>],
) -> Result<(f64, ContextView)> {
    let ledger = TokenLedger::new(Counter::default(), WINDOW, Tokens(20_000));
    let view = assemble(engine, ContextView::new(ledger), old, now())?;
    let started = Instant::now();
    let view = assemble(engine, view, new, now())?;
    Ok((started.elapsed().as_secs_f64() * 1e3, view))
}
