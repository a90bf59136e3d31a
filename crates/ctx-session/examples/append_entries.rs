//! Times appending to a session, for `bench/peers`.
//!
//! `append_entries none|data|bare FILE ENTRIES` copies the pi session FILE to a ctx session beside
//! it and appends that number of user messages of 200 characters: `none` never syncs, `data` makes
//! each entry durable before the next, `bare` writes the same bytes with only `write` and
//! `fdatasync`. Prints microseconds per entry.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use ctx_core::{RawJson, Timestamp};
use ctx_session::{Durability, LogOptions, NewEntry, SessionLog};
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Copies the session with ctx's mark in its header, so that ctx may append to it.
fn ours(file: &Path) -> Outcome<PathBuf> {
    let text = fs::read_to_string(file)?;
    let (header, entries) = text.split_once('\n').unwrap_or((&text, ""));
    let mut header: Value = serde_json::from_str(header)?;
    header["ctx"] = 1.into();
    let copy = file.with_extension("ours.jsonl");
    let mut out = File::create(&copy)?;
    writeln!(out, "{header}")?;
    out.write_all(entries.as_bytes())?;
    out.sync_all()?;
    Ok(copy)
}

fn message(at: u32) -> String {
    json!({
        "role": "user", "content": [{ "type": "text", "text": "x".repeat(200) }], "timestamp": at,
    })
    .to_string()
}

fn through_the_log(copy: &Path, durability: Durability, entries: u32) -> Outcome<f64> {
    let mut log = SessionLog::open(copy, LogOptions { durability, ..LogOptions::default() })?;
    let start = Instant::now();
    for at in 0..entries {
        let entry = NewEntry::message(RawJson::from_text(message(at)));
        log.append(&entry, Timestamp(i64::from(at)))?;
    }
    let took = start.elapsed().as_secs_f64();
    log.close()?;
    Ok(took)
}

fn bare(copy: &Path, entries: u32) -> Outcome<f64> {
    let mut file = OpenOptions::new().append(true).open(copy)?;
    let start = Instant::now();
    for at in 0..entries {
        let time = "1970-01-01T00:00:00.000Z";
        let line = format!(
            "{{\"type\":\"message\",\"id\":\"{at:08x}\",\"parentId\":\"{at:08x}\",\"timestamp\":\"{time}\",\
             \"message\":{}}}\n",
            message(at)
        );
        file.write_all(line.as_bytes())?;
        file.sync_data()?;
    }
    Ok(start.elapsed().as_secs_f64())
}

fn run(arguments: &[String]) -> Outcome<Option<f64>> {
    let [job, file, entries] = arguments else { return Ok(None) };
    let entries: u32 = entries.parse()?;
    let copy = ours(Path::new(file))?;
    let took = match job.as_str() {
        "none" => through_the_log(&copy, Durability::None, entries),
        "data" => through_the_log(&copy, Durability::PerEntry, entries),
        "bare" => bare(&copy, entries),
        _ => return Ok(None),
    }?;
    Ok(Some(took * 1e6 / f64::from(entries.max(1))))
}

#[expect(clippy::print_stdout, reason = "the figures are its output")]
#[expect(clippy::print_stderr, reason = "an example reports its errors here")]
fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(Some(micros)) => {
            println!("{}", json!({ "usPerEntry": micros }));
            ExitCode::SUCCESS
        }
        Ok(None) => {
            eprintln!("usage: append_entries none|data|bare FILE ENTRIES");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
