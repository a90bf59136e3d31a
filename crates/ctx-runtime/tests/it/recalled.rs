//! A host that uses only the types of this crate: a message from 300 messages ago, compacted since,
//! is in the next prompt when it is asked for.

// Test helpers may unwrap.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::sync::Arc;

use ctx_config::{Config, Profile};
use ctx_core::{
    AssembleRequest, CompactRequest, CompactionTrigger, ContextEngine, ContextView, Entry, Error,
    MemoryStore, Message, Role, SequentialIds, Services, Timestamp, Tokens, TurnContext,
};
use ctx_runtime::{MemoryLocation, Resolved, SessionSpec, SharedMemories, summary_models};
use ctx_testkit::provider::FakeProvider;
use serde_json::json;

const FACT: &str = "the parrot of the lighthouse keeper is called Quillon";
const QUESTION: &str = "remind me, what is the parrot of the lighthouse keeper called?";

/// Time between two messages: half a minute.
const STEP: i64 = 30_000;
const BEGAN: i64 = 1_767_600_000_000;

/// Runs one session: an engine with a memory, and a model that writes summaries.
struct Host {
    resolved: Resolved,
    engine: Arc<dyn ContextEngine>,
    memory: Arc<dyn MemoryStore>,
    ids: Arc<SequentialIds>,
}

impl Host {
    fn new(provider: &FakeProvider, profile: Profile, folder: &Path) -> Self {
        let config = json!({
            "agents": {"defaults": {"memoryContext": {"enabled": true, "evictionDays": 0}}},
            "models": {"providers": {"fake": {
                "baseUrl": provider.v1(), "api": "openai-completions", "apiKey": "none",
                "models": [{"id": "writer", "contextWindow": 64_000}],
            }}},
        });
        let config = Config::parse(&config.to_string()).unwrap();
        let wanted = SessionSpec {
            profile: Some(profile),
            window: Some(Tokens(32_000)),
            ..SessionSpec::default()
        };
        let resolved = wanted.resolve(&config).unwrap();
        let at = MemoryLocation::Folder(folder.to_owned());
        let memories = SharedMemories::default();
        let of = ("main", "s1");
        let memory = memories.of_session(&resolved, &at, of, None, |w| panic!("{w}"));
        let memory = memory.unwrap().expect("it is enabled");
        let writers = summary_models(&resolved.config, Some("fake/writer"), None).unwrap();
        let services = Services {
            memory: Some(memory.clone()),
            summary_models: writers.map(|writers| writers.models),
            ..Services::default()
        };
        let engine = resolved.engine(&services).unwrap();
        Self { resolved, engine, memory, ids: Arc::default() }
    }

    fn turn(&self, now: i64) -> TurnContext {
        TurnContext { ids: self.ids.clone(), ..TurnContext::at(Timestamp(now)) }
    }

    /// Returns the view as it would be sent.
    async fn assemble(&self, view: ContextView, now: i64) -> ContextView {
        let request = AssembleRequest { session_id: "s1".into(), view, turn: self.turn(now) };
        let mut view = self.engine.assemble(request).await.unwrap().into_view();
        let finished = view.finish().unwrap();
        assert!(finished.tokens <= self.resolved.ledger().limit());
        view
    }

    /// Compacts the session on the user's request. The removed messages are archived.
    async fn compact(&self, view: ContextView) -> Result<ContextView, Error> {
        let turn = self.turn(BEGAN + 320 * STEP);
        let trigger = CompactionTrigger::Manual;
        let mut request = CompactRequest::new("s1".to_owned(), view, turn, trigger);
        request.force = true;
        let done = self.engine.compact(request).await?.result.expect("it is forced");
        let mut view = ContextView::new(self.resolved.ledger());
        for nth in 0..320 {
            view.append(message(nth))?;
        }
        let kept = |at: &usize| *message(*at).id() == done.first_kept_entry_id;
        let kept = (0..320).find(kept).expect("it is one of ours");
        self.memory.archive(&(0..kept).map(message).collect::<Vec<_>>())?;
        view.compact(done, "c0ffee00", "compaction", "the user asked for it")?;
        Ok(view)
    }
}

fn entry(nth: usize, role: Role, words: &str) -> Arc<Entry> {
    let time = Timestamp(BEGAN + nth as i64 * STEP);
    let mut message = Message::text(role, words);
    message.meta.timestamp = Some(time);
    Arc::new(Entry::in_memory(format!("{nth:08x}"), message))
}

fn message(nth: usize) -> Arc<Entry> {
    match (nth, nth % 2) {
        // Words of the user would stay in the summary.
        (5, _) => entry(nth, Role::Assistant, &format!("before we go on: {FACT}.")),
        (_, 0) => {
            entry(nth, Role::User, &format!("please look at module {nth} and tell what it does"))
        }
        _ => {
            let words = format!("module {nth} reads its input, checks it and writes it out. ");
            entry(nth, Role::Assistant, &words.repeat(12))
        }
    }
}

/// Returns the request as one text.
fn prompt(view: &ContextView) -> String {
    let messages = view.messages().unwrap();
    messages.iter().map(|message| message.plain_text() + "\n").collect()
}

async fn a_fact_comes_back(profile: Profile) -> Result<(), Error> {
    let folder = tempfile::tempdir().unwrap();
    let provider = FakeProvider::builder().start().expect("it starts");
    let host = Host::new(&provider, profile, folder.path());
    let mut view = ContextView::new(host.resolved.ledger());
    for nth in 0..320 {
        if nth % 2 == 1 {
            view = host.assemble(view, BEGAN + nth as i64 * STEP).await;
        }
        view.append(message(nth))?;
    }
    let mut view = host.compact(view).await?;
    assert!(provider.count() > 0, "a model wrote the summary");
    let compacted = prompt(&view);
    assert!(!compacted.contains("Quillon"), "{compacted}");
    assert!(!compacted.contains("module 7 "), "old history is compacted: {compacted}");
    host.memory.flush().await?;
    view.append(entry(400, Role::User, QUESTION))?;
    let view = host.assemble(view, BEGAN + 400 * STEP).await;
    check(&prompt(&view), profile);
    host.memory.flush().await?;
    drop(host);

    // Another process, which has only the last messages and the folder.
    let host = Host::new(&provider, profile, folder.path());
    let mut view = ContextView::new(host.resolved.ledger());
    for nth in 310..320 {
        view.append(message(nth))?;
    }
    view.append(entry(400, Role::User, QUESTION))?;
    check(&prompt(&host.assemble(view, BEGAN + 400 * STEP).await), profile);
    Ok(())
}

fn check(prompt: &str, profile: Profile) {
    let at = |what: &str| prompt.find(what).unwrap_or_else(|| panic!("no {what} in {prompt}"));
    let (block, fact, last) = (at("<recalled-context"), at(FACT), at("module 319"));
    assert!(block < fact && fact < at(QUESTION), "{prompt}");
    assert_eq!(block < last, profile != Profile::default(), "{prompt}");
}

fn run(profile: Profile) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(a_fact_comes_back(profile)).unwrap();
}

#[test]
fn the_default_engine_with_memory_recalls_compacted_messages() {
    run(Profile::default());
}

#[test]
fn the_memory_extension_profile_recalls_trimmed_messages() {
    run(Profile::find("memory-context").unwrap());
}
