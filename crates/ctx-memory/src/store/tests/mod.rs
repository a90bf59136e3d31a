use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::atomic::AtomicUsize;

use ctx_core::{
    Counter, CounterKind, Embedder, Entry, Error, ErrorKind, MemoryStore, Message, RecallRequest,
    Role, Timestamp,
};

mod fact_extraction;
mod forgotten;
mod kept;
mod lost;
mod maintenance;
mod models;
mod sessions;

use super::*;
use crate::archive::{ArchiveLimits, SegmentMaker};
use ctx_search::{Metadata, SearchSettings};

fn segment(session: &str, minute: i64, content: &str) -> Segment {
    Segment {
        id: SegmentId::of(session, &Role::User, content),
        agent_id: "main".into(),
        session_id: session.into(),
        timestamp: Timestamp(minute * 60_000),
        archived_at: None,
        role: Role::User,
        name: None,
        content: content.into(),
        tokens: 1,
        metadata: Metadata::default(),
        entry_id: Some(format!("e{minute}")),
    }
}

fn some(range: std::ops::Range<i64>) -> Vec<Segment> {
    let words = ["apple", "brick", "cloud", "dune", "ember"];
    let text =
        |n: i64| format!("note {n}: {} and {}", words[n as usize % 5], words[n as usize % 3]);
    range.map(|n| segment("s", n, &text(n))).collect()
}

fn settings() -> MemorySettings {
    let limits = ArchiveLimits { eviction_days: 0, ..ArchiveLimits::default() };
    MemorySettings { limits, ..MemorySettings::default() }
}

fn memory(folder: &Path) -> Memory {
    Memory::open(folder, settings())
}

fn found(memory: &Memory, text: &str) -> Vec<(SegmentId, f32, f32)> {
    let query = Query { text, session: None, limit: 50, now: Timestamp(0) };
    let hits = memory.search(&query, None).unwrap();
    hits.into_iter().map(|hit| (hit.id, hit.score, hit.parts.bm25)).collect()
}

fn waited<T>(future: impl Future<Output = T>) -> T {
    futures_executor::block_on(future)
}

fn maker(session: &str) -> SegmentMaker {
    SegmentMaker::new("main", session, Counter::new(CounterKind::Chars3))
}

fn request(query: &str) -> RecallRequest {
    RecallRequest {
        query: query.into(),
        min_score: 0.7,
        passages: 5,
        facts: 5,
        ..RecallRequest::default()
    }
}
