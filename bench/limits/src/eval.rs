//! `ctx eval` over many sessions, as a process.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::Effort;
use crate::figure::{Figure, Goal, cpu_s};
use crate::process::{self, ctx};
use crate::session;

/// With `nothing`, which is always there, eight arms.
const PROFILES: &str = "openclaw,pi,proxy";
const PRESETS: &str = "codex,claude-code,opencode,truncation";

const SCAN: &str = "`memchr` and `serde_json`: the ids of each line, once";

/// The fields whose text differs between the copies of a session.
const TEXTS: [&str; 3] = ["text", "content", "thinking"];

pub(crate) fn measure(effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let folder = tempfile::tempdir_in(process::root().join("target"))?;
    let sessions = folder.path().join("sessions");
    fs::create_dir(&sessions)?;
    let megabytes = if effort.is_quick { 0.5 } else { 100.0 };
    let files = write_copies(&sources()?, &sessions, megabytes)?;
    let mut command = Command::new(ctx()?);
    command.arg("eval").arg(&sessions).args(["--profile", PROFILES, "--preset", PRESETS, "--json"]);
    command.env("CTX_HOME", folder.path().join("home"));
    // Once is enough: no single moment disturbs a run over so many sessions.
    let taken = process::run(&mut command)?;
    let scan = || files.iter().try_for_each(|file| session::scan(file).map(drop));
    let started = Instant::now();
    let (cpu, ()) = cpu_s(scan)?;
    let wall = started.elapsed().as_secs_f64();
    let figure = |part: &str, unit, value| {
        let count = files.len();
        let what = format!("`ctx eval`, {megabytes} MB of {count} sessions, 8 arms: {part}");
        Figure::new(format!("eval-{part}"), what, unit, value)
    };
    let time = figure("time", "s", taken.wall_ms / 1e3).beside_limit(SCAN, wall);
    print(time.goal(Goal::AtMost(20.0)));
    print(figure("CPU", "s", taken.cpu_ms / 1e3).beside_limit(SCAN, cpu));
    print(figure("peak", "MiB", taken.peak_mib).goal(Goal::AtMost(300.0)));
    Ok(())
}

/// Returns the recorded sessions, smallest first; without them, the examples.
fn sources() -> Result<Vec<PathBuf>> {
    let folders = match process::data() {
        Some(data) => vec![data.join("claude-code"), data.join("pi")],
        None => vec![process::root().join("examples")],
    };
    let mut found = Vec::new();
    for folder in folders {
        for file in fs::read_dir(folder)? {
            let file = file?;
            if file.path().extension().is_some_and(|extension| extension == "jsonl") {
                found.push((file.metadata()?.len(), file.path()));
            }
        }
    }
    ensure!(!found.is_empty(), "there are no recorded sessions");
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Writes copies of the sessions until they have this many megabytes. No two have the same ids or texts.
fn write_copies(sources: &[PathBuf], folder: &Path, megabytes: f64) -> Result<Vec<PathBuf>> {
    let (mut files, mut bytes) = (Vec::new(), 0);
    for (number, source) in sources.iter().cycle().enumerate() {
        if bytes as f64 >= megabytes * 1e6 {
            break;
        }
        let file = folder.join(format!("{number:03}.jsonl"));
        bytes += write_copy(source, &file, number / sources.len())?;
        files.push(file);
    }
    Ok(files)
}

fn write_copy(source: &Path, target: &Path, copy: usize) -> Result<u64> {
    let text = fs::read_to_string(source)?;
    let mut out = BufWriter::new(File::create(target)?);
    for line in text.lines() {
        match serde_json::from_str::<Value>(line) {
            Ok(mut entry) => {
                vary(&mut entry, "", copy);
                writeln!(out, "{entry}")?;
            }
            // Damaged, as it was recorded.
            Err(_) => writeln!(out, "{line}")?,
        }
    }
    out.flush()?;
    Ok(target.metadata()?.len())
}

/// Changes the ids and texts in the field `key` of an entry.
fn vary(value: &mut Value, key: &str, copy: usize) {
    match value {
        Value::Object(fields) => fields.iter_mut().for_each(|(key, value)| vary(value, key, copy)),
        Value::Array(items) => items.iter_mut().for_each(|item| vary(item, key, copy)),
        Value::String(text) if is_id(key) => {
            *text = text.chars().map(|c| turned(c, copy)).collect();
        }
        Value::String(text) if TEXTS.contains(&key) => text.push_str(&format!(" ({copy})")),
        _ => {}
    }
}

fn is_id(key: &str) -> bool {
    matches!(key, "id" | "uuid" | "tool_use_id")
        || (key != "modelId" && (key.ends_with("Id") || key.ends_with("Uuid")))
}

/// Maps digits to digits, and different ids to different ids.
fn turned(c: char, copy: usize) -> char {
    let turn = |first: u8, count: usize| {
        char::from(first + ((c as u8 - first) as usize + copy).rem_euclid(count) as u8)
    };
    match c {
        '0'..='9' => turn(b'0', 10),
        'a'..='f' => turn(b'a', 6),
        _ => c,
    }
}
