use ctx_core::Role;
use ctx_testkit::chat::ScriptedChat;

use super::*;

async fn answer(house: &House, text: &str) -> String {
    house.say(text).await.unwrap().answer.unwrap()
}

#[tokio::test]
async fn compact_and_undo_are_there_for_the_user_and_leave_no_message() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    assert_eq!(answer(&house, "/undo").await, "There is no compaction to take back.");
    for n in 0..30 {
        house.say(&format!("message {n}\n{}", filler(1_500))).await.unwrap();
    }
    let said = answer(&house, "/compact the vault").await;
    assert!(said.starts_with("Compacted: "), "{said}");
    let roles = |house: &House| -> Vec<Role> {
        house.model.requests().last().unwrap().messages.iter().map(|m| m.role.clone()).collect()
    };
    house.say("go on").await.unwrap();
    assert_eq!(roles(&house)[0], Role::CompactionSummary);
    let compacted = roles(&house).len();
    let said = answer(&house, "/undo").await;
    assert!(said.contains("taken back"), "{said}");
    house.say("and on").await.unwrap();
    assert!(roles(&house).len() > compacted + 10 && roles(&house)[0] == Role::User);
    assert!(house.stored().iter().all(|(_, text)| !text.starts_with('/')));
}

#[tokio::test]
async fn status_and_context_say_what_the_session_holds() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    house.say("hello").await.unwrap();
    let asked = house.model.asked();
    let status = answer(&house, "/status").await;
    for part in ["script/a", "window 100000", "engine legacy", "2 messages", "compactions: 0"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let context = answer(&house, "/context").await;
    assert!(context.contains("user  kept") && context.contains("assistant  kept"), "{context}");
    let search = answer(&house, "/context where is the vault").await;
    assert!(search.contains("no workspace"), "{search}");
    assert_eq!((house.model.asked(), house.stored().len()), (asked, 2));
}

#[tokio::test]
async fn the_workspace_is_searched_by_hand() {
    let config = r#"{ agents: { defaults: { workspace: "$DIR/work" } } }"#;
    let house = House::with(ScriptedChat::new("script/a", 100_000), config, |builder| builder);
    std::fs::create_dir_all(house.dir().join("work")).unwrap();
    let note = "# Vault\n\nThe vault is called Gringolet and is opened with a brass key.\n";
    std::fs::write(house.dir().join("work/vault.md"), note).unwrap();
    let found = answer(&house, "/context what is the vault called?").await;
    assert!(found.contains("vault.md:") && found.contains("Gringolet"), "{found}");
}

#[tokio::test]
async fn what_is_remembered_by_hand_is_recalled() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    assert_eq!(answer(&house, "/remember We use PostgreSQL instead of MySQL").await, "Remembered.");
    let found = answer(&house, "/recall PostgreSQL or MySQL?").await;
    assert!(found.contains("PostgreSQL"), "{found}");
    let file = house.home().memory_dir(&FileId::main()).join("knowledge.jsonl");
    assert!(std::fs::read_to_string(file).unwrap().contains("PostgreSQL"));
}

#[tokio::test]
async fn new_begins_another_session_and_may_bring_its_first_message() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    house.say("hello").await.unwrap();
    let old = house.file();
    house.say("/new what now?").await.unwrap();
    assert_ne!(house.file(), old);
    assert_eq!(house.stored()[0].1, "what now?");
    assert_eq!(Transcript::open(&old).unwrap().main_line().unwrap().len(), 2);
    let sent = house.model.requests().last().unwrap().messages.len();
    assert_eq!(sent, 1);
}

#[tokio::test]
async fn a_session_is_compacted_from_outside_of_a_turn() {
    let mut house = House::new(ScriptedChat::new("script/a", 100_000));
    for n in 0..30 {
        house.say(&format!("message {n}\n{}", filler(1_500))).await.unwrap();
    }
    house.reopened();
    let done = house.runtime().compact(&main_key(), Some("the vault")).await.unwrap();
    assert!(done.compacted, "{done:?}");
    house.say("go on").await.unwrap();
    let sent = house.model.requests().last().unwrap().clone();
    assert_eq!(sent.messages[0].role, Role::CompactionSummary);
}
