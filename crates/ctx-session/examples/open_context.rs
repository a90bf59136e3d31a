//! Times opening a transcript and rebuilding its context, for `bench/peers`.
//!
//! `open_context open FILE ROUNDS` prints CPU milliseconds for each round and the number of
//! messages; `count` also reads every message and counts its tokens, as pi does.

use std::path::Path;
use std::process::ExitCode;

use cpu_time::ProcessTime;
use ctx_core::{Counter, Result, Tokens};
use ctx_session::Transcript;
use serde_json::json;

fn open(file: &Path) -> Result<u64> {
    Ok(Transcript::open(file)?.context(None)?.entries.len() as u64)
}

fn count(file: &Path) -> Result<u64> {
    let counter = Counter { free_user_images: true, ..Counter::default() };
    let context = Transcript::open(file)?.context(None)?;
    let tokens: Result<Tokens> = context.entries.iter().map(|e| e.tokens(&counter)).sum();
    Ok(tokens?.get())
}

#[expect(clippy::print_stdout, reason = "the figures are its output")]
#[expect(clippy::print_stderr, reason = "an example reports its errors here")]
fn main() -> ExitCode {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let (work, file, rounds): (fn(&Path) -> Result<u64>, _, _) = match arguments.as_slice() {
        [job, file, rounds] if job == "open" => (open, Path::new(file), rounds.parse()),
        [job, file, rounds] if job == "count" => (count, Path::new(file), rounds.parse()),
        _ => {
            eprintln!("usage: open_context open|count FILE ROUNDS");
            return ExitCode::from(2);
        }
    };
    let mut times = Vec::new();
    let mut result = 0;
    for _ in 0..rounds.unwrap_or(1) {
        let start = ProcessTime::now();
        match work(file) {
            Ok(value) => result = value,
            Err(error) => {
                eprintln!("error: {error}");
                return ExitCode::FAILURE;
            }
        }
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    println!("{}", json!({ "cpuMs": times, "result": result }));
    ExitCode::SUCCESS
}
