//! A host: a process with a home and a runtime of its own, which takes requests from stdin.

use std::io::Write;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ctx_config::Config;
use ctx_core::{
    Block, ChatRequest, ChatStop, Error, ErrorKind, Message, RawJson, Reply, Result, Role,
    Timestamp, ToolCall, ToolOutput,
};
use ctx_model::TokioTimer;
use ctx_runtime::forget::{ForgetPlan, ForgetRequest, MemoryToErase};
use ctx_runtime::lookup::Lookup;
use ctx_runtime::{NoListener, Runtime};
use ctx_session::Home;
use ctx_session::key::{FileId, SessionKey};
use ctx_shared::{HeldAgents, HostMemory, SharedSessions};
use ctx_store::{AnyStore, HostOptions};
use ctx_store_postgres::{Options, PostgresStore};
use ctx_testkit::chat::{ScriptedChat, ScriptedTools, Step, shared};
use serde::{Deserialize, Serialize};

use crate::erased::{mark, marked};

/// How long a lease is valid.
pub(crate) const LEASE: Duration = Duration::from_secs(1);

/// How long a host that starts waits for the database.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a host is asked to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Request {
    /// Runs a turn, in which the model calls a tool or does not.
    Turn { id: u64, session: String, has_call: bool },
    /// Closes a session.
    Close { id: u64, session: String },
    /// Removes a session from all hosts.
    Remove { id: u64, session: String },
    /// Forgets the turn with this id, on all hosts.
    Forget { id: u64, session: String, turn: u64 },
    /// Sets how much its clock is ahead, in milliseconds.
    Skew(i64),
}

/// What a host says about a request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Begun,
    Acknowledged,
    /// Another host holds the session: nothing was done.
    Refused(String),
    Failed(String),
}

struct Host {
    runtime: Runtime,
    home: Home,
    /// Removes and forgets beside the runtime, as the commands do on a host that runs.
    sessions: Arc<SharedSessions>,
    tools: ScriptedTools,
}

/// Runs a host until stdin ends.
pub(crate) async fn run(name: &str, url: &str, home: &str) -> ExitCode {
    let store = tokio::time::timeout(PATIENCE, opened(url)).await;
    let store = store.expect("the database can be reached within a minute");
    let options = HostOptions {
        name: name.to_owned(),
        lease: LEASE,
        wait: Duration::from_secs(20),
        ..HostOptions::default()
    };
    let ahead = Arc::new(AtomicI64::new(0));
    let clock = ahead.clone();
    let (_, model) = shared(ScriptedChat::new("script/a", 400_000).always(step));
    let (store, timer): (AnyStore, _) = (Arc::new(store), Arc::new(TokioTimer::default()));
    let home = Home::at(home);
    let sessions = Arc::new(SharedSessions::new(store.clone(), &options, home.clone(), timer));
    let runtime = Runtime::builder(home.clone(), Config::parse("{}").unwrap())
        .model(model)
        .clock(move || now(clock.load(Ordering::Relaxed)))
        .open_sessions(50)
        .shared(store, options)
        .build()
        .unwrap();
    let tools = ScriptedTools::default().with("note", |call| {
        ToolOutput::text(marked("result", call.id.trim_start_matches("call_")))
    });
    let host = Arc::new(Host { runtime, home, sessions, tools });
    let (line, mut requests) = tokio::sync::mpsc::unbounded_channel::<String>();
    std::thread::spawn(move || {
        std::io::stdin().lines().map_while(Result::ok).try_for_each(|text| line.send(text))
    });
    while let Some(line) = requests.recv().await {
        let request: Request = serde_json::from_str(&line).unwrap();
        match request {
            Request::Skew(milliseconds) => ahead.store(milliseconds, Ordering::Relaxed),
            other => drop(tokio::spawn(host.clone().answer(other))),
        }
    }
    ExitCode::SUCCESS
}

/// Opens the store, once the database can be reached.
async fn opened(url: &str) -> PostgresStore {
    let options = Options {
        connections: 4,
        statement_timeout: Duration::from_secs(2),
        patience: Duration::from_secs(6),
        ..Options::default()
    };
    loop {
        match PostgresStore::open(url, options.clone()).await {
            Ok(store) => return store,
            Err(error) if error.is_retryable() => {}
            Err(error) => panic!("{error}"),
        }
        // The database is down: that is what is tested.
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

impl Host {
    async fn answer(self: Arc<Self>, request: Request) {
        let (id, done) = match request {
            Request::Turn { id, session, has_call } => {
                say(id, &Answer::Begun);
                let text = marked("message", id) + if has_call { " with a call" } else { "" };
                let key: SessionKey = session.parse().unwrap();
                let mut listener = NoListener;
                let turn = self.runtime.turn(&key, text.as_str(), &self.tools, &mut listener);
                (id, turn.await.map(|outcome| assert_eq!(outcome.answer, Some(answer(id)))))
            }
            Request::Close { id, session } => {
                (id, self.runtime.close(&session.parse().unwrap()).await)
            }
            Request::Remove { id, session } => {
                say(id, &Answer::Begun);
                (id, self.sessions.remove(&session.parse().unwrap()).await.map(drop))
            }
            Request::Forget { id, session, turn } => {
                say(id, &Answer::Begun);
                (id, self.forget(&session.parse().unwrap(), turn).await)
            }
            Request::Skew(_) => return,
        };
        say(id, &done.map_or_else(|error| failed(&error), |()| Answer::Acknowledged));
    }

    /// Forgets the messages of a turn, as `ctx memory forget --matching` does.
    async fn forget(&self, session: &SessionKey, turn: u64) -> Result<()> {
        let agent = session.agent().cloned().unwrap_or_else(FileId::main);
        let of = Lookup::open(&Config::parse("{}")?, self.home.clone(), agent)?;
        let Lookup { agent, folder, memory, facts, .. } = of;
        let shared = HostMemory { folder, memory: memory.clone(), facts: facts.clone() };
        let held = self.sessions.hold_agents(vec![(agent.clone(), shared)]).await?;
        let memories = vec![MemoryToErase { agent, memory, facts }];
        let done = self.forget_held(&held, memories, mark(turn)).await;
        held.release().await;
        done
    }

    async fn forget_held(
        &self,
        held: &HeldAgents,
        memories: Vec<MemoryToErase>,
        matching: String,
    ) -> Result<()> {
        held.begin().await?;
        let home = self.home.clone();
        let erased = tokio::task::spawn_blocking(move || {
            let what = ForgetRequest { matching: Some(matching), ..ForgetRequest::default() };
            ForgetPlan::plan(&home, what, &memories)?.execute(now(0))
        });
        let report = erased.await.expect("it does not panic")?;
        held.publish().await?;
        match report.complete {
            true => Ok(()),
            false => Err(Error::new(ErrorKind::Io, "a text is still in files of the host")),
        }
    }
}

fn failed(error: &Error) -> Answer {
    let text = format!("{:?}: {error}", error.kind());
    match error.kind() == ErrorKind::Locked && text.contains("another host works on the session") {
        true => Answer::Refused(text),
        false => Answer::Failed(text),
    }
}

/// Writes an answer. If it cannot be read, the host is about to end.
fn say(id: u64, answer: &Answer) {
    let line = serde_json::to_string(&(id, answer)).unwrap() + "\n";
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(line.as_bytes()).and_then(|()| out.flush());
}

fn answer(id: u64) -> String {
    marked("answer", id)
}

/// Answers the last message, once its tool was called if it says so.
fn step(request: &ChatRequest) -> Step {
    let mut user = request.messages.iter().rev().filter(|message| message.role == Role::User);
    let text = user.find_map(|own| {
        let text = own.plain_text();
        text.find("message ").map(|at| text[at + "message ".len()..].to_owned())
    });
    let text = text.unwrap_or_default();
    let id = text.split_whitespace().next().and_then(|id| id.parse().ok()).unwrap_or(0);
    let is_called = request.messages.last().is_some_and(|last| last.role != Role::User);
    if is_called || !text.contains("with a call") {
        return Step::text(answer(id));
    }
    Step::Do(Box::new(move |_| {
        let call = ToolCall::new(format!("call_{id}"), "note", RawJson::from_text("{}"));
        let message = Message::new(Role::Assistant, vec![Block::ToolCall(call)]);
        Ok(Reply { message, stop: ChatStop::ToolUse })
    }))
}

/// Returns the time of a clock that is ahead.
fn now(ahead: i64) -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX) + ahead)
}
