use ctx_core::{ErrorKind, Role};
use ctx_testkit::chat::{ScriptedChat, Step};

use super::*;

#[tokio::test]
async fn a_message_is_answered_and_both_are_in_the_file() {
    let mut house = House::new(ScriptedChat::new("script/a", 100_000));
    let outcome = house.say("hello").await.unwrap();
    assert_eq!(outcome.answer.as_deref(), Some("answer 1"));
    assert_eq!((outcome.model.as_deref(), outcome.requests), (Some("script/a"), 1));
    assert!(outcome.usage.input > 0 && outcome.notices.is_empty(), "{outcome:?}");
    let expected = [(Role::User, "hello".to_owned()), (Role::Assistant, "answer 1".to_owned())];
    assert_eq!(house.stored(), expected);

    house.reopened();
    house.say("again").await.unwrap();
    let requests = house.model.requests();
    let sent: Vec<_> = requests[1].messages.iter().map(|m| role_and_text(m).1).collect();
    assert_eq!(sent, ["hello", "answer 1", "again"]);
}

#[tokio::test]
async fn a_restart_does_not_change_the_next_request() {
    let run = async |restart: bool| {
        let mut house = House::new(ScriptedChat::new("script/a", 100_000));
        for n in 0..4 {
            house.say(&format!("message {n}")).await.unwrap();
            if restart {
                house.reopened();
            }
        }
        house.model.requests().iter().map(|r| r.messages.clone()).collect::<Vec<_>>()
    };
    let (with, without) = (run(true).await, run(false).await);
    assert_eq!(with.len(), 4);
    for (with, without) in with.iter().zip(&without) {
        let strip = |messages: &[std::sync::Arc<ctx_core::Message>]| {
            messages.iter().map(|m| role_and_text(m)).collect::<Vec<_>>()
        };
        assert_eq!(strip(with), strip(without));
    }
}

#[tokio::test]
async fn turns_of_one_session_run_one_after_another() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    let turns = (0..8).map(|n| {
        let (runtime, text) = (house.runtime().clone(), format!("message {n}"));
        tokio::spawn(async move {
            runtime.turn(&main_key(), text, &NoTools, &mut NoListener).await.unwrap()
        })
    });
    for turn in turns.collect::<Vec<_>>() {
        turn.await.unwrap();
    }
    let roles: Vec<_> = house.stored().into_iter().map(|(role, _)| role).collect();
    let pairs = (0..8).flat_map(|_| [Role::User, Role::Assistant]);
    assert_eq!(roles, pairs.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_silent_answer_is_stored_and_not_shown() {
    let silent = Step::Pieces(vec!["NO_".into(), "REPLY".into()]);
    let house = House::new(ScriptedChat::new("script/a", 100_000).with([silent]));
    let (outcome, events) = house.events("just so you know", &NoTools).await;
    assert_eq!(outcome.answer, None);
    assert_eq!(events, Vec::<String>::new());
    assert_eq!(house.stored()[1].1, "NO_REPLY");
}

#[tokio::test]
async fn a_window_under_the_minimum_is_refused_with_numbers_before_any_work() {
    let house = House::new(ScriptedChat::new("script/small", 8_000));
    let error = house.say("hello").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WindowTooSmall);
    assert!(error.to_string().contains("8000") || error.to_string().contains("8,000"), "{error}");
    assert!(error.hint_text().is_some());
    assert_eq!(house.model.asked(), 0);
    assert_eq!(house.stored(), []);
}
