use std::time::Duration;

use ctx_core::{Error, ErrorKind, Role};
use ctx_testkit::chat::{ScriptedChat, Step, shared};

use super::*;

/// Runs turns with tool results, so that there is something to truncate and to compact.
async fn with_history(house: &House, turns: usize) {
    for n in 0..turns {
        house.model.then(reads(n..n + 1));
        house.model.then(Step::text(format!("file {n} says what it says")));
        house.say_with(&format!("read file {n}"), &reader(1_500)).await.unwrap();
    }
}

#[tokio::test]
async fn an_overflow_first_truncates_tool_results_permanently() {
    let mut house = House::new(ScriptedChat::new("script/a", 32_000));
    with_history(&house, 10).await;
    let before = ScriptedChat::measure(house.model.requests().last().unwrap());
    house.model.then(Step::overflow());
    let (outcome, events) = house.events("and now?", &reader(10)).await;
    assert_eq!(kinds(&outcome), [NoticeKind::Overflow]);
    assert_eq!((outcome.requests, outcome.compactions), (2, 0));
    assert_eq!(events[0], "restarted");
    let sent = house.model.requests().last().unwrap().clone();
    assert!(ScriptedChat::measure(&sent).0 * 2 < before.0, "{before}");
    assert_eq!(house.stored().last().unwrap().1, outcome.answer.unwrap());

    house.reopened();
    house.say_with("go on", &reader(10)).await.unwrap();
    let later = house.model.requests().last().unwrap().clone();
    for (sent, later) in sent.messages.iter().zip(&later.messages) {
        assert_eq!(
            role_and_text(sent),
            role_and_text(later),
            "a projection is sent again unchanged"
        );
    }
}

#[tokio::test]
async fn a_repeated_overflow_compacts_and_the_retry_is_answered() {
    let house = House::new(ScriptedChat::new("script/a", 32_000));
    with_history(&house, 12).await;
    for _ in 0..2 {
        house.model.then(Step::overflow());
    }
    house.model.then(Step::text("here it is"));
    let (outcome, events) = house.events("and now?", &reader(10)).await;
    assert_eq!(outcome.answer.as_deref(), Some("here it is"));
    assert_eq!((outcome.requests, outcome.compactions), (3, 1));
    assert!(events.contains(&"compaction Overflow".to_owned()), "{events:?}");
    assert!(events.contains(&"compaction ended true 1".to_owned()), "{events:?}");
    let sent = house.model.requests().last().unwrap().clone();
    assert!(sent.messages.iter().any(|m| m.role == Role::CompactionSummary));
    assert_eq!(sent.messages.last().map(|m| role_and_text(m).1).as_deref(), Some("and now?"));
    assert_eq!(house.stored().last().unwrap().1, "here it is");
}

#[tokio::test]
async fn permanent_overflow_is_a_typed_error_and_the_count_is_per_turn() {
    let house = House::new(ScriptedChat::new("script/a", 32_000));
    with_history(&house, 12).await;
    for round in 0..2 {
        let asked = house.model.asked();
        (0..20).for_each(|_| house.model.then(Step::overflow()));
        let error = house.say_with("and now?", &reader(10)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CompactionFailure);
        assert_eq!(error.kind().name(), "compaction_failure");
        assert!(error.to_string().starts_with("Failed to compact session after 3 attempts"));
        assert!(error.hint_text().is_some_and(|hint| hint.contains("/new")));
        let asked = house.model.asked() - asked;
        assert!((1..=5).contains(&asked), "round {round}: {asked} requests");
        // The rest of the script is not meant for later turns.
        while house.model.forget_next() {}
    }
    let outcome = house.say_with("better?", &reader(10)).await.unwrap();
    assert!(outcome.answer.is_some());
    assert_eq!(house.stored().iter().filter(|(_, text)| text == "and now?").count(), 2);
}

#[tokio::test]
async fn a_message_too_long_by_itself_fails_with_the_providers_error() {
    let house = House::new(ScriptedChat::new("script/a", 32_000));
    (0..20).for_each(|_| house.model.then(Step::overflow()));
    let error = house.say("a long story").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CompactionFailure);
    let text = error.to_string();
    assert!(text.starts_with("the message alone is too long for the model"), "{text}");
    assert!(text.contains("prompt is too long"), "the provider's message: {text}");
    assert!(error.hint_text().is_some_and(|hint| !hint.contains("/new")));
}

#[tokio::test]
async fn temporary_errors_are_retried_after_the_wait_of_the_provider() {
    let busy = || Error::new(ErrorKind::Upstream, "busy").retryable();
    let patient = Error::new(ErrorKind::Upstream, "busy").retry_after(Duration::from_secs(7));
    let timer = Arc::new(Impatient::default());
    let steps = [busy(), busy()].map(Step::Fail).into_iter();
    let model = ScriptedChat::new("script/a", 128_000).with(steps.chain([
        Step::text("one"),
        Step::Fail(patient),
        Step::text("two"),
    ]));
    let house = House::with(model, "{}", |builder| builder.timer(timer.clone()));
    let outcome = house.say("hello").await.unwrap();
    assert_eq!((outcome.answer.as_deref(), outcome.requests), (Some("one"), 3));
    assert_eq!(house.say("hello").await.unwrap().answer.as_deref(), Some("two"));
    assert_eq!(timer.waits(), [500, 1_000, 7_000]);
}

#[tokio::test]
async fn a_permanent_failure_selects_the_next_model_with_a_notice() {
    let (second, fallback) = shared(ScriptedChat::new("script/b", 64_000));
    let no_right = Error::new(ErrorKind::Capability, "no such model");
    let model = ScriptedChat::new("script/a", 128_000).with([Step::Fail(no_right)]);
    let house = House::with(model, "{}", |builder| builder.fallback(fallback));
    let outcome = house.say("hello").await.unwrap();
    assert_eq!(outcome.model.as_deref(), Some("script/b"));
    assert!(outcome.notices[0].text.contains("script/b answers instead of script/a"));
    assert_eq!(outcome.manifest.unwrap().window, ctx_core::Tokens(64_000));
    assert_eq!(second.asked(), 1);
    let outcome = house.say("hello again").await.unwrap();
    assert_eq!(outcome.model.as_deref(), Some("script/a"), "the next turn begins with the first");
}

#[tokio::test]
async fn a_window_that_is_too_small_selects_the_next_large_enough_model() {
    let (_, small) = shared(ScriptedChat::new("script/b", 4_000));
    let (third, large) = shared(ScriptedChat::new("script/c", 64_000));
    let model = ScriptedChat::new("script/a", 8_000);
    let house = House::with(model, "{}", |builder| builder.fallback(small).fallback(large));
    let outcome = house.say("hello").await.unwrap();
    assert_eq!((outcome.model.as_deref(), third.asked()), (Some("script/c"), 1));
    assert_eq!(kinds(&outcome), [NoticeKind::Failover]);
    assert_eq!(house.model.asked(), 0);
}

#[tokio::test]
async fn a_model_that_never_answers_is_cancelled() {
    let hangs = ScriptedChat::new("script/a", 128_000).always(|_| Step::Hang("well".into()));
    let timer = Arc::new(Impatient::default());
    let house = House::with(hangs, "{}", |builder| builder.timer(timer.clone()));
    let error = house.say("hello").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Timeout);
    assert!(error.hint_text().is_some());
    assert_eq!(house.stored(), [(Role::User, "hello".to_owned())]);
}

#[tokio::test]
async fn a_wait_of_hours_is_not_accepted() {
    let hours = || Error::new(ErrorKind::Upstream, "busy").retry_after(Duration::from_secs(7_200));
    let timer = Arc::new(Impatient::default());
    let (second, fallback) = shared(ScriptedChat::new("script/b", 64_000));
    let model = ScriptedChat::new("script/a", 128_000).with([Step::Fail(hours())]);
    let house = House::with(model, "{}", |builder| builder.timer(timer.clone()).fallback(fallback));
    let outcome = house.say("hello").await.unwrap();
    assert_eq!((outcome.model.as_deref(), second.asked()), (Some("script/b"), 1));
    assert_eq!(kinds(&outcome), [NoticeKind::Failover]);
    assert!(outcome.notices[0].text.contains("7200 s"), "{:?}", outcome.notices);
    // Without a fallback, the caller gets the error at once.
    house.model.then(Step::Fail(hours()));
    second.then(Step::Fail(hours()));
    let error = house.say("hello again").await.unwrap_err();
    assert!(error.to_string().contains("7200 s"), "{error}");
    assert_eq!((error.wait(), timer.waits()), (Some(Duration::from_secs(7_200)), vec![]));
}

#[tokio::test]
async fn the_host_sets_the_maximum_retry_wait() {
    let patient = Error::new(ErrorKind::Upstream, "busy").retry_after(Duration::from_secs(60));
    let timer = Arc::new(Impatient::default());
    let model = ScriptedChat::new("script/a", 128_000).with([Step::Fail(patient)]);
    let house = House::with(model, "{}", |builder| {
        builder.timer(timer.clone()).max_retry_wait(Duration::from_secs(90))
    });
    house.say("hello").await.unwrap();
    assert_eq!(timer.waits(), [60_000]);
}

#[tokio::test]
async fn a_model_that_timed_out_is_not_called_again_in_the_turn() {
    let late = Error::new(ErrorKind::Timeout, "the server took too long to answer").retryable();
    let (second, fallback) = shared(ScriptedChat::new("script/b", 64_000));
    let model = ScriptedChat::new("script/a", 128_000).with([Step::Fail(late)]);
    let house = House::with(model, "{}", |builder| builder.fallback(fallback));
    let outcome = house.say("hello").await.unwrap();
    assert_eq!((outcome.requests, house.model.asked(), second.asked()), (2, 1, 1));
}

#[tokio::test]
async fn usage_is_counted_even_if_a_turn_fails() {
    let house = House::new(ScriptedChat::new("script/a", 32_000));
    with_history(&house, 12).await;
    house.runtime().close(&main_key()).await.unwrap();
    let sessions = || {
        let file = house.home().sessions_file(&FileId::main());
        let sessions = ctx_session::SessionStore::at(file).load().unwrap();
        sessions.get(&main_key()).unwrap().clone()
    };
    let before = sessions();
    house.model.then(reads(50..51));
    (0..2).for_each(|_| house.model.then(Step::overflow()));
    house.model.then(Step::Fail(Error::new(ErrorKind::Capability, "no such model")));
    house.say_with("and now?", &reader(10)).await.unwrap_err();
    let stored = sessions();
    assert_eq!(stored.compaction_count, Some(1));
    house.runtime().close(&main_key()).await.unwrap();
    assert!(sessions().input_tokens > before.input_tokens, "{before:?}");
    // The next process continues the count.
    house.say_with("better?", &reader(10)).await.unwrap();
    let outcome = house.say_with("/status", &reader(10)).await.unwrap();
    assert!(outcome.answer.unwrap().contains("compactions: 1"));
}

/// Returns a model whose real window is smaller than it claims: `limit` tokens, which its error
/// does not contain.
fn smaller_than_it_says(limit: u32) -> ScriptedChat {
    ScriptedChat::new("script/a", 100_000).always(move |request| {
        match ScriptedChat::measure(request).0 > limit {
            true => Step::overflow(),
            false => Step::text("fine"),
        }
    })
}

#[tokio::test]
async fn after_an_overflow_the_learned_limit_applies_to_later_turns() {
    let house = House::new(smaller_than_it_says(15_000));
    let mut refused = 0;
    for n in 0..24 {
        let outcome = house.say(&format!("message {n}\n{}", filler(1_500))).await.unwrap();
        refused += usize::from(kinds(&outcome).contains(&NoticeKind::Overflow));
        if kinds(&outcome).contains(&NoticeKind::Overflow) {
            let sent = house.model.requests().last().unwrap().clone();
            let kept = sent.messages.iter().filter(|m| m.role != Role::CompactionSummary).count();
            assert!(kept > 4, "{kept} messages stay");
            assert!(ScriptedChat::measure(&sent).0 > 4_000);
        }
    }
    assert_eq!(refused, 1, "the first rejection reveals the limit");
}

#[tokio::test]
async fn an_overflow_error_names_disabled_compaction_as_the_cause() {
    let config =
        "{ agents: { defaults: { compaction: { enabled: false, keepRecentTokens: 2000 } } } }";
    let house = House::with(smaller_than_it_says(8_000), config, |builder| builder);
    let mut error = None;
    for n in 0..8 {
        let said = house.say(&format!("message {n}\n{}", filler(1_500))).await;
        error = error.or(said.err());
    }
    let error = error.unwrap();
    assert_eq!(error.kind(), ErrorKind::CompactionFailure);
    assert!(error.to_string().contains("agents.defaults.compaction.enabled"), "{error}");
    let said = house.say("/compact").await.unwrap().answer.unwrap();
    assert!(said.contains("**Compressed Summary:**\n## "), "{said}");
}
