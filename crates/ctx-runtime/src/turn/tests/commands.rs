use ctx_core::Role;
use ctx_testkit::chat::ScriptedChat;

use super::*;

async fn answer(house: &House, text: &str) -> String {
    house.say(text).await.unwrap().answer.unwrap()
}

#[tokio::test]
async fn compact_and_undo_add_no_message() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    assert_eq!(answer(&house, "/undo").await, "No compaction to undo.");
    for n in 0..30 {
        house.say(&format!("message {n}\n{}", filler(1_500))).await.unwrap();
    }
    let said = answer(&house, "/compact the vault").await;
    assert!(said.starts_with("**Compact Complete!**\n\n- Messages compacted: "), "{said}");
    let roles = |house: &House| -> Vec<Role> {
        house.model.requests().last().unwrap().messages.iter().map(|m| m.role.clone()).collect()
    };
    house.say("go on").await.unwrap();
    assert_eq!(roles(&house)[0], Role::CompactionSummary);
    let compacted = roles(&house).len();
    let said = answer(&house, "/undo").await;
    assert!(said.contains("was undone: its messages are restored"), "{said}");
    house.say("and on").await.unwrap();
    assert!(roles(&house).len() > compacted + 10 && roles(&house)[0] == Role::User);
    assert!(house.stored().iter().all(|(_, text)| !text.starts_with('/')));
}

/// Parses the usable limit from `/status`.
fn limit(status: &str) -> u64 {
    let tokens = status.split_once(" tokens (").unwrap().0.rsplit(' ').next().unwrap();
    tokens.replace(',', "").parse().unwrap()
}

#[tokio::test]
async fn status_and_context_describe_the_session() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    house.say("hello").await.unwrap();
    let asked = house.model.asked();
    let status = answer(&house, "/status").await;
    for part in ["script/a", "window 100,000", "engine legacy", "2 messages", "compactions: 0"] {
        assert!(status.contains(part), "{part}: {status}");
    }
    let context = answer(&house, "/context").await;
    let listed = |role: &str| {
        context.lines().any(|line| line.contains(&format!("  {role} ")) && line.contains("kept"))
    };
    assert!(listed("user") && listed("assistant"), "{context}");
    // Both report the same fullness, and the parts add up to the total.
    let fullness = context.split_once(';').unwrap().0;
    assert!(status.contains(fullness) && fullness.ends_with(" %)"), "{fullness}: {status}");
    let part = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let tokens = words.next()?.replace(',', "").parse::<u64>().ok();
        tokens.filter(|_| words.next().is_some_and(|share| share.parse::<u64>().is_ok()))
    };
    let parts: u64 = context
        .lines()
        .skip(2)
        .map_while(|line| match line {
            "" => Some(0),
            line => part(line),
        })
        .sum();
    assert_eq!(parts, limit(&status), "with the free part: {context}");
    let search = answer(&house, "/context where is the vault").await;
    assert!(search.contains("No workspace"), "{search}");
    assert_eq!((house.model.asked(), house.stored().len()), (asked, 2));
}

#[tokio::test]
async fn context_shows_the_next_request_and_its_cached_part() {
    let config = r#"{ agents: { defaults: { contextPruning: { mode: "turn-age" } } } }"#;
    let house = House::with(ScriptedChat::new("script/a", 32_000), config, |builder| builder);
    assert!(
        answer(&house, "/context")
            .await
            .contains("no request was sent since the session was opened")
    );
    for n in 0..3 {
        house.model.then(reads(n..n + 1));
        house.say_with(&format!("read file {n}"), &reader(2_000)).await.unwrap();
    }
    let (asked, file) = (house.model.asked(), std::fs::read(house.file()).unwrap());
    let with_tools = async || {
        let tools = reader(1);
        house.say_with("/context", &tools).await.unwrap().answer.unwrap()
    };
    let listed = with_tools().await;
    let rows = listed.lines().skip_while(|line| !line.starts_with("entry ")).skip(1);
    let rows: Vec<_> = rows.map(|line| line.to_owned()).collect();
    assert_eq!(rows.len(), 12, "{listed}");
    // The last answer was not sent yet; everything before it is as sent.
    assert!(rows[..11].iter().all(|line| line.contains("  cached")), "{listed}");
    assert!(rows[11].contains("  first change"), "{listed}");
    assert_eq!(house.model.asked(), asked);
    assert_eq!(std::fs::read(house.file()).unwrap(), file, "the preview is not stored");
    let share = |listed: &str| -> (u64, u64) {
        let next = listed.split_once("next request: ").unwrap().1;
        let number = |text: &str| text.split(' ').next()?.replace(',', "").parse().ok();
        (number(next).unwrap(), number(next.split_once("; ").unwrap().1).unwrap())
    };
    let (whole, prefix) = share(&listed);
    assert!(0 < prefix && prefix < whole, "{listed}");
    // Changed tools come before everything else in the request.
    house.say("and now without tools").await.unwrap();
    let (whole, prefix) = share(&answer(&house, "/context").await);
    assert!(0 < prefix && prefix < whole);
    let listed = with_tools().await;
    assert!(share(&listed).1 == 0 && !listed.contains("cached"), "{listed}");
}

#[tokio::test]
async fn context_with_a_query_searches_the_workspace() {
    let config = r#"{ agents: { defaults: { workspace: "$DIR/work" } } }"#;
    let house = House::with(ScriptedChat::new("script/a", 100_000), config, |builder| builder);
    std::fs::create_dir_all(house.dir().join("work")).unwrap();
    let note = "# Vault\n\nThe vault is called Gringolet and is opened with a brass key.\n";
    std::fs::write(house.dir().join("work/vault.md"), note).unwrap();
    let found = answer(&house, "/context what is the vault called?").await;
    assert!(found.contains("vault.md:") && found.contains("Gringolet"), "{found}");
}

#[tokio::test]
async fn a_remembered_fact_is_recalled() {
    let house = House::new(ScriptedChat::new("script/a", 100_000));
    let text = answer(&house, "/remember We use PostgreSQL instead of MySQL").await;
    assert!(text.starts_with("Remembered. But long-term memory is disabled"), "{text}");
    let found = answer(&house, "/recall PostgreSQL or MySQL?").await;
    assert!(found.contains("PostgreSQL"), "{found}");
    let file = house.home().memory_dir(&FileId::main()).join("knowledge.jsonl");
    assert!(std::fs::read_to_string(file).unwrap().contains("PostgreSQL"));
}

#[tokio::test]
async fn new_starts_a_session_with_an_optional_first_message() {
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
async fn a_session_can_be_compacted_outside_of_a_turn() {
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
