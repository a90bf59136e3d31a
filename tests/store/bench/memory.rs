//! Memory in the store: how fast it is filled, how long the first and a later recall of a host take,
//! and how long forgetting takes.

#[path = "../../../bench/limits/src/memory/corpus.rs"]
#[allow(dead_code, reason = "it has vectors too, which are not measured here")]
mod corpus;

use std::time::{Duration, Instant};

use ctx_core::Timestamp;
use ctx_memory::archive::ArchiveLimits;
use ctx_memory::{Memory, MemorySettings};
use ctx_search::{Query, Segment};
use ctx_store::{Record, RecordKind, RecordLogs};
use ctx_store_postgres::{Options, PostgresStore};

use crate::Sizes;

const AGENT: &str = "main";
/// Records in one call.
const PAGE: usize = 1_000;
/// Records that are forgotten in one call.
const FORGOTTEN: usize = 1_000;

/// Measures memory: one tenant with the segments of `cold`, and many with those of `segments`.
pub(crate) async fn measure(url: &str, sizes: &Sizes) {
    let options = Options { connections: sizes.of("connections"), ..Options::default() };
    let store = PostgresStore::open(url, options).await.expect("a store");
    println!("\n| memory | segments | seconds | a second |");
    println!("|---|--:|--:|--:|");
    let cold = sizes.of("cold");
    fill(&store, "cold", 0..cold).await;
    report(cold, recalls(&store, "cold").await);
    let (all, tenants) = (sizes.of("segments"), sizes.of("tenants"));
    let each = all / tenants;
    let began = Instant::now();
    for tenant in 0..tenants {
        fill(&store, &format!("memory {tenant}"), 0..each).await;
    }
    row("filling all tenants", all, began.elapsed(), all);
    report(each, recalls(&store, "memory 0").await);
    let one = store.of_tenant("memory 0").expect("a name");
    let ids: Vec<_> = (0..FORGOTTEN.min(each)).map(|n| corpus::segment(n).id.to_string()).collect();
    let began = Instant::now();
    let gone = one.forget(AGENT, RecordKind::Segment, &ids).await.expect("it forgets");
    assert_eq!(gone as usize, ids.len());
    row("forgetting in one call", ids.len(), began.elapsed(), ids.len());
}

fn report(segments: usize, [fetched, added, first, later]: [Duration; 4]) {
    row("a host without files: fetching", segments, fetched, segments);
    row("adding to its archive", segments, added, segments);
    row("its first search", segments, first, 1);
    row("a later search", segments, later, 1);
}

fn row(what: &str, segments: usize, time: Duration, calls: usize) {
    let seconds = time.as_secs_f64();
    println!("| {what} | {segments} | {seconds:.3} | {:.0} |", calls as f64 / seconds);
}

async fn fill(store: &PostgresStore, tenant: &str, numbers: std::ops::Range<usize>) {
    let store = store.of_tenant(tenant).expect("a name");
    let (end, starts) = (numbers.end, numbers.step_by(PAGE));
    for from in starts {
        let record = |n| {
            let segment = corpus::segment(n);
            let bytes = serde_json::to_vec(&segment).expect("it is JSON");
            Record { id: segment.id.to_string(), bytes }
        };
        let records: Vec<_> = (from..end.min(from + PAGE)).map(record).collect();
        store.put(AGENT, RecordKind::Segment, &records).await.expect("it is written");
    }
}

/// Returns how long the parts of a host's first recall take: to fetch the records, to add them to an
/// empty archive, and to search there; then how long a later search takes.
async fn recalls(store: &PostgresStore, tenant: &str) -> [Duration; 4] {
    let home = tempfile::tempdir().expect("a folder");
    let store = store.of_tenant(tenant).expect("a name");
    let mut settings = MemorySettings::default();
    settings.limits = ArchiveLimits { max_segments: usize::MAX, eviction_days: 0 };
    let memory = Memory::open(home.path(), settings);
    let questions = corpus::questions();
    let [mut fetched, mut added] = [Duration::ZERO; 2];
    let mut after = 0;
    loop {
        let began = Instant::now();
        let changes = store.since(AGENT, RecordKind::Segment, after, PAGE).await.expect("records");
        if changes.next == after {
            break;
        }
        let parsed = |record: &Record| serde_json::from_slice(&record.bytes).expect("a segment");
        let segments: Vec<Segment> = changes.records.iter().map(parsed).collect();
        after = changes.next;
        fetched += began.elapsed();
        let began = Instant::now();
        memory.add(&segments).expect("they are added");
        memory.flush().expect("they are written");
        added += began.elapsed();
    }
    let search = |question: &str| {
        let began = Instant::now();
        let query = Query { text: question, session: None, limit: 20, now: Timestamp(0) };
        let hits = memory.search(&query, None).expect("a search");
        assert!(!hits.is_empty(), "something is found");
        began.elapsed()
    };
    [fetched, added, search(&questions[0]), search(&questions[1])]
}
