use ctx_core::ChatModel;
use ctx_session::ChatType;
use ctx_testkit::chat::{ScriptedChat, Step};

use super::*;

/// Creates a chain of two models and a session.
async fn begun() -> (House, Arc<ScriptedChat>) {
    let (second, shared) = shared(ScriptedChat::new("other/b", 64_000));
    let house = House::with(ScriptedChat::new("script/a", 32_000), "{}", |b| b.fallback(shared));
    house.say("hello").await.unwrap();
    (house, second)
}

/// Changes `sessions.json`, and opens the session again.
fn set(house: &mut House, second: &Arc<ScriptedChat>, change: impl FnOnce(&mut SessionEntry)) {
    house.runtime = None;
    SessionStore::at(house.home().sessions_file(&FileId::main()))
        .update(|sessions| {
            change(sessions.get_mut(&main_key()).unwrap());
            Ok(())
        })
        .unwrap();
    let (first, second): (Arc<dyn ChatModel>, _) = (house.model.clone(), second.clone());
    house.open("{}", first, |builder| builder.fallback(second));
}

#[tokio::test]
async fn the_model_set_for_a_session_answers_first() {
    let (mut house, second) = begun().await;
    assert_eq!((house.model.asked(), second.asked()), (1, 0));
    set(&mut house, &second, |entry| entry.model_override = Some("other/b".into()));
    let outcome = house.say("and now?").await.unwrap();
    assert_eq!((outcome.model.as_deref(), kinds(&outcome).len()), (Some("other/b"), 0));
    set(&mut house, &second, |entry| {
        entry.model_override = Some("b".into());
        entry.provider_override = Some("other".into());
    });
    second.then(Step::Fail(ctx_core::Error::new(ctx_core::ErrorKind::Capability, "not for you")));
    let outcome = house.say("and now?").await.unwrap();
    assert_eq!(outcome.model.as_deref(), Some("script/a"), "the chain follows it");
    set(&mut house, &second, |entry| entry.model_override = None);
    assert_eq!(house.say("hm").await.unwrap().model.as_deref(), Some("other/b"));
    set(&mut house, &second, |entry| {
        entry.model_override = Some("none".into());
        entry.auth_profile_override = Some("work".into());
    });
    let outcome = house.say("hm").await.unwrap();
    assert_eq!(outcome.model.as_deref(), Some("script/a"));
    let notices: Vec<_> = outcome.notices.iter().map(|notice| &*notice.text).collect();
    assert!(notices[0].contains("the session's model is unavailable:"), "{notices:?}");
    assert!(notices[1].contains("\"work\" is ignored"), "{notices:?}");
}

#[tokio::test]
async fn thinking_level_and_muting_are_settings_of_a_session() {
    let (mut house, second) = begun().await;
    assert_eq!(house.model.requests()[0].thinking, None);
    set(&mut house, &second, |entry| {
        entry.thinking_level = Some("high".into());
        entry.send_policy = Some("deny".into());
    });
    let (outcome, events) = house.events("quietly", &NoTools).await;
    assert_eq!((outcome.answer, events), (None, Vec::<String>::new()));
    assert_eq!(house.stored().last().unwrap().1, "answer 2");
    assert_eq!(house.model.requests()[1].thinking.as_deref(), Some("high"));
}

#[tokio::test]
async fn the_entry_of_a_new_session_contains_its_participants() {
    let house = House::new(ScriptedChat::new("script/a", 32_000));
    for (key, chat_type, provider) in [
        ("agent:main:main", ChatType::Direct, None),
        ("agent:main:telegram:group:-100:topic:7", ChatType::Group, Some("telegram")),
        ("agent:main:discord:channel:c1", ChatType::Room, Some("discord")),
        ("agent:main:signal:direct:ada", ChatType::Direct, Some("signal")),
    ] {
        let key: SessionKey = key.parse().unwrap();
        house.runtime().turn(&key, "hello", &NoTools, &mut NoListener).await.unwrap();
        let sessions = SessionStore::at(house.home().sessions_file(&FileId::main()));
        let entry = sessions.load().unwrap().get(&key).unwrap().clone();
        assert_eq!((entry.chat_type, entry.provider.as_deref()), (Some(chat_type), provider));
    }
}
