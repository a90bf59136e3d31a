use std::time::Duration;

use ctx_core::{ErrorKind, Role, ToolOutput};
use ctx_session::SessionEntry;
use ctx_testkit::chat::{ScriptedChat, Step};

use super::*;

#[tokio::test]
async fn a_dropped_turn_leaves_complete_lines_and_pairs() {
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

/// A tool that never returns.
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
async fn interrupted_calls_are_answered_as_failed_at_the_next_use() {
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
    // Poll further, so that the calls are stored and the first one is running.
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
async fn a_removed_session_file_is_an_error_with_a_hint() {
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
async fn a_session_file_removed_during_a_turn_is_reported_by_that_turn() {
    let model = ScriptedChat::new("script/a", 100_000);
    let house = House::new(model);
    house.say("hello").await.unwrap();
    house.model.then(Step::call("remove", "{}"));
    let (file, aside) = (house.file(), house.dir().join("aside.jsonl"));
    let moved = (file.clone(), aside.clone());
    let tools = ctx_testkit::chat::ScriptedTools::default().with("remove", move |_| {
        std::fs::rename(&moved.0, &moved.1).unwrap();
        ToolOutput::text("gone")
    });
    let error = house.say_with("remove it", &tools).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(
        error.hint_text().is_some_and(
            |hint| hint.contains("restore the file, or use /new to start another session")
        ),
        "{error}"
    );
    // Once its file is moved back, the session is intact and continues.
    std::fs::rename(&aside, &file).unwrap();
    house.say("are you there?").await.unwrap();
    let roles: Vec<_> = house.stored().iter().map(|(role, _)| role.name().to_owned()).collect();
    let turn = ["user", "assistant", "toolResult"];
    assert_eq!(roles[2..5], turn);
    assert_eq!(roles[roles.len() - 2..], ["user", "assistant"]);
}

#[tokio::test]
async fn a_broken_stream_is_retried_and_its_answer_stored_once() {
    let model = ScriptedChat::new("script/a", 100_000)
        .with([Step::Break("here it".into()), Step::text("here it is")]);
    let timer = Arc::new(Impatient::default());
    let house = House::with(model, "{}", |builder| builder.timer(timer.clone()));
    let (outcome, events) = house.events("where is it?", &NoTools).await;
    assert_eq!(events, ["text here it", "notice retry", "restarted", "text here it is"]);
    assert_eq!(outcome.answer.as_deref(), Some("here it is"));
    let expected = [(Role::User, "where is it?".into()), (Role::Assistant, "here it is".into())];
    assert_eq!(house.stored(), expected);
}

#[tokio::test]
async fn an_empty_answer_is_an_error_and_is_not_stored() {
    let timer = Arc::new(Impatient::default());
    let model = ScriptedChat::new("script/a", 100_000).always(|_| Step::text("  "));
    let house = House::with(model, "{}", |builder| builder.timer(timer.clone()));
    let error = house.say("hello").await.unwrap_err();
    assert_eq!((error.kind(), house.model.asked()), (ErrorKind::Upstream, 3));
    assert!(error.hint_text().is_some());
    assert_eq!(house.stored(), [(Role::User, "hello".to_owned())]);
}

#[tokio::test]
async fn a_model_that_calls_tools_for_ever_is_stopped() {
    let count = AtomicI64::new(0);
    let model = ScriptedChat::new("script/a", 200_000).always(move |_| {
        Step::call("look", format!("{{\"n\":{}}}", count.fetch_add(1, Ordering::Relaxed)))
    });
    let house = House::new(model);
    let tools = ctx_testkit::chat::ScriptedTools::default()
        .with("look", |call| ToolOutput::text(call.arguments.as_str()));
    let outcome = house.say_with("look for it", &tools).await.unwrap();
    assert!(outcome.requests <= 510, "{}", outcome.requests);
    let answer = outcome.answer.clone().unwrap();
    assert!(answer.contains("500 requests"), "{answer}");
    assert_eq!(kinds(&outcome), [NoticeKind::ToolLoop]);
    assert_eq!(house.stored().last(), Some(&(Role::Assistant, answer)));
    house.say_with("/status", &tools).await.unwrap();
}

fn times(house: &House) -> Vec<Option<Timestamp>> {
    let transcript = Transcript::open(&house.file()).unwrap();
    transcript.main_line().unwrap().iter().map(|item| item.entry.timestamp()).collect()
}

#[tokio::test]
async fn a_clock_that_jumps_back_does_not_move_entries_back() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    house.say("hello").await.unwrap();
    house.set_clock(1_000);
    house.say("again").await.unwrap();
    let times = times(&house);
    assert_eq!(times.len(), 4);
    assert!(times.is_sorted() && times[0].is_some_and(|at| at.0 > 1_000_000), "{times:?}");
}

#[tokio::test]
async fn a_clock_that_jumps_back_does_not_move_answers_of_interrupted_calls() {
    let house = House::new(ScriptedChat::new("script/a", 100_000).with([reads(0..1)]));
    let tools = Stuck(reader(1).specs().to_vec());
    let mut turn = Box::pin(house.say_with("read it", &tools));
    while !house.home().sessions_file(&FileId::main()).exists() || house.stored().len() < 2 {
        tokio::select! {
            biased;
            _ = &mut turn => panic!("the tool never ends"),
            () = tokio::task::yield_now() => {}
        }
    }
    drop(turn);
    house.set_clock(1_000);
    house.say_with("are you there?", &tools).await.unwrap();
    let times = times(&house);
    assert_eq!(times.len(), 5);
    assert!(times.is_sorted(), "{times:?}");
}

#[tokio::test]
async fn a_session_that_another_process_has_open_is_locked_until_it_is_closed() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    house.say("hello").await.unwrap();
    let (_, other) = ctx_testkit::chat::shared(ScriptedChat::new("script/b", 100_000));
    let other = Runtime::builder(house.home(), Config::parse("{}").unwrap()).model(other);
    // With the other runtime's clock the session would be over.
    let other = other.lifecycle(Arc::new(crate::lifecycle::NeverReset)).build().unwrap();
    let error = other.turn(&main_key(), "hello", &NoTools, &mut NoListener).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    house.runtime().close(&main_key()).await.unwrap();
    let outcome = other.turn(&main_key(), "hello", &NoTools, &mut NoListener).await.unwrap();
    assert_eq!(outcome.model.as_deref(), Some("script/b"));
    let roles: Vec<_> = house.stored().into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User, Role::Assistant]);
}

#[tokio::test]
async fn a_session_with_a_refused_turn_is_not_removed_before_the_next_turn() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    house.say("hello").await.unwrap();
    let (file, before) = (house.file(), house.entry());
    let (_, other) = ctx_testkit::chat::shared(ScriptedChat::new("script/b", 100_000));
    let other = Runtime::builder(house.home(), Config::parse("{}").unwrap()).model(other);
    let a_year_later = Timestamp(before.updated_at.0 + 365 * 86_400_000);
    let other = other.lifecycle(Arc::new(crate::lifecycle::NeverReset)).clock(move || a_year_later);
    let other = other.build().unwrap();
    let error = other.turn(&main_key(), "hello", &NoTools, &mut NoListener).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Locked);
    house.runtime().close(&main_key()).await.unwrap();
    let report = other.maintain(&FileId::main(), false).await.unwrap();
    assert_eq!((report.done.len(), report.kept.len()), (0, 0));
    assert!(file.is_file() && house.file() == file);
    // Only the time differs.
    assert_eq!(house.entry(), SessionEntry { updated_at: a_year_later, ..before });
    // It is unused for a year, so it is removed.
    let later = Timestamp(a_year_later.0 * 2 - before.updated_at.0);
    let report = crate::maintenance::maintain(
        &house.home(),
        &Config::parse("{}").unwrap(),
        &FileId::main(),
        later,
        false,
        &mut |_, _| {},
    );
    assert_eq!(report.unwrap().done.len(), 1);
    assert!(!file.exists());
}

#[tokio::test]
async fn a_runtime_without_a_model_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let builder = Runtime::builder(Home::at(dir.path()), Config::parse("{}").unwrap());
    let error = builder.idle_timeout(Duration::from_secs(1)).build().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.hint_text().is_some());
}
