use ctx_core::{Role, Tokens};
use ctx_tool_guard::{AGGREGATE_ELISION_NOTICE, Config, ToolGuard};

use crate::session::{Session, image};

/// A window of 100,000 tokens: the cap on all results is 50,000.
fn session(results: usize) -> (Session, Vec<usize>) {
    let mut session = Session::new(100_000);
    session.say(Role::User, "go");
    let at = (0..results).map(|_| session.read(&"x".repeat(20_000))).collect();
    (session, at)
}

#[test]
fn up_to_the_cap_nothing_is_elided() {
    let (mut session, _) = session(10);
    assert_eq!(session.view.result_total(), Tokens(50_000));
    assert_eq!(session.guard(&ToolGuard::new(Config::default())), 0);
}

#[test]
fn above_the_cap_the_oldest_are_elided_until_three_quarters_are_left() {
    let (mut session, at) = session(11);
    let guard = ToolGuard::new(Config::default());
    session.guard(&guard);
    let elided: Vec<bool> =
        at.iter().map(|&at| session.text(at) == AGGREGATE_ELISION_NOTICE).collect();
    assert_eq!(elided, [vec![true; 4], vec![false; 7]].concat());
    assert!(session.view.result_total() <= Tokens(37_500));
    assert_eq!(session.guard(&guard), 0);
}

#[test]
fn the_prefix_breaks_once_in_several_turns() {
    let (mut session, _) = session(10);
    let guard = ToolGuard::new(Config::default());
    let mut breaks = 0;
    for _ in 0..30 {
        session.read(&"x".repeat(20_000));
        breaks += usize::from(session.guard(&guard) > 0);
        session.view.finish().unwrap();
    }
    assert!((1..=11).contains(&breaks), "{breaks}");
}

#[test]
fn large_results_in_a_small_window_break_the_prefix_no_more_often() {
    let mut session = Session::new(32_000);
    session.say(Role::User, "go");
    let guard = ToolGuard::new(Config::default());
    let mut breaks = 0;
    for _ in 0..40 {
        session.read(&"x".repeat(14_800));
        breaks += usize::from(session.guard(&guard) > 0);
        session.view.finish().unwrap();
    }
    assert!((1..=10).contains(&breaks), "{breaks}");
}

#[test]
fn an_elided_result_keeps_the_path_of_its_full_text() {
    let (mut session, _) = session(0);
    let pointer = "[full output preserved at /agents/main/tool-results/1.txt]";
    let at = session.read(&format!("{}\n{pointer}", "x".repeat(20_000)));
    for _ in 0..10 {
        session.read(&"x".repeat(20_000));
    }
    let guard = ToolGuard::new(Config::default());
    session.guard(&guard);
    assert_eq!(session.text(at), format!("{AGGREGATE_ELISION_NOTICE}\n{pointer}"));
    assert_eq!(session.guard(&guard), 0);
}

#[test]
fn results_in_progress_are_not_elided() {
    let mut session = Session::new(100_000);
    session.say(Role::User, "go");
    let old = session.read(&"x".repeat(20_000));
    let contents = vec![vec![ctx_core::Block::text("x".repeat(30_000))]; 8];
    let first = session.run(contents);
    session.guard(&ToolGuard::new(Config::default()));
    assert_eq!(session.text(old), AGGREGATE_ELISION_NOTICE);
    assert!((first..first + 8).all(|at| session.text(at).len() == 30_000));
}

#[test]
fn a_result_with_only_an_image_is_elided_like_any_other() {
    let mut session = Session::new(100_000);
    session.say(Role::User, "go");
    let first = session.run(vec![vec![image()]]);
    for _ in 0..50 {
        session.run(vec![vec![image()]]);
    }
    let guard = ToolGuard::new(Config::default());
    session.guard(&guard);
    assert_eq!(session.text(first), AGGREGATE_ELISION_NOTICE);
    assert!(session.view.result_total() <= Tokens(37_500));
    assert_eq!(session.guard(&guard), 0);
}
