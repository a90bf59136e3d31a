use std::time::Duration;

use ctx_core::{ErrorKind, Role, ToolOutput};
use ctx_testkit::chat::{ScriptedChat, Step};

use super::*;

#[tokio::test]
async fn a_turn_that_is_dropped_leaves_whole_lines_and_whole_pairs() {
    let model = ScriptedChat::new("script/a", 100_000).with([
        reads(0..1),
        Step::Hang("I am".into()),
        Step::text("back"),
    ]);
    let house = House::new(model);
    let tools = reader(10);
    let mut turn = Box::pin(house.say_with("read it", &tools));
    // It runs until it waits for the model for ever.
    while house.model.asked() < 2 {
        tokio::select! {
            _ = &mut turn => panic!("the model never answers"),
            () = tokio::task::yield_now() => {}
        }
    }
    drop(turn);
    let outcome = house.say_with("are you there?", &tools).await.unwrap();
    assert_eq!(outcome.answer.as_deref(), Some("back"));
    let roles: Vec<_> = house.stored().iter().map(|(role, _)| role.name().to_owned()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "user", "assistant"]);
}

/// A tool that never comes to an end.
struct Stuck(Vec<ctx_core::ToolSpec>);

#[async_trait::async_trait]
impl Toolbox for Stuck {
    fn specs(&self) -> &[ctx_core::ToolSpec] {
        &self.0
    }

    async fn run(&self, _: &ctx_core::ToolCall) -> ToolOutput {
        std::future::pending().await
    }
}

#[tokio::test]
async fn calls_that_were_cut_short_are_answered_as_failed_when_the_session_is_next_used() {
    let model = ScriptedChat::new("script/a", 100_000).with([reads(0..2), Step::text("back")]);
    let house = House::new(model);
    let tools = Stuck(reader(1).specs().to_vec());
    let mut turn = Box::pin(house.say_with("read them", &tools));
    while house.model.asked() < 1 {
        tokio::select! {
            _ = &mut turn => panic!("the tool never ends"),
            () = tokio::task::yield_now() => {}
        }
    }
    // Once more, so that the calls are stored and the first is under way.
    for _ in 0..100 {
        tokio::select! {
            biased;
            _ = &mut turn => panic!("the tool never ends"),
            () = tokio::task::yield_now() => {}
        }
    }
    drop(turn);
    let outcome = house.say_with("are you there?", &tools).await.unwrap();
    assert_eq!(kinds(&outcome), [NoticeKind::Session]);
    let stored = house.stored();
    let roles: Vec<_> = stored.iter().map(|(role, _)| role.name()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "toolResult", "user", "assistant"]);
    let sent = house.model.requests().last().unwrap().clone();
    ctx_core::check_pairs(sent.messages.iter().map(|message| &**message)).unwrap();
}

#[tokio::test]
async fn a_session_file_that_is_removed_is_an_error_that_says_how_to_go_on() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    house.say("hello").await.unwrap();
    std::fs::remove_file(house.file()).unwrap();
    for _ in 0..2 {
        let error = house.say("again").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.hint_text().is_some_and(|hint| hint.contains("/new")), "{error}");
    }
    let outcome = house.say("/new").await.unwrap();
    assert!(outcome.answer.is_some_and(|answer| answer.contains("new session")));
    house.say("hello").await.unwrap();
    assert_eq!(house.stored().len(), 2);
}

#[tokio::test]
async fn a_clock_that_jumps_back_moves_no_entry_back() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    house.say("hello").await.unwrap();
    house.set_clock(1_000);
    house.say("again").await.unwrap();
    let transcript = Transcript::open(&house.file()).unwrap();
    let times: Vec<_> =
        transcript.main_line().unwrap().iter().map(|item| item.entry.timestamp()).collect();
    assert!(times.is_sorted() && times[0].is_some_and(|at| at.0 > 1_000_000), "{times:?}");
}

#[tokio::test]
async fn a_session_that_another_process_has_open_is_locked_until_it_is_closed() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    house.say("hello").await.unwrap();
    let (_, other) = ctx_testkit::chat::shared(ScriptedChat::new("script/b", 100_000));
    let other = Runtime::builder(house.home(), Config::parse("{}").unwrap()).model(other);
    // Its clock is another one: by that the session would be over.
    let other = other.lifecycle(Arc::new(crate::runtime::OneSession)).build().unwrap();
    let error = other.turn(&main_key(), "hello", &NoTools, &mut Deaf).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    house.runtime().close(&main_key()).await.unwrap();
    let outcome = other.turn(&main_key(), "hello", &NoTools, &mut Deaf).await.unwrap();
    assert_eq!(outcome.model.as_deref(), Some("script/b"));
    let roles: Vec<_> = house.stored().into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
}

#[tokio::test]
async fn a_runtime_without_a_model_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let builder = Runtime::builder(Home::at(dir.path()), Config::parse("{}").unwrap());
    let error = builder.silence(Duration::from_secs(1)).build().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.hint_text().is_some());
}
