//! The cost of the runtime without the model: a turn in a long session, and many concurrent
//! sessions.
//!
//! Each part runs in its own process, so that their memory is measured separately: `cargo bench -p
//! ctx-runtime --bench turns` runs both; `-- long` or `-- many` runs one of them. `CTX_BENCH_DIR`
//! is the folder whose disk is measured; the system's temporary one by default.

#![allow(clippy::print_stdout)] // The figures are this program's output.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use ctx_config::Config;
use ctx_core::{
    Block, ChatModel, ChatRequest, ChatStop, Deltas, Message, ModelCard, NoTools, RawJson, Reply,
    Result, Role, Timestamp, Tokens, ToolCall, ToolOutput, ToolSpec, Toolbox,
};
use ctx_runtime::{Builder, NoListener, Runtime};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{
    Durability, Home, LogOptions, NewSession, SessionEntry, SessionLog, SessionStore,
};
use tokio::task::JoinSet;

/// Number of tokens of the long session.
const LONG: u32 = 200_000;
/// Number of turns that are measured in it.
const TURNS: usize = 500;
const SESSIONS: usize = 1_000;
const MESSAGES: usize = 200;
/// Number of turns over all sessions, and of concurrent turns.
const SHARED_TURNS: usize = 6_000;
const AT_ONCE: usize = 64;

/// Answers immediately, and calls a tool first if there is one.
struct AtOnce(ModelCard);

impl AtOnce {
    fn new(window: u32) -> Arc<Self> {
        Arc::new(Self(ModelCard {
            name: "bench/at-once".into(),
            provider: "bench".into(),
            id: "at-once".into(),
            api: "openai-completions".into(),
            window: Some(Tokens(window)),
            max_output: Some(Tokens(8_192)),
        }))
    }
}

#[async_trait]
impl ChatModel for AtOnce {
    fn card(&self) -> &ModelCard {
        &self.0
    }

    async fn answer(&self, request: ChatRequest, deltas: Deltas<'_>) -> Result<Reply> {
        let newest = request.messages.last().map(|message| message.role.clone());
        let n = request.messages.len();
        let (block, stop) = match newest == Some(Role::User) && !request.tools.is_empty() {
            true => {
                let call = ToolCall::new(
                    format!("call_{n}"),
                    "read",
                    RawJson::from_text(format!("{{\"path\":\"src/file{n}.rs\"}}")),
                );
                (Block::ToolCall(call), ChatStop::ToolUse)
            }
            false => {
                let text = prose(n, 60);
                deltas(ctx_core::Delta::Text(&text));
                (Block::text(text), ChatStop::End)
            }
        };
        let message = Message::new(Role::Assistant, vec![block]);
        Ok(Reply { message, stop })
    }
}

/// A tool with results of about 700 tokens.
struct Reads([ToolSpec; 1]);

impl Reads {
    fn new() -> Self {
        Self([ToolSpec {
            name: "read".into(),
            description: "Reads a file.".into(),
            parameters: RawJson::from_text(
                r#"{"type":"object","properties":{"path":{"type":"string"}}}"#,
            ),
        }])
    }
}

#[async_trait]
impl Toolbox for Reads {
    fn specs(&self) -> &[ToolSpec] {
        &self.0
    }

    async fn run(&self, call: &ToolCall) -> ToolOutput {
        ToolOutput::text(prose(call.arguments.as_str().len(), 700))
    }
}

/// Returns words of about this number of tokens, different for each `n`.
fn prose(n: usize, tokens: usize) -> String {
    const WORDS: [&str; 8] =
        ["window", "ledger", "compacts", "the vault", "budget", "request", "is measured", "turn"];
    let mut text = format!("{n}: ");
    let mut at = n;
    while text.len() < 4 * tokens {
        at = at.wrapping_mul(31).wrapping_add(7);
        text.push_str(WORDS[at >> 3 & 7]);
        text.push(if at.is_multiple_of(11) { '\n' } else { ' ' });
    }
    text
}

fn folder() -> tempfile::TempDir {
    let within = std::env::var_os("CTX_BENCH_DIR").map(PathBuf::from);
    let within = within.unwrap_or_else(std::env::temp_dir);
    tempfile::tempdir_in(within).expect("a folder")
}

fn builder(home: &Path, window: u32) -> Builder {
    // By default, no more than 500 sessions are kept.
    let config = format!("{{ session: {{ maintenance: {{ maxEntries: {} }} }} }}", 2 * SESSIONS);
    let config = Config::parse(&config).expect("a configuration");
    let builder = Runtime::builder(Home::at(home), config);
    builder.model(AtOnce::new(window)).system_prompt(prose(0, 400)).limit(AT_ONCE)
}

fn runtime(home: &Path, window: u32) -> Runtime {
    builder(home, window).build().expect("a runtime")
}

/// Formats the median and the 99th percentile.
fn percentiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e3;
    format!("p50 {:.2} ms, p99 {:.2} ms, max {:.2} ms", at(0.5), at(0.99), at(1.0))
}

/// Formats the memory of this process as reported by Linux: current and peak.
fn resident() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let lines = status.lines().filter(|l| l.starts_with("VmRSS") || l.starts_with("VmHWM"));
    let in_mib = lines.filter_map(|line| {
        let mut parts = line.split_whitespace();
        let (name, kib) = (parts.next()?, parts.next()?.parse::<u64>().ok()?);
        Some(format!("{name} {} MiB", kib >> 10))
    });
    in_mib.collect::<Vec<_>>().join(", ")
}

/// Measures a turn in a session of 200,000 tokens.
async fn long() {
    let dir = folder();
    let runtime = runtime(dir.path(), 1_000_000);
    let key = SessionKey::main(FileId::main());
    let tools = Reads::new();
    let mut tokens = 0;
    let mut sent = 0;
    while tokens < LONG {
        let text = prose(sent, 120);
        sent += 1;
        let outcome = runtime.turn(&key, text, &tools, &mut NoListener).await.expect("a turn");
        tokens = outcome.manifest.expect("of the last request").tokens.get() as u32;
    }
    println!("a session of {tokens} tokens, {} messages, legacy engine", sent * 4);
    for (what, tools) in [
        ("without tools", &NoTools as &dyn Toolbox),
        ("with one tool call", &tools as &dyn Toolbox),
    ] {
        // The first turn resolves the changed tools, which is not part of a turn's cost.
        runtime.turn(&key, "first", tools, &mut NoListener).await.expect("a turn");
        let mut times = Vec::with_capacity(TURNS);
        for n in 0..TURNS {
            let text = prose(n, 30);
            let began = Instant::now();
            runtime.turn(&key, text, tools, &mut NoListener).await.expect("a turn");
            times.push(began.elapsed());
        }
        println!("  a turn {what}: {}", percentiles(&mut times));
    }
    let mut syncs: Vec<_> = (0..200).map(|_| sync(dir.path())).collect();
    println!("  of which two syncs of 1 KiB for each turn: a sync {}", percentiles(&mut syncs));
    runtime.close(&key).await.expect("it is closed");
    let began = Instant::now();
    runtime.turn(&key, "again", &tools, &mut NoListener).await.expect("a turn");
    println!("  the first turn after the session was closed: {:.1?}", began.elapsed());
    println!("  {}", resident());
}

fn sync(dir: &Path) -> Duration {
    use std::io::Write;
    let path = dir.join("sync");
    let mut file = std::fs::File::options().append(true).create(true).open(path).expect("a file");
    file.write_all(&[b'x'; 1_024]).expect("it is written");
    let began = Instant::now();
    file.sync_data().expect("it is synced");
    began.elapsed()
}

fn nth(n: usize) -> SessionKey {
    format!("agent:main:chat-{n}").parse().expect("a key")
}

/// Returns the current time: sessions from yesterday would be reset.
fn now() -> Timestamp {
    ctx_session::clock::now()
}

/// Writes the sessions to disk.
fn write_sessions(home: &Home) {
    let store = SessionStore::at(home.sessions_file(&FileId::main()));
    let entry = |n: usize| SessionEntry::new(format!("session-{n}"), now());
    store
        .update(|sessions| {
            for n in 0..SESSIONS {
                sessions.insert(&nth(n), entry(n))?;
            }
            Ok(())
        })
        .expect("they are listed");
    for n in 0..SESSIONS {
        let path = home.transcript(&nth(n), &entry(n)).expect("a path");
        let new = NewSession {
            id: FileId::new(format!("session-{n}")).expect("an id"),
            timestamp: now(),
            cwd: "/".into(),
            parent_session: None,
        };
        let options = LogOptions { durability: Durability::None, ..LogOptions::default() };
        let mut log = SessionLog::create(&path, &new, options).expect("a session");
        for m in 0..MESSAGES {
            let role = if m % 2 == 0 { Role::User } else { Role::Assistant };
            let message = Message::text(role, prose(n * MESSAGES + m, 120));
            log.append_message(&message, now()).expect("it is written");
        }
    }
}

/// Measures a thousand sessions of 200 messages in one process. Each has two open files, so all can
/// stay open only if the limit of open files is 4,096.
async fn many() {
    let dir = folder();
    let home = Home::at(dir.path());
    write_sessions(&home);
    let runtime = runtime(dir.path(), 200_000);
    println!("{SESSIONS} sessions of {MESSAGES} messages, before any is open: {}", resident());
    let began = Instant::now();
    turns(&runtime, (0..SESSIONS).collect()).await;
    println!("  each opened by a turn in {:.1?}: {}", began.elapsed(), resident());
    let order = (0..SHARED_TURNS).map(|n| n * 7_919 % SESSIONS).collect();
    let began = Instant::now();
    let mut times = turns(&runtime, order).await;
    let rate = SHARED_TURNS as f64 / began.elapsed().as_secs_f64();
    println!("  {SHARED_TURNS} turns in them, {AT_ONCE} at once: {rate:.0} turns/s");
    println!("  each, including the wait: {}", percentiles(&mut times));
    println!("  {}", resident());
    drop(runtime);
    // Like a low open file limit: most turns first open their session and close another.
    let builder = builder(dir.path(), 200_000).open_sessions(SESSIONS / 4);
    let runtime = builder.build().expect("a runtime");
    let order = (0..SHARED_TURNS / 4).map(|n| n * 7_919 % SESSIONS).collect();
    let began = Instant::now();
    turns(&runtime, order).await;
    let rate = (SHARED_TURNS / 4) as f64 / began.elapsed().as_secs_f64();
    println!("  with {} of them open at most: {rate:.0} turns/s; {}", SESSIONS / 4, resident());
}

/// Runs turns in these sessions, a fixed number at once.
async fn turns(runtime: &Runtime, sessions: Vec<usize>) -> Vec<Duration> {
    let mut tasks = JoinSet::new();
    for worker in 0..AT_ONCE {
        let (runtime, mine) = (runtime.clone(), sessions.clone());
        tasks.spawn(async move {
            let mut times = Vec::new();
            for n in mine.into_iter().skip(worker).step_by(AT_ONCE) {
                let began = Instant::now();
                let text = prose(n, 30);
                runtime.turn(&nth(n), text, &NoTools, &mut NoListener).await.expect("a turn");
                times.push(began.elapsed());
            }
            times
        });
    }
    tasks.join_all().await.concat()
}

fn main() {
    let part = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let tokio = tokio.expect("a runtime");
    match part.as_deref() {
        Some("long") => tokio.block_on(long()),
        Some("many") => tokio.block_on(many()),
        _ => {
            for part in ["long", "many"] {
                let program = std::env::current_exe().expect("this program");
                let ran = Command::new(program).arg(part).status().expect("it runs");
                assert!(ran.success(), "{part} failed");
            }
        }
    }
}
