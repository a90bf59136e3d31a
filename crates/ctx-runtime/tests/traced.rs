//! Logs and metrics of a turn. In its own process, as a log subscriber applies to all threads.

#![allow(clippy::unwrap_used)] // Test helpers may unwrap.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ctx_config::Config;
use ctx_core::{Error, ErrorKind, ToolOutput};
use ctx_runtime::{NoListener, Runtime};
use ctx_session::Home;
use ctx_session::key::{FileId, SessionKey};
use ctx_testkit::chat::{ScriptedChat, ScriptedTools, Step, shared};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event as Logged, Metadata, Subscriber};

/// The name of a span or event, and its fields.
type Seen = (String, BTreeMap<String, String>);

/// Collects the names and fields of spans and events.
#[derive(Clone, Default)]
struct Collected {
    seen: Arc<Mutex<Vec<Seen>>>,
    open: Arc<Mutex<BTreeMap<u64, usize>>>,
    next: Arc<AtomicU64>,
}

struct Fields<'a>(&'a mut BTreeMap<String, String>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Collected {
    fn of(&self, name: &str) -> Vec<BTreeMap<String, String>> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|(found, _)| found == name).map(|(_, fields)| fields.clone()).collect()
    }

    fn logged(&self, message: &str) -> Vec<BTreeMap<String, String>> {
        let with = |fields: &BTreeMap<String, String>| {
            fields.get("message").is_some_and(|found| found == message)
        };
        let seen = self.seen.lock().unwrap();
        seen.iter().map(|(_, fields)| fields).filter(|fields| with(fields)).cloned().collect()
    }
}

impl Subscriber for Collected {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("ctx")
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let mut fields = BTreeMap::new();
        span.record(&mut Fields(&mut fields));
        let mut seen = self.seen.lock().unwrap();
        self.open.lock().unwrap().insert(id, seen.len());
        seen.push((span.metadata().name().to_owned(), fields));
        Id::from_u64(id)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        let at = self.open.lock().unwrap()[&span.into_u64()];
        values.record(&mut Fields(&mut self.seen.lock().unwrap()[at].1));
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Logged<'_>) {
        let mut fields = BTreeMap::new();
        event.record(&mut Fields(&mut fields));
        self.seen.lock().unwrap().push((event.metadata().target().to_owned(), fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Returns a tool that reads a different file of this number of tokens each time.
fn reader(tokens: usize) -> ScriptedTools {
    ScriptedTools::default().with("read", move |call| {
        let lines = (0..tokens / 8).map(|n| format!("line {n} of a long file here\n"));
        ToolOutput::text(format!("{}\n{}", call.arguments.as_str(), lines.collect::<String>()))
    })
}

fn count(runtime: &Runtime, layer: &str, action: &str) -> u64 {
    let actions = runtime.layer_actions();
    let found = actions.iter().find(|a| a.layer == layer && a.action == action);
    found.map_or(0, |action| action.count)
}

#[tokio::test]
async fn every_phase_has_a_span_and_a_compaction_logs_its_result() {
    let collected = Collected::default();
    tracing::subscriber::set_global_default(collected.clone()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir_all(&work).unwrap();
    let config = serde_json::json!({ "agents": { "defaults": { "workspace": work } } });
    let (model, first) = shared(ScriptedChat::new("script/a", 32_000));
    let (_, fallback) = shared(ScriptedChat::new("script/b", 32_000));
    let runtime =
        Runtime::builder(Home::at(dir.path()), Config::parse(&config.to_string()).unwrap());
    let runtime = runtime.model(first).fallback(fallback).build().unwrap();
    let say = async |text: String, tokens: usize| {
        let key = SessionKey::main(FileId::main());
        runtime.turn(&key, text, &reader(tokens), &mut NoListener).await.unwrap()
    };
    for n in 0..12 {
        model.then(Step::call("read", format!("{{\"file\":{n}}}")));
        model.then(Step::text(format!("file {n} says what it says")));
        say(format!("read file {n}"), 900).await;
    }
    model.then(Step::overflow());
    model.then(Step::overflow());
    model.then(Step::text("NO_REPLY"));
    say("and now?".into(), 10).await;
    model.then(Step::call("read", "{}"));
    model.then(Step::text("that was a lot"));
    say("a large one".into(), 60_000).await;
    model.then(Step::Fail(Error::new(ErrorKind::Capability, "not for you")));
    say("who are you?".into(), 10).await;

    assert!(count(&runtime, "overflow", "replace") > 0);
    assert!(count(&runtime, "compaction", "compact") > 0);
    assert!(count(&runtime, "tool-guard", "bound") > 0);
    assert_eq!(count(&runtime, "memory-flush", "flush"), 1);
    assert_eq!(count(&runtime, "failover", "fail"), 1);
    for name in ["turn", "guard", "assemble", "request", "tool", "compact", "flush"] {
        assert!(!collected.of(name).is_empty(), "{name}");
    }
    let turn = &collected.of("turn")[0];
    assert_eq!(turn["session"], "agent:main:main");
    let assembled = &collected.of("assemble")[0];
    for field in ["messages", "tokens", "window"] {
        assert!(assembled[field].parse::<u32>().unwrap() > 0, "{field}: {assembled:?}");
    }
    let request = &collected.of("request")[0];
    assert_eq!(request["gen_ai.request.model"], "a");
    let began = collected.logged("compaction triggered");
    for field in
        ["session_id", "message_count", "estimated_tokens", "context_window", "threshold", "parts"]
    {
        assert!(began[0].contains_key(field), "{field}: {:?}", began[0]);
    }
    let ended = collected.logged("compaction completed");
    for field in [
        "session_id",
        "original_tokens",
        "compacted_tokens",
        "compression_ratio",
        "duration_ms",
        "api_calls",
    ] {
        assert!(ended[0].contains_key(field), "{field}: {:?}", ended[0]);
    }
    let number = |field: &str| ended[0][field].parse::<f64>().unwrap();
    assert!(number("compacted_tokens") < number("original_tokens"));
    assert!(number("compression_ratio") < 1.0);
    let counted = collected.of("ctx::layers");
    assert!(counted.iter().any(|fields| fields["monotonic_counter.layer_actions"] == "1"));
    compacts_and_maintains_in_the_background(&collected).await;
}

/// Checks that a compaction after a turn also logs its beginning and its end, and that maintenance
/// in the mode `warn` logs what it would do.
async fn compacts_and_maintains_in_the_background(collected: &Collected) {
    let dir = tempfile::tempdir().unwrap();
    let sessions = Home::at(dir.path()).sessions_dir(&FileId::main());
    std::fs::create_dir_all(&sessions).unwrap();
    let old = r#"{"agent:main:old":{"sessionId":"old","updatedAt":1}}"#;
    std::fs::write(sessions.join("sessions.json"), old).unwrap();
    let answer = "one line of a long answer\n".repeat(250);
    let model = ScriptedChat::new("script/a", 32_000).always(move |_| Step::text(&answer));
    let (_, model) = shared(model);
    let config = Config::parse("{ session: { maintenance: { mode: 'warn' } } }").unwrap();
    let runtime = Runtime::builder(Home::at(dir.path()), config);
    let runtime = runtime.model(model).background(true).build().unwrap();
    let key = SessionKey::main(FileId::main());
    let counts = || {
        let count = |message| collected.logged(message).len();
        (count("compaction triggered"), count("compaction completed"))
    };
    let before = counts();
    for n in 0..40 {
        if counts().1 > before.1 {
            break;
        }
        let mut listener = NoListener;
        runtime.turn(&key, format!("message {n}"), &reader(1), &mut listener).await.unwrap();
    }
    runtime.close(&key).await.unwrap();
    let after = counts();
    assert!(after.1 > before.1, "it was compacted");
    assert_eq!(after.0 - before.0, after.1 - before.1);

    runtime.end_maintenance(Duration::from_secs(60)).await;
    let seen = collected.seen.lock().unwrap();
    let is_old = |fields: &BTreeMap<String, String>| {
        let has = |key: &str, value: &str| fields.get(key).is_some_and(|it| it.contains(value));
        has("dry_run", "true") && has("key", "agent:main:old")
    };
    assert!(seen.iter().any(|(_, fields)| is_old(fields)), "{seen:#?}");
}
