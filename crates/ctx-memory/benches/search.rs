//! What a search costs over 20,000 segments, without vectors and with their cosines given.

use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use ctx_core::{Role, Timestamp};
use ctx_memory::{Cosines, Metadata, Query, SearchIndex, SearchSettings, Segment, SegmentId};

const SEGMENTS: usize = 20_000;

/// A word by its rank: common ones are drawn often, as in language (Zipf).
fn word(seed: &mut u64) -> String {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let draw = (*seed >> 11) as f64 / (1u64 << 53) as f64;
    format!("word{}", (20_000f64.powf(draw)) as u32)
}

fn text(words: usize, seed: &mut u64) -> String {
    (0..words).map(|_| word(seed)).collect::<Vec<_>>().join(" ")
}

fn index() -> SearchIndex {
    let mut index = SearchIndex::new(SearchSettings::default());
    let mut seed = 7;
    for row in 0..SEGMENTS {
        let content = text(10 + row % 90, &mut seed);
        let role = if row % 2 == 0 { Role::User } else { Role::Assistant };
        let session = format!("session-{}", row / 200);
        index.add(&Segment {
            id: SegmentId::of(&session, &role, &content),
            agent_id: "main".into(),
            session_id: session,
            timestamp: Timestamp(1_700_000_000_000 + row as i64 * 60_000),
            role,
            name: None,
            content,
            tokens: 1,
            metadata: Metadata::default(),
            entry_id: None,
        });
    }
    index
}

fn search(c: &mut Criterion) {
    let index = index();
    let mut seed = 11;
    let queries: Vec<String> = (0..64).map(|_| text(6, &mut seed)).collect();
    let of_rows: Vec<f32> = (0..SEGMENTS).map(|row| (row % 997) as f32 / 997.0).collect();
    let mut each = queries.iter().cycle();
    let mut ask = |cosines: Option<Cosines<'_>>| {
        let text = each.next().map_or("", String::as_str);
        let query = Query { text, session: None, limit: 20, now: Timestamp(1_800_000_000_000) };
        black_box(index.search(&query, cosines))
    };
    c.bench_function("20,000 segments, words", |b| b.iter(|| ask(None)));
    c.bench_function("20,000 segments, words and cosines", |b| {
        b.iter(|| ask(Some(Cosines { of_rows: &of_rows, weight: 0.5 })));
    });
}

criterion_group!(benches, search);
criterion_main!(benches);
