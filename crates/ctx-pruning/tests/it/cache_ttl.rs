use ctx_core::{Block, Chars, Layer, Message, Role};
use ctx_pruning::{Config, HardClear, Mode, Pruning, Tools};

use crate::session::{Session, turn_context};

const PLACEHOLDER: &str = "[Old tool result content cleared]";

fn config() -> Config {
    Config { mode: Mode::CacheTtl, ..Config::default() }
}

/// Results of 8,000 characters that fill 60 % of the window.
fn session(results: usize) -> (Session, Vec<usize>) {
    let mut session = Session::new((results * 8_000 / 4 * 10 / 6) as u32);
    session.push(Message::text(Role::User, "begin"));
    let at = (0..results).map(|_| session.read(8_000)).collect();
    for _ in 0..3 {
        session.talk();
    }
    (session, at)
}

#[test]
fn off_by_default() {
    let (mut session, _) = session(4);
    assert_eq!(session.prune(&Config::default(), 60), 0);
}

#[test]
fn only_when_the_cache_has_expired() {
    let (mut session, at) = session(4);
    let layer = Pruning::new(config()).unwrap();
    layer.apply(&mut session.view, None, &turn_context(None)).unwrap();
    assert!(session.view.edits().is_empty(), "the first request never prunes");
    assert_eq!(session.prune(&config(), 4), 0);
    assert_eq!(session.prune(&Config { ttl: "0".parse().unwrap(), ..config() }, 60), 0);
    assert_eq!(session.prune(&config(), 5), 4);
    assert!(session.text(at[0]).ends_with(
        "\n\n[Tool result trimmed: kept first 1500 chars and last 1500 chars of 8000 chars.]"
    ));
}

#[test]
fn a_request_that_takes_little_of_the_window_is_left_alone() {
    let (mut session, _) = session(4);
    assert_eq!(
        session.prune(&Config { soft_trim_ratio: 0.7, hard_clear_ratio: 0.9, ..config() }, 60),
        0
    );
}

#[test]
fn the_last_assistants_and_messages_before_the_first_user_message_stay() {
    let mut session = Session::new(10_000);
    let before = session.read(8_000);
    session.push(Message::text(Role::User, "begin"));
    let stale = session.read(8_000);
    session.talk();
    // The third-last assistant message makes this call.
    let recent = session.read(8_000);
    session.talk();
    session.talk();
    assert_eq!(session.prune(&config(), 60), 1);
    assert!(session.text(stale).contains("[Tool result trimmed"));
    assert_eq!((session.text(before).len(), session.text(recent).len()), (8_000, 8_000));
}

#[test]
fn with_too_few_assistants_nothing_is_pruned() {
    let mut session = Session::new(3_000);
    session.push(Message::text(Role::User, "begin"));
    session.read(8_000);
    session.push(Message::text(Role::Assistant, "done"));
    assert_eq!(session.prune(&config(), 60), 0);
    // Without `keepLastAssistants` too, the call in progress and its result are protected.
    let mut session = Session::new(3_000);
    session.push(Message::text(Role::User, "begin"));
    session.read(8_000);
    assert_eq!(session.prune(&Config { keep_last_assistants: 0, ..config() }, 60), 0);
}

#[test]
fn the_oldest_are_cleared_until_the_request_is_below_the_ratio() {
    // 40 trimmed results of about 3,080 characters are 31,000 tokens.
    let mut session = Session::new(40_000);
    session.push(Message::text(Role::User, "begin"));
    let at: Vec<usize> = (0..40).map(|_| session.read(8_000)).collect();
    for _ in 0..3 {
        session.talk();
    }
    session.prune(&config(), 60);
    let cleared = at.iter().filter(|&&at| session.text(at) == PLACEHOLDER).count();
    assert!(at[..cleared].iter().all(|&at| session.text(at) == PLACEHOLDER), "oldest first");
    assert!(cleared > 0 && cleared < at.len());
    let used = session.view.used().0;
    assert!(used < 20_000 && used > 20_000 - 800, "{used}");
}

#[test]
fn clearing_for_the_total_needs_enough_to_clear_and_can_be_off() {
    let (mut small, at) = session(10);
    let window_full = Config { soft_trim_ratio: 0.1, hard_clear_ratio: 0.2, ..config() };
    small.prune(&window_full, 60);
    // Ten trimmed results have about 30,000 characters: under 50,000.
    assert!(at.iter().all(|&at| small.text(at) != PLACEHOLDER));
    small.prune(&Config { min_prunable_tool_chars: Chars(30_000), ..window_full.clone() }, 60);
    assert_eq!(small.text(at[0]), PLACEHOLDER);

    let (mut off, at) = session(10);
    let no_clear = HardClear { enabled: false, ..HardClear::default() };
    let config = Config { min_prunable_tool_chars: Chars(0), hard_clear: no_clear, ..window_full };
    off.prune(&config, 60);
    assert!(off.text(at[0]).contains("[Tool result trimmed"));
}

#[test]
fn a_result_too_large_alone_is_cleared_at_once() {
    let mut session = Session::new(10_000);
    session.push(Message::text(Role::User, "begin"));
    let giant = session.read(30_000);
    let small = session.read(5_000);
    for _ in 0..3 {
        session.talk();
    }
    assert_eq!(session.prune(&config(), 60), 2);
    assert_eq!(session.text(giant), PLACEHOLDER);
    assert!(session.text(small).contains("[Tool result trimmed"));
}

#[test]
fn tools_are_chosen_by_pattern_and_found_by_their_call() {
    let mut session = Session::new(10_000);
    session.push(Message::text(Role::User, "begin"));
    let text = || vec![Block::text("x".repeat(8_000))];
    let read = session.run("Read", text());
    let bash = session.run("bash", text());
    let fetch = session.run("mcp_fetch", text());
    for _ in 0..3 {
        session.talk();
    }
    let tools = Tools { allow: vec!["read".into(), "mcp_*".into()], deny: vec!["*fetch".into()] };
    assert_eq!(session.prune(&Config { tools, ..config() }, 60), 1);
    assert!(session.text(read).contains("[Tool result trimmed"));
    assert_eq!((session.text(bash).len(), session.text(fetch).len()), (8_000, 8_000));
}

#[test]
fn trimmed_results_stay_trimmed_after_finish() {
    let (mut session, at) = session(4);
    session.prune(&config(), 60);
    let trimmed = session.text(at[0]);
    session.view.finish().unwrap();
    session.talk();
    assert_eq!(session.prune(&config(), 60), 0);
    assert_eq!(session.text(at[0]), trimmed);
}
