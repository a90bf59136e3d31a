//! How long blocks stay in a view, and what replaces them.

use std::sync::Arc;

use ctx_core::{Compacted, ContextView, Entry, Message, Role, Tokens};
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
fn after_a_compaction_the_block_of_the_newest_message_is_recalled_again() {
    let memory = ScriptedMemory::unseen(&["we chose Stripe"]);
    let layer = Recall::new(config(), memory.clone());
    let mut view = view(32_000);
    say(&mut view, Role::Assistant, "an old answer");
    say(&mut view, Role::User, "which payment provider did we choose?");
    turn(&[&layer], &mut view);
    let first = blocks(&view);
    assert_eq!(first.len(), 1);
    let kept = say(&mut view, Role::Assistant, "a step");
    let compacted = Compacted {
        summary: "what was done".into(),
        first_kept_entry_id: kept.as_str().into(),
        tokens_before: Tokens(100),
        tokens_after: None,
        details: None,
        staying: Vec::new(),
        projections: Vec::new(),
    };
    view.compact(compacted, "s1", "compaction", "full").unwrap();
    assert!(blocks(&view).is_empty(), "the block left with its history");
    turn(&[&layer], &mut view);
    assert_eq!(blocks(&view), first);
    say(&mut view, Role::Assistant, "another step");
    turn(&[&layer], &mut view);
    assert_eq!(memory.queries().len(), 2, "once per message and compaction");
}

#[test]
fn earlier_blocks_stay_in_a_window_that_is_nearly_full_and_no_block_exceeds_it() {
    let memory = ScriptedMemory::with(&[&"the provider is Stripe ".repeat(100)], &[]);
    let layer = Recall::new(config(), memory);
    let mut view = view(16_000);
    say(&mut view, Role::User, "which payment provider did we choose?");
    turn(&[&layer], &mut view);
    let before = texts(&view);
    say(&mut view, Role::Assistant, &"rake hoe barrow ".repeat(2_950));
    say(&mut view, Role::User, "and the provider before that?");
    turn(&[&layer], &mut view);
    assert_eq!(texts(&view)[..2], before[..], "the prefix stays");
    assert!(view.used() <= view.ledger().limit());
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
