use ctx_core::{Error, Tokens};

use super::*;

#[tokio::test]
async fn an_isolated_subagent_knows_only_its_task_and_returns_its_answer() {
    let model = ScriptedChat::new("script/a", 100_000);
    let house = House::new("isolated", model.with([Step::text("hi"), Step::text("42")]));
    house.say("hello").await;
    let done = house.spawn(SpawnRequest::isolated("/compact the answer")).await.unwrap();
    assert_eq!(done.turn.answer.as_deref(), Some("42"));
    let asked = house.asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(asked[0].1.ends_with("Task: /compact the answer"), "no command: {asked:?}");
    assert_eq!(house.notifications(), ["prepare", "ended Completed"]);

    let sessions = house.sessions();
    let entry = sessions.get(&done.key).unwrap();
    assert_eq!(
        (entry.spawned_by.as_deref(), entry.spawn_depth),
        (Some("agent:isolated:main"), Some(1))
    );
    assert!(done.key.to_string().starts_with("agent:isolated:subagent:"));
    let parent = sessions.get(&house.main()).unwrap();
    assert_ne!(parent.session_id, entry.session_id);
    house.say("and you?").await;
    let asked: Vec<_> = house.asked().into_iter().map(|(_, text)| text).collect();
    assert_eq!(asked, ["hello", "hi", "and you?"], "the parent's context is unchanged");
}

#[tokio::test]
async fn a_forked_subagent_gets_the_parent_context_without_its_own_call() {
    let model = ScriptedChat::new("script/a", 100_000).with([
        Step::text("hi"),
        Step::call("delegate", r#"{"count":"files"}"#),
        Step::text("seven"),
        Step::text("there are seven"),
    ]);
    let house = House::new("forked", model);
    house.say("hello").await;
    let tools = Delegate::of(&house, true);
    let turn =
        house.runtime.turn(&house.main(), "how many?", &tools, &mut NoListener).await.unwrap();
    assert_eq!(turn.answer.as_deref(), Some("there are seven"));
    let requests = house.model.requests();
    let said: Vec<_> = requests[2].messages.iter().map(|m| m.plain_text()).collect();
    assert_eq!(said[..3], ["hello", "hi", "how many?"]);
    assert!(said[3].ends_with(r#"Task: {"count":"files"}"#), "{said:?}");
    assert_eq!(said.len(), 4);
    assert_eq!(house.notifications(), ["prepare", "ended Completed"]);
}

#[tokio::test]
async fn a_limit_of_one_turn_causes_no_deadlock() {
    let model = ScriptedChat::new("script/a", 100_000).with([
        Step::call("delegate", r#"{"n":1}"#),
        Step::text("one"),
        Step::text("done"),
    ]);
    let house = House::with("alone", model, "", |builder| builder.limit(1));
    let tools = Delegate::of(&house, false);
    let main = house.main();
    let turn = house.runtime.turn(&main, "go", &tools, &mut NoListener).await.unwrap();
    assert_eq!(turn.answer.as_deref(), Some("done"));
    assert!(house.runtime.inner.lanes.busy().is_empty());
}

#[tokio::test]
async fn a_subagent_has_its_own_window_model_and_prompt() {
    let house = House::new("own", ScriptedChat::new("script/a", 100_000));
    house.say("hello").await;
    let (other, of_subagent) = shared(ScriptedChat::new("script/b", 200_000));
    let request = SpawnRequest::isolated("look")
        .with_model(of_subagent)
        .with_window(Tokens(32_000))
        .with_system_prompt("You look.");
    let done = house.spawn(request).await.unwrap();
    assert_eq!(done.turn.model.as_deref(), Some("script/b"));
    assert_eq!(done.turn.manifest.unwrap().window, Tokens(32_000));
    assert_eq!(other.requests()[0].system.as_deref(), Some("You look."));
    assert_eq!(house.model.asked(), 1);
}

#[tokio::test]
async fn a_failed_start_is_rolled_back() {
    let house = House::new("failing", ScriptedChat::new("script/a", 100_000));
    house.say("hello").await;
    let small = SpawnRequest::forked("look").with_window(Tokens(1_000));
    assert_eq!(kind(house.spawn(small).await), ErrorKind::WindowTooSmall);
    assert_eq!(house.notifications(), ["prepare", "rollback"]);
    assert_eq!((house.sessions().all().count(), house.transcripts()), (1, 1));
    assert!(house.runtime.subagents(&house.main()).is_empty());
}

#[tokio::test]
async fn an_empty_session_cannot_be_forked() {
    let house = House::new("nothing", ScriptedChat::new("script/a", 100_000));
    let key: SessionKey = "agent:nothing:work".parse().unwrap();
    let spawn = SpawnRequest::forked("look");
    // The parent is open, and its file is missing.
    house.say("hello").await;
    let main = house.main();
    let file = house.dir.path().join("agents/nothing/sessions");
    for file in std::fs::read_dir(file).unwrap().flatten() {
        if file.path().extension().is_some_and(|end| end == "jsonl") {
            std::fs::remove_file(file.path()).unwrap();
        }
    }
    assert_eq!(kind(house.spawn(spawn.clone()).await), ErrorKind::NotFound);
    assert_eq!(house.notifications(), ["prepare", "rollback"]);
    assert!(house.sessions().get(&main).is_some());
    // A session that does not exist yet is created empty.
    let done = house.runtime.spawn(&key, spawn, &NoTools, &mut NoListener).await.unwrap();
    assert!(done.turn.answer.is_some());
}

#[tokio::test]
async fn an_engine_that_refuses_a_subagent_is_not_notified_again() {
    let house = House::new("refused", ScriptedChat::new("script/a", 100_000));
    house.say("hello").await;
    assert_eq!(kind(house.spawn(SpawnRequest::isolated("look")).await), ErrorKind::Conflict);
    assert_eq!(house.notifications(), ["prepare"]);
    assert_eq!(house.sessions().all().count(), 1);
}

#[tokio::test]
async fn a_failed_subagent_is_reported_once() {
    let fails = || Step::Fail(Error::new(ErrorKind::Upstream, "not today"));
    let model = ScriptedChat::new("script/a", 100_000).with([Step::text("hi"), fails()]);
    let house = House::new("unlucky", model);
    house.say("hello").await;
    assert_eq!(kind(house.spawn(SpawnRequest::isolated("look")).await), ErrorKind::Upstream);
    assert_eq!(house.notifications(), ["prepare", "ended Failed"]);
}

#[tokio::test]
async fn an_engine_error_at_the_end_does_not_lose_the_result() {
    let house = House::new("grumpy", ScriptedChat::new("script/a", 100_000));
    house.say("hello").await;
    let mut notices = Vec::new();
    let mut listener = |event: crate::Event<'_>| {
        if let crate::Event::Notice(notice) = event {
            notices.push(notice.text.clone());
        }
    };
    let request = SpawnRequest::isolated("look");
    let done = house.runtime.spawn(&house.main(), request, &NoTools, &mut listener).await;
    assert!(done.unwrap().turn.answer.is_some());
    assert!(notices.iter().any(|words| words.contains("what do I care")), "{notices:?}");
    assert_eq!(house.notifications(), ["prepare", "ended Completed"]);
}

#[tokio::test]
async fn a_dropped_subagent_is_released_and_frees_its_slot() {
    let house = House::new("dropped", hangs());
    house.say("hello").await;
    let asked = house.model.asked();
    {
        let main = house.main();
        let mut listener = NoListener;
        let spawn =
            house.runtime.spawn(&main, SpawnRequest::isolated("look"), &NoTools, &mut listener);
        tokio::pin!(spawn);
        tokio::select! {
            biased;
            _ = &mut spawn => panic!("it hangs"),
            () = until(|| house.model.asked() > asked) => {}
        }
        assert_eq!(house.runtime.subagents(&house.main()).len(), 1);
    }
    assert!(house.runtime.subagents(&house.main()).is_empty());
    until(|| house.notifications().len() == 2).await;
    assert_eq!(house.notifications(), ["prepare", "ended Released"]);
    house.say("go on").await;
}

#[tokio::test]
async fn a_subagent_can_be_stopped_by_the_host() {
    let house = House::new("stopped", hangs());
    house.say("hello").await;
    let main = house.main();
    let nobody: SessionKey = "agent:stopped:subagent:none".parse().unwrap();
    assert!(!house.runtime.stop_subagent(&nobody));
    let stop = async {
        until(|| house.model.asked() > 1).await;
        let running = house.runtime.subagents(&main);
        assert!(running.iter().all(|child| house.runtime.stop_subagent(child)));
        running.len()
    };
    let (done, stopped) = tokio::join!(house.spawn(SpawnRequest::isolated("look")), stop);
    assert_eq!((kind(done), stopped), (ErrorKind::Cancelled, 1));
    assert_eq!(house.notifications(), ["prepare", "ended Released"]);
}
