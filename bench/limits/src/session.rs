//! Reading sessions: `ctx status` in a cold process, and opening, counting and appending in a warm one.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use ctx_core::{Block, Counter, CounterKind, RawJson, Timestamp, Tokens};
use ctx_session::{Durability, LogOptions, NewEntry, SessionLog, Transcript};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::Effort;
use crate::figure::{Figure, Goal, Side, cpu_s, medians, quantile};
use crate::process::{self, Taken, answer, ctx, pi};

/// The sizes of the sessions, in MB.
const SIZES: [f64; 3] = [2.4, 24.0, 96.0];

const SCAN: &str = "`memchr` and `serde_json`: the ids of each line";

pub(crate) fn measure(effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let folder = tempfile::tempdir_in(process::root().join("target"))?;
    for size in SIZES {
        let file = folder.path().join(format!("{size}.jsonl"));
        repeat(&base_session(), &file, size)?;
        cold(effort, &file, size, print)?;
        warm(effort, &file, size, print)?;
        if size == SIZES[0] {
            append(effort, &file, print)?;
        }
        if size == SIZES[1] {
            counters(effort, &file, print)?;
        }
    }
    Ok(())
}

/// Returns the session that the large ones repeat.
fn base_session() -> PathBuf {
    let recorded = process::data().map(|data| data.join("pi/before-compaction.jsonl"));
    let example = || process::root().join("examples/fix-flaky-test.jsonl");
    recorded.filter(|file| file.exists()).unwrap_or_else(example)
}

/// Writes a session of about that size in pi's format: the source repeated, in one branch, with new ids
/// and without compactions, so that the context is the whole session.
fn repeat(source: &Path, target: &Path, megabytes: f64) -> Result<()> {
    const KEPT: [&str; 3] = ["message", "model_change", "thinking_level_change"];
    let text = fs::read_to_string(source).with_context(|| source.display().to_string())?;
    let lines: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let header = lines.first().context("the session is empty")?;
    let entries: Vec<_> = lines
        .iter()
        .filter(|line| line["type"].as_str().is_some_and(|kind| KEPT.contains(&kind)))
        .collect();
    ensure!(!entries.is_empty(), "the session has no messages");
    let mut out = BufWriter::new(File::create(target)?);
    let head = json!({
        "type": "session", "version": 3, "id": header["id"], "timestamp": header["timestamp"],
        "cwd": header["cwd"],
    });
    writeln!(out, "{head}")?;
    let (mut bytes, mut parent) = (0, Value::Null);
    for (number, entry) in entries.iter().cycle().enumerate() {
        if bytes as f64 >= megabytes * 1e6 && number % entries.len() == 0 {
            break;
        }
        let id = Value::from(format!("{number:08x}"));
        let mut entry = (*entry).clone();
        (entry["id"], entry["parentId"]) = (id.clone(), std::mem::replace(&mut parent, id));
        let line = entry.to_string();
        bytes += line.len() + 1;
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}

/// Returns a part of what a process took.
type Part = fn(&Taken) -> f64;

/// Reads a session, and returns a number that depends on all of it.
type Job = fn(&Path) -> Result<u64>;

/// `ctx status`, beside pi and beside a program that does nothing but find the ids.
fn cold(effort: Effort, file: &Path, size: f64, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let binary = ctx()?;
    let ours =
        || process::run(std::process::Command::new(&binary).arg("status").arg(file).arg("--json"));
    let scan = || {
        process::run(std::process::Command::new(std::env::current_exe()?).arg("--scan").arg(file))
    };
    let theirs = || match pi() {
        Some(mut pi) => process::run(pi.arg("status").arg(file)).map(Some),
        None => Ok(None),
    };
    let mut all = [const { Vec::new() }; 3];
    for round in 0..=effort.rounds(7) {
        let taken = [Some(ours()?), theirs()?, Some(scan()?)];
        for (side, taken) in all.iter_mut().zip(taken).filter(|_| round > 0) {
            side.extend(taken);
        }
    }
    let median = |side: &[Taken], of: fn(&Taken) -> f64| {
        quantile(&mut side.iter().map(of).collect::<Vec<_>>(), 0.5)
    };
    let parts: [(&str, &'static str, Part); 3] = [
        ("CPU", "ms", |taken| taken.cpu_ms),
        ("time", "ms", |taken| taken.wall_ms),
        ("peak", "MiB", |taken| taken.peak_mib),
    ];
    for (what, unit, of) in parts {
        let [ours, theirs, scan] = &all;
        let id = format!("status-{what}-{size}");
        let name = format!("`ctx status FILE --json`, {size} MB: {what}");
        let mut figure = Figure::new(id, name, unit, median(ours, of));
        if !theirs.is_empty() {
            figure = figure.beside_peer("pi", median(theirs, of));
        }
        figure = figure.beside_limit(SCAN, median(scan, of));
        if what == "CPU" && size == SIZES[1] {
            figure = figure.goal(Goal::OfPeer(1.0 / 12.0)).goal(Goal::OfLimit(2.5));
        }
        print(figure);
    }
    Ok(())
}

/// Finds the lines and reads the ids in each: less is not enough to know a session.
pub(crate) fn scan(file: &Path) -> Result<usize> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Head<'a> {
        #[serde(rename = "type")]
        kind: &'a str,
        #[serde(alias = "uuid")]
        id: Option<&'a str>,
        #[serde(alias = "parentUuid")]
        parent_id: Option<&'a str>,
    }
    let bytes = fs::read(file)?;
    let mut length = 0;
    let mut from = 0;
    for end in memchr::memchr_iter(b'\n', &bytes) {
        // A recorded session may have damaged lines.
        if let Ok(head) = serde_json::from_slice::<Head<'_>>(&bytes[from..end]) {
            length += head.kind.len()
                + [head.id, head.parent_id].into_iter().flatten().map(str::len).sum::<usize>();
        }
        from = end + 1;
    }
    Ok(length)
}

fn open(file: &Path) -> Result<u64> {
    Ok(Transcript::open(file)?.context(None)?.entries.len() as u64)
}

fn count(file: &Path, kind: CounterKind) -> Result<u64> {
    // pi counts nothing for a user's images.
    let counter = Counter { free_user_images: true, ..Counter::new(kind) };
    let context = Transcript::open(file)?.context(None)?;
    let tokens: Tokens =
        context.entries.iter().map(|entry| entry.tokens(&counter)).sum::<ctx_core::Result<_>>()?;
    Ok(tokens.get())
}

/// Returns the CPU time of a call in milliseconds.
fn cpu_ms<T>(work: impl FnOnce() -> Result<T>) -> Result<f64> {
    Ok(cpu_s(work)?.0 * 1e3)
}

fn warm(effort: Effort, file: &Path, size: f64, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let scan = || cpu_ms(|| scan(file));
    let rounds = effort.rounds(if size > 50.0 { 5 } else { 9 });
    let jobs: [(&str, &str, Job); 2] = [
        ("open", "open, and rebuild the context", open),
        ("count", "the same, and count every message", |file| count(file, CounterKind::Chars4)),
    ];
    for (job, what, work) in jobs {
        let sides: [Side<'_>; 2] = [Box::new(|| cpu_ms(|| work(file))), Box::new(scan)];
        let [ours, limit] = medians(rounds, sides)?;
        let what = format!("{what}, {size} MB, in a warm process: CPU");
        let mut figure = Figure::new(format!("{job}-{size}"), what, "ms", ours);
        if let Some(mut pi) = pi() {
            let (theirs, result) = process::repeated(pi.arg(job).arg(file), rounds)?;
            ensure!(result == work(file)?, "pi and ctx do not agree about {job}");
            figure = figure.beside_peer("pi", theirs);
        }
        figure = figure.beside_limit(SCAN, limit);
        if job == "count" && size == SIZES[2] {
            figure = figure.goal(Goal::OfPeer(0.1));
        }
        print(figure);
    }
    Ok(())
}

/// Counting tokens by itself: the texts of a session that was read.
fn counters(effort: Effort, file: &Path, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let context = Transcript::open(file)?.context(None)?;
    let messages: Vec<_> =
        context.entries.iter().map(|entry| entry.message()).collect::<ctx_core::Result<_>>()?;
    let text: Vec<_> = messages.iter().flat_map(|message| texts(&message.blocks)).collect();
    let count = |kind| {
        let counter = Counter::new(kind);
        cpu_ms(|| Ok(text.iter().map(|text| counter.text(text).get()).sum::<u64>()))
    };
    let binary = ctx()?;
    let status = || {
        let run = process::run(std::process::Command::new(&binary).arg("status").arg(file));
        run.map(|taken| taken.cpu_ms)
    };
    let lines = || {
        cpu_ms(|| {
            Ok(text.iter().map(|t| memchr::memchr_iter(b'\n', t.as_bytes()).count()).sum::<usize>())
        })
    };
    let sides: [Side<'_>; 3] =
        [Box::new(|| count(CounterKind::Chars4)), Box::new(status), Box::new(lines)];
    let [ours, status, limit] = medians(effort.rounds(9), sides)?;
    print(
        Figure::new("chars4", "count the texts of 24 MB with `chars4`: CPU", "ms", ours)
            .beside_peer("the whole of `ctx status`", status)
            .beside_limit("`memchr` over the same texts", limit)
            .goal(Goal::OfPeer(0.1)),
    );
    let theirs = tiktoken_rs::o200k_base()?;
    let theirs =
        || cpu_ms(|| Ok(text.iter().map(|text| theirs.encode_ordinary(text).len()).sum::<usize>()));
    let sides: [Side<'_>; 2] = [Box::new(|| count(CounterKind::O200k)), Box::new(theirs)];
    let [ours, theirs] = medians(effort.rounds(3), sides)?;
    print(
        Figure::new("o200k", "the same with `o200k`: CPU", "ms", ours)
            .beside_peer("tiktoken-rs", theirs)
            .goal(Goal::OfPeer(1.0)),
    );
    Ok(())
}

/// Returns the texts in blocks, those of results too.
fn texts(blocks: &[Block]) -> Vec<&str> {
    let mut all = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text } => all.push(text.as_str()),
            Block::Thinking { thinking, .. } => all.push(thinking.as_str()),
            Block::ToolCall(call) => all.push(call.arguments.as_str()),
            Block::ToolResult(result) => all.extend(texts(&result.content)),
            Block::Image(_) | Block::Bash(_) | Block::Opaque { .. } => {}
        }
    }
    all
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PiAppends {
    us_per_entry: f64,
}

/// Appending to a session, without and with a sync for each entry.
fn append(effort: Effort, file: &Path, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let entries = if effort.is_quick { 200 } else { 2_000 };
    let ours = |durability, entries| through_the_log(file, durability, entries);
    let theirs = || {
        let Some(mut pi) = pi() else { return Ok(0.0) };
        let copy = file.with_extension("pi.jsonl");
        fs::copy(file, &copy)?;
        let answer: PiAppends = answer(pi.arg("append").arg(copy).arg(entries.to_string()))?;
        Ok(answer.us_per_entry)
    };
    let sides: [Side<'_>; 2] = [Box::new(|| ours(Durability::None, entries)), Box::new(theirs)];
    let [own, theirs] = medians(effort.rounds(5), sides)?;
    let mut figure = Figure::new("append", "append an entry, not synced", "µs", own);
    if theirs > 0.0 {
        figure = figure.beside_peer("pi", theirs);
    }
    print(figure);
    let entries = entries / 10;
    let sides: [Side<'_>; 2] =
        [Box::new(|| ours(Durability::PerEntry, entries)), Box::new(|| bare(file, entries))];
    let [ours, limit] = medians(effort.rounds(5), sides)?;
    let what = "append an entry, durable before the next";
    let figure = Figure::new("append-durable", what, "µs", ours);
    print(figure.beside_limit("`write` and `fdatasync` of the same bytes", limit));
    Ok(())
}

/// Copies a session with ctx's mark in its header, so that ctx may append to it.
fn own_copy(file: &Path) -> Result<PathBuf> {
    let text = fs::read_to_string(file)?;
    let (header, entries) = text.split_once('\n').unwrap_or((&text, ""));
    let mut header: Value = serde_json::from_str(header)?;
    header["ctx"] = 1.into();
    let copy = file.with_extension("own.jsonl");
    let mut out = File::create(&copy)?;
    writeln!(out, "{header}")?;
    out.write_all(entries.as_bytes())?;
    out.sync_all()?;
    Ok(copy)
}

fn message(at: u32) -> String {
    let text = "x".repeat(200);
    json!({ "role": "user", "content": [{ "type": "text", "text": text }], "timestamp": at })
        .to_string()
}

/// Returns the microseconds of an entry.
fn through_the_log(file: &Path, durability: Durability, entries: u32) -> Result<f64> {
    let options = LogOptions { durability, ..LogOptions::default() };
    let mut log = SessionLog::open(&own_copy(file)?, options)?;
    let started = Instant::now();
    for at in 0..entries {
        let entry = NewEntry::message(RawJson::from_text(message(at)));
        log.append(&entry, Timestamp(i64::from(at)))?;
    }
    let took = started.elapsed();
    log.close()?;
    Ok(took.as_secs_f64() * 1e6 / f64::from(entries))
}

/// Returns the microseconds of an entry that is only written and synced.
fn bare(file: &Path, entries: u32) -> Result<f64> {
    let mut out = OpenOptions::new().append(true).open(own_copy(file)?)?;
    let started = Instant::now();
    for at in 0..entries {
        let (id, time) = (format!("{at:08x}"), "1970-01-01T00:00:00.000Z");
        let head = format!(
            "{{\"type\":\"message\",\"id\":\"{id}\",\"parentId\":\"{id}\",\"timestamp\":\"{time}\""
        );
        out.write_all(format!("{head},\"message\":{}}}\n", message(at)).as_bytes())?;
        out.sync_data()?;
    }
    Ok(started.elapsed().as_secs_f64() * 1e6 / f64::from(entries))
}
