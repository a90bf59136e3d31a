//! Measures recall per turn: a view of 1,000 messages, an archive of 20,000 segments, and the
//! block.
//!
//! Each turn adds new text, so each turn searches memory. The view is full, so some turns also
//! trim. `CTX_BENCH_SEGMENTS` and `CTX_BENCH_TURNS` override the sizes.

mod conversation;

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ctx_core::{
    ContextView, Counter, Entry, Layer, Message, Role, SequentialIds, Timestamp, TokenLedger,
    Tokens, TurnContext,
};
use ctx_memory::archive::{ArchiveLimits, SegmentMaker};
use ctx_memory::{Config, Memory, MemorySettings, Recall, SessionMemory, Trim};

use crate::conversation::{Numbers, questions, segment, spelled};

const MESSAGES: usize = 1_000;

fn number(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn say(view: &mut ContextView, role: Role, n: usize, text: &str) {
    let entry = Entry::in_memory(format!("e{n}"), Message::text(role, text));
    view.append(Arc::new(entry)).expect("a message");
}

fn filled(folder: &std::path::Path, count: usize) -> Memory {
    let mut settings = MemorySettings::default();
    settings.limits = ArchiveLimits { max_segments: usize::MAX, eviction_days: 0 };
    let memory = Memory::open(folder, settings);
    for from in (0..count).step_by(1_000) {
        let segments: Vec<_> = (from..count.min(from + 1_000)).map(segment).collect();
        memory.add(&segments).expect("it can be written");
        memory.flush().expect("it can be written");
    }
    memory.settle().expect("the index can be written");
    memory
}

/// Returns a question that consists of words of an archived text and one random word.
fn asked(n: usize, questions: &[String]) -> String {
    let mut numbers = Numbers(n as u64 + 5);
    let own = spelled(numbers.word());
    format!("what was it about {} and {own}?", questions[n % questions.len()])
}

fn main() {
    let (count, turns) = (number("CTX_BENCH_SEGMENTS", 20_000), number("CTX_BENCH_TURNS", 1_000));
    let folder = tempfile::tempdir().expect("a folder");
    let memory = filled(folder.path(), count);
    let maker = SegmentMaker::new("main", "now", Counter::default());
    let session = SessionMemory::new(memory, "now", maker).with_cross_session(true);
    let config = Config { enabled: true, auto_recall_min_score: 0.3, ..Config::default() };
    let trim = Trim::new(config.clone());
    let layer = Recall::new(config, Arc::new(session));

    let questions = questions();
    let window = Tokens(420_000);
    let mut view = ContextView::new(TokenLedger::new(Counter::default(), window, Tokens(20_000)));
    let mut said = 0;
    while said < MESSAGES || view.used() < view.ledger().limit() - Tokens(6_000) {
        let role = if said % 2 == 0 { Role::User } else { Role::Assistant };
        say(&mut view, role, said, &segment(1_000_000 + said).content);
        said += 1;
    }
    let live = view.nodes().iter().filter(|node| node.is_live()).count();
    let ids = Arc::new(SequentialIds::default());
    let (mut times, mut trimming, mut blocks) = (Vec::new(), Vec::new(), 0);
    for n in 0..turns {
        say(&mut view, Role::User, said, &asked(n, &questions));
        let turn =
            TurnContext { ids: ids.clone(), ..TurnContext::at(Timestamp(1_900_000_000_000)) };
        let edits = view.edits().len();
        let started = Instant::now();
        let prepared = layer
            .prepare(&view, &turn)
            .map(|pending| futures_executor::block_on(pending).expect("an answer"));
        layer.apply(&mut view, prepared, &turn).expect("edits");
        trim.apply(&mut view, None, &turn).expect("edits");
        let took = started.elapsed();
        let edits = view.edits().len() - edits;
        blocks += usize::from(edits > 0);
        times.push(took);
        if edits > 2 {
            trimming.push(took);
        }
        view.finish().expect("a request");
        say(&mut view, Role::Assistant, said + 1, &segment(2_000_000 + n).content);
        said += 2;
    }
    let mut out = std::io::stdout();
    let _ = writeln!(
        out,
        "{count} segments, {live} messages of {} tokens, {turns} turns, {blocks} of them changed the \
         view, {} trimmed; {:?}",
        view.used(),
        trimming.len(),
        layer.take_warnings(),
    );
    for (what, times) in [("a turn", &mut times), ("one that trims", &mut trimming)] {
        let _ = writeln!(out, "{what}: {}", spread(times));
    }
}

fn spread(times: &mut [Duration]) -> String {
    let first = times.first().copied().unwrap_or_default();
    times.sort_unstable();
    let at = |share: f64| {
        let at = ((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1));
        times.get(at).copied().unwrap_or_default()
    };
    let (half, most, last) = (at(0.5), at(0.99), at(1.0));
    format!("p50 {half:.2?}, p99 {most:.2?}, longest {last:.2?}, the first {first:.2?}")
}
