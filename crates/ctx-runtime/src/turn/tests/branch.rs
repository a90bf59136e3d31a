use ctx_testkit::chat::ScriptedChat;

use super::*;

#[tokio::test]
async fn moving_to_another_branch_adds_a_summary_of_the_abandoned_one() {
    let mut house = House::new(ScriptedChat::new("script/a", 32_000));
    house.say("The vault is called Gringolet.").await.unwrap();
    let first = Transcript::open(&house.file()).unwrap().leaf().unwrap().clone();
    house.say("We must use port 8443 for the gateway.").await.unwrap();
    house.say("Never restart the mail server.").await.unwrap();
    let second = Transcript::open(&house.file()).unwrap().leaf().unwrap().clone();
    let asked = house.model.asked();
    let said = house.say(&format!("/branch e:{first}")).await.unwrap().answer.unwrap();
    assert!(said.contains("4 messages remain on the other branch"), "{said}");
    assert_eq!(house.model.asked(), asked, "a move makes no request");
    house.say("and now?").await.unwrap();
    let sent = house.model.requests().last().unwrap().messages.clone();
    let roles: Vec<_> = sent.iter().map(|message| message.role.name().to_owned()).collect();
    assert_eq!(roles, ["user", "assistant", "branchSummary", "user"]);
    let summary = sent[2].plain_text();
    assert!(summary.starts_with("The user explored a different conversation branch"), "{summary}");
    assert!(summary.contains("8443") && summary.contains("mail server"), "{summary}");
    assert!(!summary.contains("Gringolet"), "it excludes what is on both branches: {summary}");
    let lines = std::fs::read_to_string(house.file()).unwrap();
    let entry = lines.lines().find(|line| line.contains("\"branch_summary\"")).unwrap();
    assert!(entry.contains(&format!("\"fromId\":\"{second}\"")), "{entry}");
    // Another process sees the branch, and moves back.
    house.reopened();
    let ends = house.say("/branch").await.unwrap().answer.unwrap();
    assert!(ends.contains(&*second), "{ends}");
    house.say(&format!("/branch {second}")).await.unwrap();
    house.say("go on").await.unwrap();
    let sent = house.model.requests().last().unwrap().messages.clone();
    assert!(sent.iter().any(|message| message.plain_text().contains("Never restart")));
    let unknown = house.say("/branch zzzz").await.unwrap_err();
    assert_eq!(unknown.kind(), ctx_core::ErrorKind::NotFound);
}

#[tokio::test]
async fn moving_forward_on_a_branch_abandons_nothing() {
    let house = House::new(ScriptedChat::new("script/a", 32_000));
    house.say("one").await.unwrap();
    let leaf = Transcript::open(&house.file()).unwrap().leaf().unwrap().clone();
    let said = house.say(&format!("/branch {leaf}")).await.unwrap().answer.unwrap();
    assert!(said.contains("0 messages"), "{said}");
    assert!(!std::fs::read_to_string(house.file()).unwrap().contains("branch_summary"));
}
