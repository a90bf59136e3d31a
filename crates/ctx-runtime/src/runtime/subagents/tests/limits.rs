use std::time::Duration;

use super::*;

/// A clock on which waiting takes no time.
struct Impatient;

#[async_trait]
impl ctx_core::Timer for Impatient {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep(&self, longest: Duration) {
        // Only the timeout of the subagent elapses, not the model's.
        if longest != Duration::from_secs(7) {
            std::future::pending::<()>().await;
        }
    }
}

#[tokio::test]
async fn a_subagent_that_times_out_is_swept() {
    let timer = |builder: Builder| builder.timer(Arc::new(Impatient));
    let house = House::with("slow", hangs(), "runTimeoutSeconds: 7", timer);
    house.say("hello").await;
    assert_eq!(kind(house.spawn(SpawnRequest::isolated("look")).await), ErrorKind::Timeout);
    assert_eq!(house.notifications(), ["prepare for 7000", "ended Swept"]);
}

#[tokio::test]
async fn nested_subagents_need_permission() {
    let model = || ScriptedChat::new("script/a", 100_000);
    let child: SessionKey = "agent:deep:subagent:1c".parse().unwrap();
    let below = async |house: &House| {
        let request = SpawnRequest::isolated("look");
        house.runtime.spawn(&child, request, &NoTools, &mut NoListener).await
    };
    let house = House::new("deep", model());
    let error = below(&house).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.hint_text().is_some_and(|hint| hint.contains("maxSpawnDepth")), "{error}");
    assert_eq!(house.notifications(), [""; 0]);
    let house = House::with("deep", model(), "maxSpawnDepth: 2", |builder| builder);
    let done = below(&house).await.unwrap();
    assert!(done.key.to_string().starts_with("agent:deep:subagent:1c:subagent:"));
    let sessions = house.sessions();
    assert_eq!(sessions.get(&done.key).unwrap().spawn_depth, Some(2));
}

#[tokio::test]
async fn the_number_of_subagents_is_limited() {
    for (agent, keys, named) in [
        ("many1", "maxChildrenPerAgent: 2", "maxChildrenPerAgent"),
        ("many2", "maxConcurrent: 2", "maxConcurrent"),
    ] {
        let house = House::with(agent, hangs(), keys, |builder| builder);
        house.say("hello").await;
        let main = house.main();
        let third = async {
            until(|| house.runtime.subagents(&main).len() == 2).await;
            let error = house.spawn(SpawnRequest::isolated("look")).await.unwrap_err();
            for child in house.runtime.subagents(&main) {
                house.runtime.stop_subagent(&child);
            }
            error
        };
        let look = || house.spawn(SpawnRequest::isolated("look"));
        let (first, second, error) = tokio::join!(look(), look(), third);
        assert_eq!((kind(first), kind(second)), (ErrorKind::Cancelled, ErrorKind::Cancelled));
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.hint_text().is_some_and(|hint| hint.contains(named)), "{error}");
        assert!(error.is_retryable());
        assert!(house.runtime.subagents(&main).is_empty());
    }
}
