//! Subagents with a scripted model, and an engine that records its notifications.

mod life;
mod limits;
mod spy;

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use ctx_config::Config;
use ctx_core::{ErrorKind, NoTools, Result, Role, ToolCall, ToolOutput, ToolSpec, Toolbox};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{Home, SessionStore, Sessions};
use ctx_testkit::chat::{ScriptedChat, Step, shared};

use super::{SpawnRequest, SubagentOutcome};
use crate::host::NoListener;
use crate::runtime::{Builder, Runtime};

/// A home, a runtime in it, and the model that answers parents and subagents.
struct House {
    dir: tempfile::TempDir,
    runtime: Runtime,
    model: Arc<ScriptedChat>,
    agent: FileId,
}

impl House {
    /// Creates a host. Each test uses another agent, so that their engine records do not mix.
    fn new(agent: &str, model: ScriptedChat) -> Self {
        Self::with(agent, model, "", |builder| builder)
    }

    fn with(
        agent: &str,
        model: ScriptedChat,
        subagents: &str,
        more: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (model, of_runtime) = shared(model);
        let config = format!(
            "{{ plugins: {{ slots: {{ contextEngine: 'spy' }} }}, \
             agents: {{ defaults: {{ subagents: {{ {subagents} }} }} }} }}"
        );
        let builder = Runtime::builder(Home::at(dir.path()), Config::parse(&config).unwrap());
        let runtime = more(builder.model(of_runtime)).build().unwrap();
        Self { dir, runtime, model, agent: agent.parse().unwrap() }
    }

    fn main(&self) -> SessionKey {
        SessionKey::main(self.agent.clone())
    }

    async fn say(&self, text: &str) -> Option<String> {
        let main = self.main();
        self.runtime.turn(&main, text, &NoTools, &mut NoListener).await.unwrap().answer
    }

    async fn spawn(&self, request: SpawnRequest) -> Result<SubagentOutcome> {
        self.runtime.spawn(&self.main(), request, &NoTools, &mut NoListener).await
    }

    fn notifications(&self) -> Vec<String> {
        spy::notifications(self.agent.as_str())
    }

    fn sessions(&self) -> Sessions {
        let home = Home::at(self.dir.path());
        SessionStore::at(home.sessions_file(&self.agent)).load().unwrap()
    }

    /// Number of transcripts in the folder of sessions.
    fn transcripts(&self) -> usize {
        let folder = Home::at(self.dir.path()).sessions_dir(&self.agent);
        let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
        files.filter(|file| file.extension().is_some_and(|end| end == "jsonl")).count()
    }

    /// Returns the role and text of each message in the last request to the model.
    fn asked(&self) -> Vec<(Role, String)> {
        let request = self.model.requests().pop().unwrap();
        request.messages.iter().map(|m| (m.role.clone(), m.plain_text())).collect()
    }
}

/// A tool that gives its input to a subagent, and returns the answer.
struct Delegate {
    runtime: Mutex<Option<Runtime>>,
    parent: SessionKey,
    forked: bool,
    specs: [ToolSpec; 1],
}

impl Delegate {
    fn of(house: &House, forked: bool) -> Self {
        let spec = ToolSpec {
            name: "delegate".into(),
            description: "Delegates a task to a subagent.".into(),
            parameters: ctx_core::RawJson::from_text(r#"{"type":"object"}"#),
        };
        let runtime = Mutex::new(Some(house.runtime.clone()));
        Self { runtime, parent: house.main(), forked, specs: [spec] }
    }
}

#[async_trait]
impl Toolbox for Delegate {
    fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    async fn run(&self, call: &ToolCall) -> ToolOutput {
        let runtime = self.runtime.lock().unwrap().clone().unwrap();
        let task = call.arguments.as_str();
        let request = match self.forked {
            true => SpawnRequest::forked(task),
            false => SpawnRequest::isolated(task),
        };
        match runtime.spawn(&self.parent, request, &NoTools, &mut NoListener).await {
            Ok(done) => ToolOutput::text(done.turn.answer.unwrap_or_default()),
            Err(error) => ToolOutput::error(error.to_string()),
        }
    }
}

fn hangs() -> ScriptedChat {
    ScriptedChat::new("script/a", 100_000).always(|request| {
        let task = request.messages.iter().any(|m| m.plain_text().contains("Task: "));
        if task { Step::Hang("hm".into()) } else { Step::text("yes") }
    })
}

/// Lets other tasks run until `done`.
async fn until(mut done: impl FnMut() -> bool) {
    for _ in 0..100_000 {
        if done() {
            return;
        }
        tokio::task::yield_now().await;
        std::thread::yield_now();
    }
    panic!("the condition was never met");
}

fn kind(done: Result<SubagentOutcome>) -> ErrorKind {
    done.unwrap_err().kind()
}
