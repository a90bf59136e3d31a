//! Durable append: compared to the bare system calls, and shared by many sessions.
//!
//! The two sides of a comparison alternate within one measurement, so that a busy disk slows both;
//! the ratio of their medians is printed at the end of each.

#![allow(clippy::print_stdout)] // The ratios are this program's output.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use criterion::{Criterion, criterion_group, criterion_main};
use ctx_core::{RawJson, Timestamp};
use ctx_session::key::FileId;
use ctx_session::{Durability, GroupCommit, Home, LogOptions, NewEntry, NewSession, SessionLog};

const NOW: Timestamp = Timestamp(1_765_233_665_306);
const WRITERS: usize = 32;

/// An entry of about 1 KiB.
fn entry() -> NewEntry {
    let text = "x".repeat(850);
    NewEntry::message(RawJson::from_text(format!(
        r#"{{"role":"user","content":[{{"type":"text","text":"{text}"}}],"timestamp":1765233665306}}"#
    )))
}

fn session(path: &Path, group: Option<&Arc<GroupCommit>>) -> SessionLog {
    let options = LogOptions {
        durability: Durability::PerEntry,
        group: group.cloned(),
        ..LogOptions::default()
    };
    let new = NewSession {
        id: FileId::new("bench").expect("a valid id"),
        timestamp: NOW,
        cwd: "/".into(),
        parent_session: None,
    };
    SessionLog::create(path, &new, options).expect("a new session")
}

/// The times of both sides, in seconds per entry.
#[derive(Default)]
struct Pairs(Mutex<Vec<(f64, f64)>>);

impl Pairs {
    fn note(&self, ours: f64, other: f64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((ours, other));
    }

    fn report(&self, title: &str, ours: &str, other: &str) {
        let pairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pairs.is_empty() {
            return; // Filtered out.
        }
        let median = |side: fn(&(f64, f64)) -> f64| {
            let mut times: Vec<f64> = pairs.iter().map(side).collect();
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 2).copied().unwrap_or(f64::NAN)
        };
        let (a, b) = (median(|p| p.0), median(|p| p.1));
        println!(
            "{title}: {ours} {:.0}/s, {other} {:.0}/s, ratio {:.3} ({} pairs)\n",
            1.0 / a,
            1.0 / b,
            b / a,
            pairs.len()
        );
    }
}

fn beside_the_bare_calls(c: &mut Criterion) {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let path = dir.path().join("ours.jsonl");
    let mut ours = session(&path, None);
    let mut bare = File::create(dir.path().join("bare.jsonl")).expect("a new file");
    let entry = entry();
    ours.append(&entry, NOW).expect("an append");
    let text = std::fs::read(&path).expect("the session");
    let line = text.split_inclusive(|b| *b == b'\n').next_back().unwrap_or_default().to_vec();
    let pairs = Pairs::default();
    let mut n = 0u64;
    let mut pair = || {
        let mut times = [Duration::ZERO; 2];
        // The order alternates too: the second of two syncs often finds a warmer disk.
        n += 1;
        for side in [n % 2, (n + 1) % 2] {
            let start = Instant::now();
            if side == 0 {
                ours.append(&entry, NOW).expect("an append");
            } else {
                bare.write_all(&line).expect("a write");
                bare.sync_data().expect("a sync");
            }
            times[side as usize] = start.elapsed();
        }
        pairs.note(times[0].as_secs_f64(), times[1].as_secs_f64());
        times
    };
    let mut group = c.benchmark_group("durable append, 1 KiB");
    group.bench_function("session log", |b| {
        b.iter_custom(|iters| (0..iters).map(|_| pair()[0]).sum());
    });
    group.bench_function("write_all + fdatasync", |b| {
        b.iter_custom(|iters| (0..iters).map(|_| pair()[1]).sum());
    });
    group.finish();
    pairs.report("durable append", "session log", "bare calls");
}

fn group_commit(c: &mut Criterion) {
    const ONE: usize = 200;
    const EACH: usize = 500;
    let dir = tempfile::tempdir().expect("a temporary folder");
    let shared = GroupCommit::open(&Home::at(dir.path()).journals_dir()).expect("a group");
    let mut alone = session(&dir.path().join("alone.jsonl"), None);
    let mut logs: Vec<_> = (0..WRITERS)
        .map(|n| session(&dir.path().join(format!("s{n}.jsonl")), Some(&shared)))
        .collect();
    let entry = entry();
    let pairs = Pairs::default();
    let mut pair = || {
        let start = Instant::now();
        for _ in 0..ONE {
            alone.append(&entry, NOW).expect("an append");
        }
        let one = start.elapsed() / ONE as u32;
        let start = Instant::now();
        std::thread::scope(|scope| {
            for log in &mut logs {
                let entry = &entry;
                scope.spawn(move || {
                    for _ in 0..EACH {
                        log.append(entry, NOW).expect("an append");
                    }
                });
            }
        });
        let many = start.elapsed() / (EACH * WRITERS) as u32;
        pairs.note(many.as_secs_f64(), one.as_secs_f64());
        (many, one)
    };
    let mut group = c.benchmark_group("durable entries of many sessions");
    group.sample_size(20);
    group.bench_function("32 threads, group commit, per entry", |b| {
        b.iter_custom(|iters| (0..iters).map(|_| pair().0).sum());
    });
    group.bench_function("one thread, per entry", |b| {
        b.iter_custom(|iters| (0..iters).map(|_| pair().1).sum());
    });
    group.finish();
    pairs.report("group commit", "32 threads", "one thread");
}

criterion_group!(benches, beside_the_bare_calls, group_commit);
criterion_main!(benches);
