//! The memory of a session as layers see it.

use futures_util::FutureExt;

use super::*;
use crate::facts::{FactStore, Scope};

fn said(session: &SessionMemory, texts: &[&str]) {
    let entries: Vec<_> = texts
        .iter()
        .map(|text| Arc::new(Entry::in_memory(*text, Message::text(Role::User, *text))))
        .collect();
    session.archive(&entries).unwrap();
    waited(session.flush()).unwrap();
}

const TALK: [&str; 6] = [
    "let us deploy the billing service on Friday",
    "the staging database listens on port 5433",
    "my cat is called Whiskers",
    "tests of the parser fail since the last merge",
    "the invoice template needs a new logo",
    "we should write documentation for the parser",
];

#[test]
fn dropped_messages_are_recalled_only_for_a_matching_question() {
    let folder = tempfile::tempdir().unwrap();
    let memory = memory(folder.path());
    let session = SessionMemory::new(memory, "s", maker("s"));
    said(&session, &TALK);
    let recalled = |request| waited(session.recall(request)).unwrap();
    let port = recalled(request("which port does the staging database use?"));
    assert_eq!(port.passages[0].text, TALK[1]);
    assert_eq!(port.passages[0].entry.as_deref(), Some(TALK[1]));
    assert!(port.passages.iter().any(|p| p.text == TALK[2]), "what was said next comes with it");
    assert!(recalled(request("write a poem about autumn leaves")).passages.is_empty());
    assert!(recalled(request("")).passages.is_empty());
    // What the model sees is not recalled.
    let mut seen = request("which port does the staging database use?");
    seen.visible = TALK.iter().map(|text| Arc::from(*text)).collect();
    assert!(recalled(seen).passages.is_empty());
    assert_eq!(self::memory(folder.path()).stats().unwrap().segments, TALK.len());
}

#[test]
fn a_recalled_question_brings_its_reply_and_a_statement_does_not() {
    let mut settings = settings();
    // Otherwise the message after a match is a match as well.
    settings.search.spread = 0.0;
    let memory = Memory::in_memory(settings);
    let session = SessionMemory::new(memory, "s", maker("s"));
    let talk = [
        (Role::User, "the diff is fine. one worry: can the u32 generation overflow?"),
        (Role::Assistant, "let me look"),
        (Role::ToolResult, "pub id: u64"),
        (Role::Assistant, "Not in practice: I'd leave it."),
        (Role::ToolResult, "done"),
        (Role::User, "then go on with the changelog"),
        (Role::Assistant, "the generation counter stands in it"),
        (Role::User, "租约的编号会溢出吗？"),
        (Role::Assistant, "不会。"),
    ];
    let entry = |(role, text): &(Role, &str)| {
        Arc::new(Entry::in_memory(*text, Message::text(role.clone(), *text)))
    };
    session.archive(&talk.iter().map(entry).collect::<Vec<_>>()).unwrap();
    waited(session.flush()).unwrap();
    let recalled = |request| -> Vec<String> {
        let passages = waited(session.recall(request)).unwrap().passages;
        passages.into_iter().filter(|p| !p.adjacent).map(|passage| passage.text).collect()
    };
    let query = "can the u32 generation overflow?";
    assert_eq!(recalled(request(query))[..2], [talk[0].1, talk[3].1]);
    assert_eq!(recalled(request("编号会溢出吗"))[..2], [talk[7].1, talk[8].1]);
    let found = recalled(request("what about the changelog?"));
    assert_eq!(found[0], talk[5].1);
    assert!(!found.iter().any(|text| text == talk[6].1), "{found:?}");
    // A reply that the model sees is not recalled.
    let mut seen = request(query);
    seen.visible = [Arc::from(talk[3].1)].into();
    assert!(!recalled(seen).iter().any(|text| text == talk[3].1));
}

#[test]
fn a_session_recalls_other_sessions_only_if_configured() {
    let memory = Memory::in_memory(settings());
    said(&SessionMemory::new(memory.clone(), "a", maker("a")), &TALK);
    let other = SessionMemory::new(memory.clone(), "b", maker("b"));
    let ask = || request("what is my cat called?");
    assert!(waited(other.recall(ask())).unwrap().passages.is_empty());
    let across = SessionMemory::new(memory, "b", maker("b")).with_cross_session(true);
    assert_eq!(waited(across.recall(ask())).unwrap().passages[0].text, TALK[2]);
}

#[test]
fn archiving_any_number_of_messages_does_not_block() {
    let memory = Memory::in_memory(settings());
    let session = SessionMemory::new(memory.clone(), "s", maker("s"));
    let entries: Vec<_> = (0..3_000)
        .map(|n| format!("message {n}"))
        .map(|text| {
            Arc::new(Entry::in_memory(text.as_str(), Message::text(Role::User, text.as_str())))
        })
        .collect();
    {
        let _somebody_is_at_it = session.shared.working.lock().unwrap();
        session.archive(&entries).unwrap();
        session.archive(&entries).unwrap();
        assert_eq!(memory.stats().unwrap().segments, 0);
    }
    waited(session.flush()).unwrap();
    assert_eq!(memory.stats().unwrap().segments, 3_000);
}

#[test]
fn messages_wait_until_the_archive_can_be_opened() {
    let folder = tempfile::tempdir().unwrap();
    let context = folder.path().join("context");
    fs::create_dir_all(context.join("segments.jsonl")).unwrap();
    let session = SessionMemory::new(memory(&context), "s", maker("s"));
    let entry = |text: &&str| Arc::new(Entry::in_memory(*text, Message::text(Role::User, *text)));
    session.archive(&TALK.iter().map(entry).collect::<Vec<_>>()).unwrap();
    let error = waited(session.flush()).unwrap_err();
    assert!(error.hint_text().is_some(), "{error}");
    assert!(waited(session.flush()).is_err(), "it still cannot be opened");
    fs::remove_dir(context.join("segments.jsonl")).unwrap();
    waited(session.flush()).unwrap();
    let text = fs::read_to_string(context.join("segments.jsonl")).unwrap();
    assert_eq!(text.lines().count(), TALK.len());
}

#[test]
fn a_recall_that_waits_for_facts_does_not_block_its_thread() {
    let facts = Arc::new(Mutex::new(FactStore::in_memory(Scope::Session)));
    let session = SessionMemory::new(Memory::in_memory(settings()), "s", maker("s"));
    let session = session.with_facts(facts.clone());
    said(&session, &TALK);
    let mut turn = Box::pin(session.recall(request("what is my cat called?")));
    {
        let _somebody_learns = facts.lock().unwrap();
        assert!(turn.as_mut().now_or_never().is_none());
    }
    assert_eq!(waited(turn).unwrap().passages[0].text, TALK[2]);
}

#[test]
fn a_very_long_message_is_cut_to_what_a_block_can_show() {
    let session = SessionMemory::new(Memory::in_memory(settings()), "s", maker("s"));
    let log = format!("log {}", "lorem ipsum dolor\n".repeat(60_000));
    said(&session, &[TALK[0], TALK[1], &log]);
    let found = waited(session.recall(request("which port does the staging database use?")));
    let passages = found.unwrap().passages;
    assert_eq!(passages[0].text, TALK[1]);
    let next = passages.iter().find(|passage| passage.text.starts_with("log lorem")).unwrap();
    assert!(next.adjacent && next.text.len() < 300_000, "{}", next.text.len());
}

#[test]
fn messages_of_many_calls_are_all_archived_in_order() {
    let memory = Memory::in_memory(settings());
    let session = SessionMemory::new(memory.clone(), "s", maker("s"));
    let texts: Vec<String> = (0..3_000).map(|n| format!("message {n}")).collect();
    for texts in texts.chunks(7) {
        let entry = |text: &String| {
            Arc::new(Entry::in_memory(text.as_str(), Message::text(Role::User, text.as_str())))
        };
        session.archive(&texts.iter().map(entry).collect::<Vec<_>>()).unwrap();
    }
    waited(session.flush()).unwrap();
    assert_eq!(memory.stats().unwrap().segments, 3_000);
    let ids = memory.inner.live().index.ids().to_vec();
    let first = memory.get(&ids[..2]).unwrap();
    assert_eq!(first[1].as_ref().map(|s| s.content.as_str()), Some("message 1"));
}
