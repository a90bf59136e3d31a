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
async fn views_of_sessions_unused_for_longest_are_let_go_of_and_made_again_from_the_file() {
    let dir = tempfile::tempdir().unwrap();
    let (model, runtime) = runtime(dir.path());
    for n in 0..4 {
        runtime.turn(&nth(n), "hello", &NoTools, &mut Deaf).await.unwrap();
    }
    {
        let mut idle = locked(&runtime.inner.idle);
        let one = idle[&nth(3)].held();
        assert!(one > 0);
        forget_views(&mut idle, 2 * one);
        let has_view = (0..4).map(|n| idle[&nth(n)].view.is_some()).collect::<Vec<_>>();
        assert_eq!(has_view, [false, false, true, true]);
    }
    runtime.turn(&nth(0), "again", &NoTools, &mut Deaf).await.unwrap();
    assert_eq!(model.requests().last().unwrap().messages.len(), 3);
}

#[tokio::test]
async fn many_sessions_that_begin_at_once_are_all_in_the_store() {
    let dir = tempfile::tempdir().unwrap();
    let (_, runtime) = runtime(dir.path());
    let turns = (0..100).map(|n| {
        let runtime = runtime.clone();
        tokio::spawn(async move { runtime.turn(&nth(n), "hello", &NoTools, &mut Deaf).await })
    });
    for turn in turns.collect::<Vec<_>>() {
        turn.await.unwrap().unwrap();
    }
    let store = ctx_session::store::SessionStore::at(
        runtime.inner.home.sessions_file(&ctx_session::key::FileId::main()),
    );
    assert_eq!(store.load().unwrap().len(), 100);
}
