use async_trait::async_trait;
use ctx_core::{ErrorKind, Role, ToolCall, ToolOutput, ToolSpec};
use ctx_testkit::chat::{ScriptedChat, ScriptedTools, Step};

use super::*;

#[tokio::test]
async fn tools_run_in_order_and_each_result_is_stored_at_once() {
    let calls = Step::Calls(vec![
        ("read".into(), r#"{"file":1}"#.into()),
        ("fly".into(), "{}".into()),
        ("read".into(), r#"{"file":2}"#.into()),
    ]);
    let model = ScriptedChat::new("script/a", 100_000).with([calls, Step::text("done")]);
    let house = House::new(model);
    let tools = reader(10);
    let (outcome, events) = house.events("read them", &tools).await;
    assert_eq!((outcome.answer.as_deref(), outcome.requests), (Some("done"), 2));
    let ran = ["tool read", "tool read ended", "tool fly", "tool fly ended"];
    assert_eq!(events, [&ran[..], &ran[..2], &["text done"]].concat());
    let stored = house.stored();
    let roles: Vec<_> = stored.iter().map(|(role, _)| role.name()).collect();
    assert_eq!(roles, ["user", "assistant", "toolResult", "toolResult", "toolResult", "assistant"]);
    assert!(stored[3].1.contains("unknown tool fly; the tools are read"), "{stored:?}");
    assert_eq!(tools.ran().len(), 2);
}

#[tokio::test]
async fn an_oversized_result_is_truncated_before_it_is_stored() {
    let model = ScriptedChat::new("script/a", 32_000).with([reads(0..1), Step::text("done")]);
    let house = House::new(model);
    house.say_with("read it", &reader(60_000)).await.unwrap();
    let result = &house.stored()[2].1;
    assert!(result.len() < 80_000, "{}", result.len());
}

#[tokio::test]
async fn three_identical_calls_with_identical_results_stop_the_tool_loop() {
    let model = ScriptedChat::new("script/a", 100_000).always(|_| Step::call("look", "{}"));
    let house = House::new(model);
    let tools = ScriptedTools::default().with("look", |_| ToolOutput::text("nothing"));
    let (outcome, events) = house.events("look for it", &tools).await;
    assert_eq!((tools.ran().len(), outcome.requests), (3, 4));
    assert_eq!(kinds(&outcome), [NoticeKind::ToolLoop]);
    let answer = outcome.answer.unwrap();
    assert!(answer.contains("same result 3 times"), "{answer}");
    assert_eq!(events.iter().filter(|events| *events == "notice toolLoop").count(), 1);
    let stored = house.stored();
    let [.., (role, last), said] = stored.as_slice() else { panic!("{stored:?}") };
    assert!(*role == Role::ToolResult && last.contains("not run"), "{last}");
    assert_eq!(*said, (Role::Assistant, answer), "the stored answer is returned");
    let request = house.model.requests()[3].clone();
    let text = request.messages.last().map(|message| role_and_text(message).1).unwrap();
    assert!(text.contains("answer with what is known"), "the model is informed: {text}");
}

#[tokio::test]
async fn different_calls_or_results_do_not_stop_the_tool_loop() {
    let steps = (0..5).map(|_| Step::call("look", "{}"));
    let model = ScriptedChat::new("script/a", 100_000).with(steps).with([Step::text("found")]);
    let house = House::new(model);
    let count = std::sync::atomic::AtomicUsize::new(0);
    let tools = ScriptedTools::default().with("look", move |_| {
        ToolOutput::text(format!("{}", count.fetch_add(1, Ordering::Relaxed)))
    });
    let outcome = house.say_with("look for it", &tools).await.unwrap();
    assert_eq!((outcome.answer.as_deref(), outcome.notices.len()), (Some("found"), 0));
}

#[tokio::test]
async fn an_incomplete_tool_call_is_a_model_error_and_not_stored() {
    let half = || Step::call("read", r#"{"file": 1, "lin"#);
    let timer = Arc::new(Impatient::default());
    let model = ScriptedChat::new("script/a", 100_000).with([
        half(),
        Step::text("whole"),
        half(),
        half(),
        half(),
    ]);
    let house = House::with(model, "{}", |builder| builder.timer(timer.clone()));
    let outcome = house.say_with("read it", &reader(10)).await.unwrap();
    assert_eq!(outcome.answer.as_deref(), Some("whole"));
    assert_eq!(kinds(&outcome), [NoticeKind::Retry]);
    let error = house.say_with("again", &reader(10)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Upstream);
    assert!(error.hint_text().is_some());
    let roles: Vec<_> = house.stored().into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, [Role::User, Role::Assistant, Role::User]);
}

#[tokio::test]
async fn the_session_size_is_checked_between_two_calls() {
    let model = ScriptedChat::new("script/a", 32_000);
    let house = House::new(model);
    for n in 0..12 {
        house.model.then(Step::text(filler(1_500)));
        house.say(&format!("tell me more of {n}")).await.unwrap();
    }
    house.model.then(reads(0..4));
    house.model.then(Step::text("done"));
    let (outcome, events) = house.events("read them", &reader(6_000)).await;
    assert_eq!(outcome.answer.as_deref(), Some("done"));
    let at = |what: &str| events.iter().position(|events| events.starts_with(what)).unwrap();
    let last_tool = events.iter().rposition(|events| events == "tool read").unwrap();
    assert!(at("compaction Threshold") < last_tool, "{events:?}");
    let limit = outcome.manifest.unwrap().limit;
    for request in house.model.requests() {
        assert!(ScriptedChat::measure(&request) <= limit);
    }
}

/// A tool that requests a compaction of its own session.
struct Compacts(Runtime, [ToolSpec; 1]);

#[async_trait]
impl Toolbox for Compacts {
    fn specs(&self) -> &[ToolSpec] {
        &self.1
    }

    async fn run(&self, _: &ToolCall) -> ToolOutput {
        match self.0.compact(&main_key(), None).await {
            Ok(_) => ToolOutput::text("compacted"),
            Err(error) => ToolOutput::error(format!("{}: {error}", error.kind().name())),
        }
    }
}

#[tokio::test]
async fn a_tool_cannot_compact_its_own_session() {
    let model = ScriptedChat::new("script/a", 100_000)
        .with([Step::call("compact", "{}"), Step::text("well then")]);
    let house = House::new(model);
    let spec = ToolSpec {
        name: "compact".into(),
        description: "compacts".into(),
        parameters: ctx_core::RawJson::from_text("{}"),
    };
    let tools = Compacts(house.runtime().clone(), [spec]);
    let outcome = house.say_with("compact yourself", &tools).await.unwrap();
    assert_eq!(outcome.answer.as_deref(), Some("well then"));
    assert!(house.stored()[2].1.starts_with("conflict: deadlock: the session waits for this call"));
}
