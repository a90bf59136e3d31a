//! A turn with memory on: what leaves the window is archived, and the question is searched for.
//!
//! The window is full. Each turn, the oldest message leaves it, so each turn archives. Now and then
//! the layers trim the view, and a turn archives hundreds of messages.

use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use anyhow::{Context, Result};
use ctx_core::{
    AssembleRequest, ContextEngine, ContextView, Counter, Entry, IdSource, MemoryStore, Message,
    NodeState, Role, SequentialIds, Timestamp, TokenLedger, Tokens, TurnContext,
};
use ctx_engine_registry::LayeredEngine;
use ctx_memory::archive::SegmentMaker;
use ctx_memory::{Archive, Config, Memory, Recall, SessionMemory, Trim};
use futures_executor::block_on;

use super::corpus::{asked, questions, text};
use super::progress::shown;
use super::store::{With, add, settings};
use crate::Effort;
use crate::figure::{Figure, Goal, quantile};

/// The number of archived segments.
const ARCHIVED: usize = 20_000;

/// The number of turns, and of those of a quick run.
const TURNS: usize = 1_000;
const FEW: usize = 50;

const WINDOW: Tokens = Tokens(420_000);

/// A turn that drops more messages than this has trimmed the view.
const TRIMMED: usize = 10;

/// Returns a memory in a folder, with segments of other sessions.
pub(super) fn filled(folder: &Path) -> Result<Memory> {
    let memory = Memory::open(folder, settings(With::Hashes));
    shown("filling the memory of a session", || {
        add(&memory, ARCHIVED)?;
        anyhow::Ok(memory.settle()?)
    })?;
    Ok(memory)
}

/// Returns a session's view of a memory.
pub(super) fn session(memory: Memory) -> SessionMemory {
    let maker = SegmentMaker::new("main", "now", Counter::default());
    SessionMemory::new(memory, "now", maker).with_cross_session(true)
}

pub(super) fn now() -> Timestamp {
    Timestamp(1_900_000_000_000)
}

/// What each turn took, in milliseconds.
#[derive(Default)]
struct Turns {
    all: Vec<f64>,
    /// Those that trimmed the view.
    trimming: Vec<f64>,
    /// Writing and syncing what a turn archived.
    syncs: Vec<f64>,
}

/// Measures turns of a session whose memory is in a folder.
pub(super) fn measure(
    effort: Effort,
    session: &SessionMemory,
    folder: &Path,
    print: &mut dyn FnMut(Figure),
) -> Result<()> {
    let turns = if effort.is_quick { FEW } else { TURNS };
    let Turns { mut all, mut trimming, mut syncs } =
        shown("turns", || run(session, folder, turns))?;
    for (name, share, most) in [("p50", 0.5, 1.0), ("p99", 0.99, 3.0), ("longest", 1.0, 20.0)] {
        let what = format!("a turn with memory on, which archives and recalls: {name}");
        print(
            Figure::new(format!("memory-turn-{name}"), what, "ms", quantile(&mut all, share))
                .beside_limit(
                    "`write` and `fdatasync` of what it archives",
                    quantile(&mut syncs, share),
                )
                .goal(Goal::AtMost(most)),
        );
    }
    if !trimming.is_empty() {
        let what = "a turn that trims the view first";
        print(Figure::new("memory-turn-trims", what, "ms", quantile(&mut trimming, 0.5)));
    }
    Ok(())
}

/// Runs turns, and after each writes what it archived once more, to another file.
fn run(session: &SessionMemory, folder: &Path, turns: usize) -> Result<Turns> {
    let config = Config { enabled: true, auto_recall_min_score: 0.3, ..Config::default() };
    let memory: Arc<dyn MemoryStore> = Arc::new(session.clone());
    let engine = LayeredEngine::new(
        "memory",
        "Memory",
        vec![
            Box::new(Trim::new(config.clone())),
            Box::new(Archive::new(memory.clone())),
            Box::new(Recall::new(config, memory)),
        ],
    );
    let questions = questions();
    let mut bare = File::create_new(folder.join("bare"))?;
    let archive = folder.join("segments.jsonl");
    let mut speech = Speech::default();
    let mut view = ContextView::new(TokenLedger::new(Counter::default(), WINDOW, Tokens(20_000)));
    while view.used() < view.ledger().limit() - Tokens(6_000) {
        speech.say(&mut view, Role::User, &text(1_000_000 + speech.said))?;
        speech.say(&mut view, Role::Assistant, &text(1_000_000 + speech.said))?;
    }
    let ids: Arc<dyn IdSource> = Arc::new(SequentialIds::default());
    let mut taken = Turns::default();
    for n in 0..turns {
        leave(&mut view);
        speech.say(&mut view, Role::User, &asked(n, &questions))?;
        let turn = TurnContext { ids: ids.clone(), ..TurnContext::at(now()) };
        let request = AssembleRequest { session_id: "now".into(), view, turn };
        let before = fs::metadata(&archive)?.len();
        let started = Instant::now();
        let assembled = block_on(engine.assemble(request))?;
        let took = started.elapsed().as_secs_f64() * 1e3;
        view = assembled.into_view();
        taken.all.push(took);
        let dropped = view.nodes().iter().filter(|node| !node.is_live()).count();
        if dropped > TRIMMED {
            taken.trimming.push(took);
        }
        view.finish()?;
        speech.say(&mut view, Role::Assistant, &text(2_000_000 + n))?;
        speech.say(&mut view, Role::Assistant, &text(3_000_000 + n))?;
        // What a turn leaves to others is not measured with the next one.
        block_on(session.flush())?;
        let archived = fs::metadata(&archive)?.len().checked_sub(before);
        let archived = archived.context("the archive was rewritten during the turns")?;
        let bytes = vec![b'x'; usize::try_from(archived)?];
        let started = Instant::now();
        bare.write_all(&bytes)?;
        bare.sync_data()?;
        taken.syncs.push(started.elapsed().as_secs_f64() * 1e3);
    }
    Ok(taken)
}

/// Drops the oldest message, and the recalled block, as if a compaction had removed them.
fn leave(view: &mut ContextView) {
    let of =
        |state: NodeState| move |node: &ctx_core::Node| node.is_live() && node.state() == state;
    for state in [NodeState::Kept, NodeState::Inserted] {
        if let Some(at) = view.nodes().iter().position(of(state)) {
            view.drop(at, "window", "it is the oldest");
        }
    }
}

/// Counts the messages of a session.
#[derive(Default)]
struct Speech {
    said: usize,
}

impl Speech {
    fn say(&mut self, view: &mut ContextView, role: Role, text: &str) -> Result<()> {
        let id = format!("e{}", self.said);
        self.said += 1;
        Ok(view.append(Arc::new(Entry::in_memory(id, Message::text(role, text))))?)
    }
}
