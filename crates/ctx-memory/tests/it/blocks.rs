//! How long blocks stay in a view, and what replaces them.

use std::sync::Arc;

use ctx_core::{ContextView, Entry, Message, Role};
use ctx_memory::{Config, Recall};
use ctx_search::block::is_recalled;

use ctx_testkit::memory::{ScriptedMemory, say, texts, turn, view};

use crate::support::section_of;

fn config() -> Config {
    Config { enabled: true, ..Config::default() }
}

fn blocks(view: &ContextView) -> Vec<String> {
    texts(view).into_iter().filter(|text| is_recalled(text)).collect()
}

#[test]
fn a_block_after_the_summary_stays_while_its_passages_still_match() {
    let memory = ScriptedMemory::unseen(&["we chose Stripe", "the webhook passes"]);
    let layer = Recall::new(section_of("memory-context"), memory.clone());
    let mut view = view(32_000);
    say(&mut view, Role::User, "which payment provider did we choose?");
    turn(&[&layer], &mut view);
    let first = blocks(&view);
    assert_eq!(first.len(), 1);
    let before = texts(&view);
    for question in ["and does its webhook pass?", "and in the payment sandbox?"] {
        say(&mut view, Role::Assistant, "an answer");
        say(&mut view, Role::User, question);
        turn(&[&layer], &mut view);
        assert_eq!(blocks(&view), first, "{question}");
        assert_eq!(texts(&view)[..before.len()], before[..], "the prefix stays");
    }
    // If nothing is recalled, earlier blocks stay.
    memory.answer.lock().unwrap().passages.clear();
    say(&mut view, Role::User, "thanks, go on");
    turn(&[&layer], &mut view);
    assert_eq!(blocks(&view), first);
}

#[test]
fn a_new_block_contains_matching_passages_of_removed_blocks() {
    let memory = ScriptedMemory::unseen(&["the database is Postgres 16"]);
    let layer = Recall::new(config(), memory.clone());
    let mut view = view(16_000);
    let mut most = 0;
    for n in 0..12 {
        {
            let mut answer = memory.answer.lock().unwrap();
            answer.passages.truncate(1);
            for part in ["a", "b"] {
                let mut long = answer.passages[0].clone();
                long.text = format!("{part}{n} {}", "mulch compost ".repeat(300));
                long.entry = Some(format!("{part}{n}").into());
                long.score = 0.5;
                answer.passages.push(long);
            }
        }
        say(&mut view, Role::User, &format!("question {n}: which database is it?"));
        turn(&[&layer], &mut view);
        let blocks = blocks(&view);
        let told = blocks.iter().filter(|text| text.contains("Postgres 16")).count();
        assert_eq!(told, 1, "turn {n}: {} blocks", blocks.len());
        most = most.max(blocks.len());
    }
    assert!(most > 1 && blocks(&view).len() < 12, "some stay, and some left: {most}");
}

#[test]
fn over_the_limit_blocks_of_earlier_messages_are_removed_first() {
    let memory = ScriptedMemory::with(&["we chose Stripe"], &[]);
    let layer = Recall::new(config(), memory.clone());
    let mut view = view(16_000);
    say(&mut view, Role::User, "which payment provider did we choose?");
    turn(&[&layer], &mut view);
    assert_eq!(blocks(&view).len(), 1);
    memory.answer.lock().unwrap().passages.clear();
    say(&mut view, Role::User, "what is the weather like today?");
    turn(&[&layer], &mut view);
    assert_eq!(blocks(&view).len(), 1, "there is room");
    let long = "rake hoe barrow ".repeat(2_900);
    say(&mut view, Role::Assistant, &long);
    turn(&[&layer], &mut view);
    assert!(blocks(&view).is_empty(), "the newest message has no block of its own");
}

#[test]
fn a_rebuilt_view_has_its_blocks_in_the_same_places() {
    let memory = ScriptedMemory::unseen(&["we chose Stripe"]);
    let layer = Recall::new(config(), memory.clone());
    let entry =
        |id: &str, role, text: &str| Arc::new(Entry::in_memory(id, Message::text(role, text)));
    let talk = [
        entry("m1", Role::User, "which payment provider did we choose?"),
        entry("m2", Role::Assistant, "Stripe, as decided"),
        entry("m3", Role::User, "does its webhook pass?"),
    ];
    let made = |talk: &[Arc<Entry>]| {
        let mut view = view(32_000);
        talk.iter().for_each(|entry| view.append(entry.clone()).unwrap());
        view
    };
    let mut first = made(&talk);
    turn(&[&layer], &mut first);
    let mut later = made(&talk);
    say(&mut later, Role::Assistant, "it does");
    turn(&[&layer], &mut later);
    assert_eq!(texts(&later)[..4], texts(&first)[..], "one more message, and the same before it");
    assert_eq!(memory.queries().len(), 1, "the same message is not asked for again");
    // The user edits the message: its block is removed with it.
    let mut edited = made(&talk[..2]);
    edited.append(entry("m3", Role::User, "what is the weather like today?")).unwrap();
    turn(&[&layer], &mut edited);
    assert_eq!(memory.queries().len(), 2);
}
