//! Measures the passages that pass `autoRecallMinScore`, for queries that an archive can answer and
//! for other queries. `bench/retrieval/auto_recall.py` makes the queries from labelled
//! conversations.
//!
//! ```text
//! python3 bench/retrieval/auto_recall.py > queries.json
//! cargo run --release -p ctx-memory --example auto_recall -- queries.json [0.7 ...]
//! ```

use std::collections::{BTreeMap, HashSet};
use std::error::Error;
use std::io::Write;

use ctx_core::{Counter, MemoryStore, RecallRequest, Role, Timestamp};
use ctx_memory::archive::SegmentMaker;
use ctx_memory::{Memory, MemorySettings, SessionMemory};
use ctx_search::{Metadata, Segment, SegmentId};
use serde::Deserialize;

#[derive(Deserialize)]
struct Queries {
    archives: BTreeMap<String, Vec<Turn>>,
    queries: Vec<Asked>,
}

#[derive(Deserialize)]
struct Turn {
    speaker: Option<String>,
    role: Role,
    time: i64,
    text: String,
}

#[derive(Deserialize)]
struct Asked {
    kind: String,
    archive: String,
    text: String,
    /// Turns from this index on are in the window.
    upto: Option<usize>,
    #[serde(default)]
    evidence: Vec<usize>,
}

#[derive(Default)]
struct Sums {
    asked: usize,
    answered: usize,
    passages: usize,
    evidence: f64,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("give the file that auto_recall.py made")?;
    let mut scores: Vec<f32> = args.map(|score| score.parse()).collect::<Result<_, _>>()?;
    if scores.is_empty() {
        scores.push(0.7);
    }
    let data: Queries = serde_json::from_slice(&std::fs::read(path)?)?;
    let mut archives = BTreeMap::new();
    for (name, turns) in &data.archives {
        archives.insert(name, archive(turns)?);
    }
    let mut out = std::io::stdout();
    for min_score in scores {
        let mut kinds: BTreeMap<&str, Sums> = BTreeMap::new();
        for asked in &data.queries {
            let archive = archives.get(&asked.archive).ok_or("no such archive")?;
            let turns = data.archives.get(&asked.archive).map_or(0, Vec::len);
            let visible = asked.upto.unwrap_or(turns)..turns;
            let request = RecallRequest {
                query: asked.text.clone(),
                now: Timestamp(2_000_000_000_000),
                visible: visible.map(|n| format!("e{n}").into()).collect(),
                min_score,
                passages: 20,
                facts: 0,
            };
            let found = futures_executor::block_on(archive.recall(request))?;
            let found: HashSet<String> = found
                .passages
                .iter()
                .filter(|passage| !passage.adjacent)
                .filter_map(|passage| Some(passage.entry.as_ref()?.to_string()))
                .collect();
            let sums = kinds.entry(&asked.kind).or_default();
            sums.asked += 1;
            sums.answered += usize::from(!found.is_empty());
            sums.passages += found.len();
            let held = asked.evidence.iter().filter(|n| found.contains(&format!("e{n}"))).count();
            sums.evidence += held as f64 / asked.evidence.len().max(1) as f64;
        }
        writeln!(out, "\n| at {min_score} | queries | answered | passages each | evidence |")?;
        writeln!(out, "|---|--:|--:|--:|--:|")?;
        for (kind, sums) in kinds {
            let share = |part: f64| 100.0 * part / sums.asked as f64;
            let each = sums.passages as f64 / sums.answered.max(1) as f64;
            writeln!(
                out,
                "| {kind} | {} | {:.0} % | {each:.0} | {:.0} % |",
                sums.asked,
                share(sums.answered as f64),
                share(sums.evidence),
            )?;
        }
    }
    Ok(())
}

fn archive(turns: &[Turn]) -> Result<SessionMemory, Box<dyn Error>> {
    let mut settings = MemorySettings::default();
    settings.limits.max_segments = usize::MAX;
    let memory = Memory::in_memory(settings);
    for (n, turn) in turns.iter().enumerate() {
        let segment = Segment {
            id: SegmentId::of("s", &turn.role, &format!("{n} {}", turn.text)),
            agent_id: "main".into(),
            session_id: "s".into(),
            timestamp: Timestamp(turn.time),
            archived_at: None,
            role: turn.role.clone(),
            name: turn.speaker.clone(),
            content: turn.text.clone(),
            tokens: 0,
            metadata: Metadata::default(),
            entry_id: Some(format!("e{n}")),
        };
        memory.add(&[segment])?;
    }
    let maker = SegmentMaker::new("main", "s", Counter::default());
    Ok(SessionMemory::new(memory, "s", maker))
}
