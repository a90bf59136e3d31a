//! What layers recall, trim and archive.

use ctx_core::{Layer, Role};
use ctx_memory::{Archive, Config, Placement, Recall, Trim};
use ctx_search::block::is_recalled;

use ctx_testkit::memory::{ScriptedMemory, say, texts, turn, view};

use crate::support::section_of;

fn config() -> Config {
    Config { enabled: true, ..Config::default() }
}

/// A hundred messages about gardening, with one about a database among them.
fn long_session(window: u32) -> ctx_core::ContextView {
    let mut view = view(window);
    for n in 0..50 {
        let about = if n == 3 { "the database is Postgres 16 on port 6432" } else { "roses" };
        say(&mut view, Role::User, &format!("{about} {n} {}", "mulch compost spade ".repeat(30)));
        say(&mut view, Role::Assistant, &format!("noted {n} {}", "rake hoe barrow ".repeat(30)));
    }
    view
}

#[test]
fn a_block_stands_right_before_the_newest_user_message_and_stays_there_through_the_turn() {
    let memory = ScriptedMemory::with(&["we chose Stripe"], &["Use Stripe"]);
    let layer = Recall::new(config(), memory.clone());
    let mut view = view(32_000);
    say(&mut view, Role::User, "which payment provider did we choose?");
    turn(&[&layer], &mut view);
    let before = texts(&view);
    assert!(is_recalled(&before[0]) && before[0].contains("- [decision] Use Stripe"), "{before:?}");
    assert!(before[0].contains("user] we chose Stripe"), "{before:?}");
    say(&mut view, Role::Assistant, "Stripe, as decided");
    turn(&[&layer], &mut view);
    assert_eq!(texts(&view)[..2], before[..], "the prefix stays");
    assert_eq!(memory.queries(), ["which payment provider did we choose?"], "asked once a turn");
}

#[test]
fn an_earlier_block_stays_where_it_is_so_that_the_cached_prefix_holds() {
    let memory = ScriptedMemory::with(&["first"], &[]);
    let layer = Recall::new(config(), memory.clone());
    let mut view = view(32_000);
    say(&mut view, Role::User, "a question about one");
    turn(&[&layer], &mut view);
    let before = texts(&view);
    say(&mut view, Role::Assistant, "an answer");
    say(&mut view, Role::User, "a question about two");
    let requests = view.finish().unwrap();
    turn(&[&layer], &mut view);
    assert_eq!(texts(&view)[..2], before[..]);
    assert!(is_recalled(&texts(&view)[3]), "{:?}", texts(&view));
    assert!(requests.unchanged_prefix.0 > 0);
    let asked = memory.asked.lock().unwrap();
    assert!(asked[1].visible.contains("old0"), "what is shown already is not asked for again");
}

#[test]
fn under_the_profile_of_the_memory_extension_one_block_stands_after_the_summary() {
    let memory = ScriptedMemory::with(&["first"], &[]);
    let config: Config = section_of("memory-context");
    assert_eq!(config.recall.placement, Placement::AfterSummary);
    let layer = Recall::new(config, memory.clone());
    let mut view = view(32_000);
    say(&mut view, Role::System, "you are a gardener");
    say(&mut view, Role::User, "a question about one");
    turn(&[&layer], &mut view);
    let mut second = memory.answer.lock().unwrap().passages[0].clone();
    (second.text, second.entry) = ("second".into(), Some("old1".into()));
    memory.answer.lock().unwrap().passages = vec![second];
    say(&mut view, Role::Assistant, "an answer");
    say(&mut view, Role::User, "a question about two");
    turn(&[&layer], &mut view);
    let texts = texts(&view);
    assert!(texts[1].contains("second"), "{texts:?}");
    assert_eq!(texts.iter().filter(|text| is_recalled(text)).count(), 1, "{texts:?}");
}

#[test]
fn near_the_limit_irrelevant_messages_are_trimmed_first_and_stay_trimmed() {
    let layer = Trim::new(config());
    let mut view = long_session(16_000);
    say(&mut view, Role::User, "on which port does the database listen?");
    turn(&[&layer], &mut view);
    let sent = texts(&view);
    assert!(sent.iter().any(|text| text.contains("port 6432")), "{}", sent.len());
    assert!(sent.len() < 90, "{}", sent.len());
    turn(&[&layer], &mut view);
    assert_eq!(texts(&view), sent, "a second time trims nothing more");
    say(&mut view, Role::Assistant, "6432");
    turn(&[&layer], &mut view);
    assert_eq!(texts(&view)[..sent.len()], sent[..], "what was trimmed stays trimmed");
}

#[test]
fn the_last_messages_stay_with_any_content() {
    let layer = Trim::new(config());
    let mut view = long_session(16_000);
    say(&mut view, Role::User, "on which port does the database listen?");
    let last = texts(&view)[96..].to_vec();
    turn(&[&layer], &mut view);
    let sent = texts(&view);
    assert_eq!(sent[sent.len() - last.len()..], last[..]);
}

#[test]
fn too_short_a_query_trims_nothing_and_recalls_nothing() {
    let memory = ScriptedMemory::with(&["something"], &[]);
    let layer = Recall::new(config(), memory.clone());
    let mut view = view(16_000);
    say(&mut view, Role::User, "ok");
    turn(&[&layer], &mut view);
    assert_eq!(texts(&view), ["ok"]);
    assert!(memory.queries().is_empty());
}

#[test]
fn a_failing_memory_costs_only_the_block_and_is_reported_once() {
    let memory = std::sync::Arc::new(ScriptedMemory { fails: true, ..ScriptedMemory::default() });
    let (recall, archive) = (Recall::new(config(), memory.clone()), Archive::new(memory));
    let trim = Trim::new(config());
    let mut view = long_session(16_000);
    for question in ["which port is it?", "which port was it?"] {
        say(&mut view, Role::User, question);
        turn(&[&recall, &trim, &archive], &mut view);
    }
    assert_eq!(texts(&view).last().unwrap(), "which port was it?");
    let warnings = [recall.take_warnings(), archive.take_warnings()].concat();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("the index is gone"), "{warnings:?}");
    assert!(warnings[1].contains("the disk is full"), "{warnings:?}");
    assert!(recall.take_warnings().is_empty());
}

#[test]
fn only_messages_that_leave_the_window_are_archived_each_once() {
    let memory = ScriptedMemory::with(&["recalled"], &[]);
    let (recall, archive) = (Recall::new(config(), memory.clone()), Archive::new(memory.clone()));
    let trim = Trim::new(config());
    let mut view = long_session(16_000);
    say(&mut view, Role::User, "on which port does the database listen?");
    turn(&[&recall, &trim, &archive], &mut view);
    turn(&[&recall, &trim, &archive], &mut view);
    let archived = memory.archived.lock().unwrap().clone();
    let gone: Vec<String> =
        view.dropped().iter().map(|node| node.entry().id().to_string()).collect();
    assert!(archived.len() > 10);
    assert_eq!(archived, gone);
}

#[test]
fn messages_dropped_by_the_view_are_archived_with_the_next_request() {
    let memory = ScriptedMemory::with(&[], &[]);
    let archive = Archive::new(memory.clone());
    let mut view = long_session(16_000);
    turn(&[&archive], &mut view);
    assert!(memory.archived.lock().unwrap().is_empty());
    turn(&[&archive], &mut view);
    assert_eq!(memory.archived.lock().unwrap().len(), view.dropped().len());
}

#[test]
fn a_block_is_never_larger_than_a_twentieth_of_the_window() {
    let long = "a passage that is long ".repeat(2_000);
    let layer = Recall::new(config(), ScriptedMemory::with(&[&long, &long], &[]));
    let mut view = view(16_000);
    say(&mut view, Role::User, "what was the passage?");
    turn(&[&layer], &mut view);
    let block = view.nodes()[0].tokens();
    assert!(block.0 > 400 && block.0 <= 804, "{block:?}");
}
