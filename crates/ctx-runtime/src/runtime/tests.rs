use std::sync::Arc;

use ctx_core::NoTools;
use ctx_testkit::chat::{ScriptedChat, shared};

use super::*;

fn runtime(home: &std::path::Path) -> (Arc<ScriptedChat>, Runtime) {
    let (model, shared) = shared(ScriptedChat::new("script/a", 100_000));
    let builder = Runtime::builder(Home::at(home), Config::parse("{}").unwrap());
    (model, builder.model(shared).build().unwrap())
}

fn nth(n: usize) -> SessionKey {
    format!("agent:main:chat-{n}").parse().unwrap()
}

#[tokio::test]
async fn concurrently_created_sessions_are_all_in_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let (_, runtime) = runtime(dir.path());
    let turns = (0..100).map(|n| {
        let runtime = runtime.clone();
        tokio::spawn(async move { runtime.turn(&nth(n), "hello", &NoTools, &mut NoListener).await })
    });
    for turn in turns.collect::<Vec<_>>() {
        turn.await.unwrap().unwrap();
    }
    let store = ctx_session::SessionStore::at(
        runtime.inner.sessions.home.sessions_file(&ctx_session::key::FileId::main()),
    );
    assert_eq!(store.load().unwrap().all().count(), 100);
}
