//! Measures archiving and redaction: `cargo run --release -p ctx-memory --example archive_cost`.

// An example may print and panic.
#![allow(clippy::unwrap_used, clippy::print_stdout)]

use std::time::Instant;

use ctx_core::{Counter, CounterKind, Message, Role, Timestamp};
use ctx_memory::archive::{ArchiveLimits, SegmentMaker};
use ctx_memory::{Memory, MemorySettings};
use ctx_redact::Redactor;
use ctx_search::SegmentId;

const SEGMENTS: usize = 20_000;
const NOW: Timestamp = Timestamp(1_770_000_000_000);

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = MemorySettings::default();
    settings.limits = ArchiveLimits { max_segments: SEGMENTS, eviction_days: 0 };
    let maker = SegmentMaker::new("main", "s", Counter::new(CounterKind::Chars3));
    let said = |nth: usize| {
        let text = format!(
            "Turn {nth}: the webhook in src/payment/webhook.ts failed with E{nth}; the retry policy of \
             the queue is set in config/queue.yaml. "
        );
        Message::text(Role::User, text.repeat(6))
    };

    let memory = Memory::open(dir.path(), settings.clone());
    let begin = Instant::now();
    let made: Vec<_> =
        (0..SEGMENTS).map(|nth| maker.of_message(&said(nth), NOW).unwrap()).collect();
    println!("make {SEGMENTS} segments: {:.1} us each", micros(begin) / SEGMENTS as f64);

    let begin = Instant::now();
    memory.add(&made).unwrap();
    println!("store them in one commit: {:.1} ms", micros(begin) / 1e3);
    println!("on the disk: {:.1} MB", memory.stats().unwrap().archive_bytes as f64 / 1e6);

    let mut times: Vec<f64> = (0..21)
        .map(|_| {
            let begin = Instant::now();
            let memory = Memory::open(dir.path(), settings.clone());
            assert_eq!(memory.stats().unwrap().segments, SEGMENTS);
            micros(begin)
        })
        .collect();
    times.sort_by(f64::total_cmp);
    println!("open: p50 {:.1} ms, worst {:.1} ms", times[10] / 1e3, times[20] / 1e3);

    let ids: Vec<SegmentId> = made.iter().step_by(SEGMENTS / 20).map(|s| s.id).collect();
    let begin = Instant::now();
    assert!(memory.get(&ids).unwrap().iter().all(Option::is_some));
    println!("read {} segments: {:.1} us", ids.len(), micros(begin));

    let mut worst = 0f64;
    let begin = Instant::now();
    for nth in 0..100 {
        let begin = Instant::now();
        memory.add(&[maker.of_message(&said(SEGMENTS + nth), NOW).unwrap()]).unwrap();
        worst = worst.max(micros(begin));
    }
    println!("add one and commit it: {:.0} us, worst {worst:.0} us", micros(begin) / 100.0);

    let kinds = [
        (
            "prose and code",
            "fn main() { let token_count = tokens.len(); } // the key point is speed\n",
        ),
        ("base64", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGA\n"),
        ("names without end", "password="),
        ("keys without a form", "authorization: sk-ant://a:b@ eyJ cookie: a=b; "),
        ("begins without end", "-----BEGIN RSA PRIVATE KEY-----\n"),
    ];
    assert_eq!(Redactor::builtin().redact("warm password=hunter2!").found, 1);
    for (name, piece) in kinds {
        let text = piece.repeat((50 << 20) / piece.len());
        let begin = Instant::now();
        let found = Redactor::builtin().redact(&text).found;
        println!("redact 50 MB of {name}: {:.2} s, {found} found", micros(begin) / 1e6);
    }
}

fn micros(begin: Instant) -> f64 {
    begin.elapsed().as_secs_f64() * 1e6
}
