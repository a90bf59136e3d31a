//! Measures how soon `ctx mcp` answers over the sessions of a home, and how fast it archives them.
//!
//! ```sh
//! cargo xtask home --sessions 500 /tmp/home
//! cargo bench -p ctx-cli --bench mcp -- /tmp/home
//! ```
//!
//! ctx reads the home like the home of a new user. It writes its own files to another folder, which
//! is removed afterwards.

#![allow(
    clippy::print_stdout,
    clippy::expect_used,
    reason = "a program that prints what it measured"
)]

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use ctx_session::{self, Discovery, Transcript};
use serde_json::{Value, json};

/// Number of bytes to archive.
const ARCHIVED: u64 = 100_000_000;

/// The timeout.
const LONGEST: Duration = Duration::from_secs(600);

struct Client {
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    id: u64,
}

impl Client {
    fn send(&mut self, message: &Value) {
        writeln!(self.stdin, "{message}").expect("it reads");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.id += 1;
        let id = self.id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("it answers");
        serde_json::from_str::<Value>(&line).expect("JSON")["result"]["structuredContent"].take()
    }

    fn recall(&mut self, query: &str) -> (Duration, Value) {
        let begun = Instant::now();
        let params = json!({ "name": "recall", "arguments": { "query": query, "budget": 1000 } });
        let answer = self.ask("tools/call", &params);
        (begun.elapsed(), answer)
    }
}

fn main() {
    let home = std::env::args().skip(1).find(|arg| !arg.starts_with('-'));
    let Some(home) = home.map(PathBuf::from) else {
        println!("name a home: cargo bench -p ctx-cli --bench mcp -- HOME");
        return;
    };
    let home = home.canonicalize().expect("the home exists");
    let Discovery { sessions, .. } = Discovery::in_folder(&home).expect("a folder");
    let newest = sessions.first().expect("the home has sessions");
    let bytes: u64 = sessions.iter().map(|session| session.bytes).sum();
    println!("{} sessions, {} MB", sessions.len(), bytes / 1_000_000);
    let queries = queries(&newest.path);

    let kept = tempfile::tempdir().expect("a folder");
    let project = newest.project.clone().filter(|project| project.is_dir());
    let begun = Instant::now();
    let mut child = Command::new(env!("CARGO_BIN_EXE_ctx"))
        .arg("mcp")
        .env("HOME", &home)
        .env("CTX_HOME", kept.path())
        .current_dir(project.unwrap_or_else(|| home.clone()))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it runs");
    let stdin = child.stdin.take().expect("a pipe");
    let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut client = Client { stdin, stdout, id: 0 };
    client.ask(
        "initialize",
        &json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "bench", "version": "1" } }),
    );
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    println!("initialized after {:.2} s", begun.elapsed().as_secs_f64());

    let is_of_newest = |answer: &Value| {
        let of = answer["passages"].as_array().into_iter().flatten();
        of.filter(|passage| passage["used"] == true)
            .any(|passage| passage["session"] == newest.session_id.as_str())
    };
    while begun.elapsed() < LONGEST && !is_of_newest(&client.recall(&queries[0]).1) {
        std::thread::yield_now();
    }
    println!("first recall over the newest session after {:.2} s", begun.elapsed().as_secs_f64());

    let mut times = Vec::new();
    let archived = loop {
        let (time, _) = client.recall(&queries[times.len() % queries.len()]);
        times.push(time);
        let archived = archived(kept.path());
        if archived >= ARCHIVED.min(bytes) || begun.elapsed() > LONGEST {
            break archived;
        }
        // A client that polls without a pause would use up a core.
        std::thread::park_timeout(Duration::from_millis(100));
    };
    println!("{} MB archived after {:.1} s", archived / 1_000_000, begun.elapsed().as_secs_f64());
    report("recalls meanwhile", &mut times);
    let mut times: Vec<_> =
        (0..200).map(|n| client.recall(&queries[n % queries.len()]).0).collect();
    report("recalls then", &mut times);
    let memory =
        std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
    memory.lines().filter(|line| line.starts_with("VmRSS")).for_each(|line| println!("{line}"));
    let _ = child.kill();
    let _ = child.wait();
}

/// Returns questions made from a session: the beginnings of long messages.
fn queries(path: &Path) -> Vec<String> {
    let transcript = Transcript::open(path).expect("a transcript");
    let line = transcript.main_line().expect("its messages");
    let texts = line.iter().filter_map(|item| item.entry.message().ok());
    let queries = texts.filter_map(|message| {
        let words: Vec<String> =
            message.plain_text().split_whitespace().take(12).map(str::to_owned).collect();
        (words.len() == 12).then(|| words.join(" "))
    });
    let queries: Vec<_> = queries.take(20).collect();
    assert!(!queries.is_empty(), "the newest session says something");
    queries
}

/// Returns the number of bytes of completely archived sessions.
fn archived(kept: &Path) -> u64 {
    let list = kept.join("agents/main/memory/context/sessions.json");
    let list: Value =
        serde_json::from_slice(&std::fs::read(list).unwrap_or_default()).unwrap_or_default();
    let sessions = list["sessions"].as_object().into_iter().flatten();
    sessions.filter_map(|(_, session)| session["bytes"].as_u64()).sum()
}

fn report(what: &str, times: &mut [Duration]) {
    times.sort_unstable();
    let at = |share: f64| {
        let place = (times.len() as f64 * share) as usize;
        times.get(place.min(times.len().saturating_sub(1))).map_or(0.0, |t| t.as_secs_f64() * 1e3)
    };
    println!(
        "{what} ({}): p50 {:.1} ms, p99 {:.1} ms, longest {:.1} ms",
        times.len(),
        at(0.5),
        at(0.99),
        at(1.0)
    );
}
