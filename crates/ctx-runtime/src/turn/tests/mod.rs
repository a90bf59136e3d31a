//! Turns with a scripted model, each in its own home.

mod after;
mod bad;
mod basics;
mod begins;
mod branch;
mod commands;
mod dropped;
mod engines;
mod memory;
mod own;
mod recovery;
mod tools;

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

use ctx_config::Config;
use ctx_core::{ChatModel, Message, NoTools, Role, Timestamp, Toolbox};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{Home, SessionEntry, SessionStore, Transcript};
use ctx_testkit::chat::{ScriptedChat, shared};

use crate::host::{Event, Input, NoListener, NoticeKind, TurnOutcome};
use crate::runtime::{Builder, Runtime};

/// A home, a runtime in it, and the model that answers.
pub(super) struct House {
    dir: tempfile::TempDir,
    pub(super) runtime: Option<Runtime>,
    pub(super) model: Arc<ScriptedChat>,
    clock: Arc<AtomicI64>,
}

pub(super) fn main_key() -> SessionKey {
    SessionKey::main(FileId::main())
}

impl House {
    pub(super) fn new(model: ScriptedChat) -> Self {
        Self::with(model, "{}", |builder| builder)
    }

    pub(super) fn with(
        model: ScriptedChat,
        config: &str,
        more: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (model, shared) = shared(model);
        let mut house =
            Self { dir, runtime: None, model, clock: Arc::new(AtomicI64::new(1_765_000_000_000)) };
        house.open(config, shared, more);
        house
    }

    fn open(
        &mut self,
        config: &str,
        model: Arc<dyn ChatModel>,
        more: impl FnOnce(Builder) -> Builder,
    ) {
        let clock = self.clock.clone();
        let config = config.replace("$DIR", &self.dir.path().display().to_string());
        let builder = Runtime::builder(self.home(), Config::parse(&config).unwrap())
            .model(model)
            .clock(move || Timestamp(clock.fetch_add(10, Ordering::Relaxed)));
        self.runtime = None;
        self.runtime = Some(more(builder).build().unwrap());
    }

    /// Opens the home again as another process would: only the files remain.
    pub(super) fn reopened(&mut self) {
        let model = self.model.clone();
        self.open("{}", model, |builder| builder);
    }

    pub(super) fn set_clock(&self, to: i64) {
        self.clock.store(to, Ordering::Relaxed);
    }

    pub(super) fn dir(&self) -> PathBuf {
        self.dir.path().to_owned()
    }

    pub(super) fn home(&self) -> Home {
        Home::at(self.dir.path().join("home"))
    }

    pub(super) fn runtime(&self) -> &Runtime {
        self.runtime.as_ref().unwrap()
    }

    pub(super) async fn say(&self, text: &str) -> ctx_core::Result<TurnOutcome> {
        self.runtime().turn(&main_key(), text, &NoTools, &mut NoListener).await
    }

    pub(super) async fn say_with(
        &self,
        text: &str,
        tools: &dyn Toolbox,
    ) -> ctx_core::Result<TurnOutcome> {
        self.runtime().turn(&main_key(), text, tools, &mut NoListener).await
    }

    /// Runs a turn. Returns its outcome and its events.
    pub(super) async fn events(
        &self,
        text: &str,
        tools: &dyn Toolbox,
    ) -> (TurnOutcome, Vec<String>) {
        let events = Mutex::new(Vec::new());
        let mut listener = |event: Event<'_>| {
            let words = match event {
                Event::Text(text) => format!("text {text}"),
                Event::Thinking(text) => format!("thinking {text}"),
                Event::Restarted => "restarted".into(),
                Event::ToolBegan(call) => format!("tool {}", call.name),
                Event::ToolEnded(call, _) => format!("tool {} ended", call.name),
                Event::Notice(notice) => format!("notice {}", notice.kind.name()),
                Event::CompactionBegan { trigger, .. } => format!("compaction {trigger:?}"),
                Event::CompactionEnded { compacted, count, .. } => {
                    format!("compaction ended {compacted} {count}")
                }
            };
            events.lock().unwrap().push(words);
        };
        let done = self.runtime().turn(&main_key(), Input::from(text), tools, &mut listener).await;
        (done.unwrap(), events.into_inner().unwrap())
    }

    pub(super) fn file(&self) -> PathBuf {
        self.home().transcript(&main_key(), &self.entry()).unwrap()
    }

    /// Returns the entry of the session in `sessions.json`.
    pub(super) fn entry(&self) -> SessionEntry {
        let sessions = SessionStore::at(self.home().sessions_file(&FileId::main()));
        sessions.load().unwrap().get(&main_key()).unwrap().clone()
    }

    /// Returns role and text of every message in the session's file, compacted or not.
    pub(super) fn stored(&self) -> Vec<(Role, String)> {
        let transcript = Transcript::open(&self.file()).unwrap();
        assert_eq!(transcript.problems, [], "{}", self.file().display());
        let line = transcript.main_line().unwrap();
        line.iter().map(|item| role_and_text(&item.entry.message().unwrap())).collect()
    }
}

pub(super) fn role_and_text(message: &Message) -> (Role, String) {
    let mut text = message.plain_text();
    for call in message.tool_calls() {
        text.push_str(&format!("<{} {}>", call.name, call.arguments.as_str()));
    }
    for result in message.tool_results() {
        text.push_str(&result.plain_text());
    }
    (message.role.clone(), text)
}

pub(super) fn kinds(outcome: &TurnOutcome) -> Vec<NoticeKind> {
    outcome.notices.iter().map(|notice| notice.kind).collect()
}

/// A clock on which waiting takes no time, and that records the waits.
#[derive(Default)]
pub(super) struct Impatient {
    now: AtomicI64,
    waits: Mutex<Vec<u64>>,
}

impl Impatient {
    pub(super) fn waits(&self) -> Vec<u64> {
        self.waits.lock().unwrap().clone()
    }
}

#[async_trait::async_trait]
impl ctx_core::Timer for Impatient {
    fn elapsed(&self) -> std::time::Duration {
        std::time::Duration::from_millis(self.now.load(Ordering::Relaxed) as u64)
    }

    async fn sleep(&self, duration: std::time::Duration) {
        self.now.fetch_add(duration.as_millis() as i64, Ordering::Relaxed);
        self.waits.lock().unwrap().push(duration.as_millis() as u64);
    }
}

/// Returns text with this number of tokens; every line is different.
pub(super) fn filler(tokens: usize) -> String {
    (0..tokens / 8).map(|n| format!("line {n} of a long file here\n")).collect()
}

/// Returns a tool that reads a different file of this number of tokens each time.
pub(super) fn reader(tokens: usize) -> ctx_testkit::chat::ScriptedTools {
    ctx_testkit::chat::ScriptedTools::default().with("read", move |call| {
        ctx_core::ToolOutput::text(format!("{}\n{}", call.arguments.as_str(), filler(tokens)))
    })
}

/// Returns calls of `read`, each of a different file.
pub(super) fn reads(files: std::ops::Range<usize>) -> ctx_testkit::chat::Step {
    let calls = files.map(|n| ("read".to_owned(), format!("{{\"file\":{n}}}")));
    ctx_testkit::chat::Step::Calls(calls.collect())
}
