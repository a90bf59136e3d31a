use ctx_core::{Block, CounterKind, Message, Role};
use ctx_tool_guard::{
    CONTEXT_LIMIT_TRUNCATION_NOTICE, Config, MIDDLE_CONTENT_OMITTED_NOTICE,
    PREEMPTIVE_TOOL_RESULT_COMPACTION_PLACEHOLDER, ToolGuard,
};

use crate::config_of;
use crate::session::{Session, image};

fn guard() -> ToolGuard {
    ToolGuard::new(Config::default())
}

#[test]
fn the_notices_have_the_documented_texts() {
    assert_eq!(CONTEXT_LIMIT_TRUNCATION_NOTICE, "[truncated: output exceeded context limit]");
    assert_eq!(
        PREEMPTIVE_TOOL_RESULT_COMPACTION_PLACEHOLDER,
        "[compacted: tool output removed to free context]"
    );
}

#[test]
fn a_result_at_the_cap_stays_and_a_larger_one_is_cut_to_the_cap() {
    let mut session = Session::new(64_000);
    session.say(Role::User, "go");
    let exact = session.read(&"x".repeat(16_000));
    let over = session.read(&"x".repeat(16_001));
    assert_eq!(session.guard(&guard()), 1);
    assert_eq!(session.text(exact).len(), 16_000);
    let text = session.text(over);
    assert_eq!(text.len(), 16_000);
    assert!(
        text.starts_with("xxx") && text.ends_with("x\n[truncated: output exceeded context limit]")
    );
    assert_eq!(session.guard(&guard()), 0);
}

#[test]
fn both_ends_are_shown_if_the_end_matters() {
    let mut session = Session::new(64_000);
    session.say(Role::User, "go");
    let failed = session.read(&format!("{}\nerror: the disk is full", "x".repeat(40_000)));
    session.guard(&guard());
    let text = session.text(failed);
    assert!(text.contains(MIDDLE_CONTENT_OMITTED_NOTICE));
    assert!(text.ends_with(&format!("error: the disk is full\n{CONTEXT_LIMIT_TRUNCATION_NOTICE}")));
}

#[test]
fn a_past_result_over_half_of_the_window_is_replaced() {
    let mut session = Session::new(20_000);
    session.say(Role::User, "go");
    let half = session.read(&"x".repeat(40_000));
    let more = session.read(&"x".repeat(40_001));
    session.say(Role::Assistant, "done");
    assert_eq!(session.guard(&guard()), 2);
    assert_eq!(session.text(half).len(), 16_000);
    assert_eq!(session.text(more), PREEMPTIVE_TOOL_RESULT_COMPACTION_PLACEHOLDER);
    let reason = session.view.edits().last().unwrap().reason.clone();
    assert_eq!(reason, "one result of 10001 tokens, more than 10000");
}

#[test]
fn a_result_of_any_size_in_progress_is_cut_and_shown() {
    let shown = |chars: usize, config: Config| {
        let mut session = Session::new(20_000);
        session.say(Role::User, "go");
        let at = session.read(&format!("{}\nerror: the disk is full", "x".repeat(chars)));
        let guard = ToolGuard::new(config);
        session.guard(&guard);
        assert_eq!(session.guard(&guard), 0);
        session.text(at)
    };
    for chars in [39_900, 40_000, 80_000, 4_000_000] {
        let text = shown(chars, Config::default());
        assert!((15_900..=16_000).contains(&text.chars().count()), "{chars}");
        assert!(text.contains("error: the disk is full"), "{chars}");
    }
    // If no other cap is set, the share itself is the cap.
    let alone = || Config { max_context_share: 0.0, ..Config::default() };
    let (under, over) = (shown(39_900, alone()), shown(40_100, alone()));
    assert_eq!(under.len(), 39_924);
    assert!((39_000..=40_010).contains(&over.len()), "{}", over.len());
    assert!(over.contains("error: the disk is full"));
}

#[test]
fn each_of_several_results_in_progress_is_shown() {
    let mut session = Session::new(20_000);
    session.say(Role::User, "go");
    let first = session.run(vec![vec![Block::text("x".repeat(90_000))]; 3]);
    assert_eq!(session.guard(&guard()), 3);
    assert!((first..first + 3).all(|at| session.text(at).starts_with("xxx")));
}

#[test]
fn the_reason_names_the_measure_that_was_exceeded() {
    let mut session = Session::counted(32_000, CounterKind::Cjk);
    session.say(Role::User, "go");
    session.read(&"窗口".repeat(7_000));
    session.guard(&guard());
    assert_eq!(session.view.edits()[0].reason, "one result of 14000 tokens, truncated to 9600");
}

#[test]
fn dense_text_is_held_to_its_share_of_the_window() {
    let mut session = Session::counted(32_000, CounterKind::Cjk);
    session.say(Role::User, "go");
    let at = session.read(&"窗口".repeat(7_000));
    session.guard(&guard());
    let tokens = session.view.node(at).tokens().0;
    assert!(tokens <= 9_600 && tokens > 8_000, "{tokens}");
}

#[test]
fn each_result_of_one_message_is_bounded() {
    let mut session = Session::new(64_000);
    session.say(Role::User, "go");
    let first = session.run(vec![vec![Block::text("a")], vec![Block::text("x".repeat(20_000))]]);
    assert_eq!(session.guard(&guard()), 1);
    assert_eq!((session.text(first).as_str(), session.text(first + 1).len()), ("a", 16_000));
}

#[test]
fn images_count_and_the_last_ones_that_do_not_fit_are_removed() {
    let mut session = Session::new(100_000);
    session.say(Role::User, "go");
    let at = session.run(vec![vec![image(); 8]]);
    let mixed = session.run(vec![vec![Block::text("x".repeat(30_000)), image(), image()]]);
    session.guard(&guard());
    let count = |at: usize| {
        let message = session.view.node(at).message().unwrap();
        let images = message.tool_results().flat_map(|r| &r.content);
        images.filter(|b| matches!(b, Block::Image(_))).count()
    };
    // Six images of 4,800 characters and the notices fit into 32,000 characters.
    assert_eq!(count(at), 6);
    assert!(session.text(at).starts_with("[2 of 8 attachments removed]"));
    assert_eq!(count(mixed), 2);
    assert_eq!(session.text(mixed).len(), 32_000 - 2 * 4_800);
    assert_eq!(session.guard(&guard()), 0);
}

#[test]
fn results_that_were_sent_are_not_examined_again() {
    let mut session = Session::new(64_000);
    session.say(Role::User, "go");
    let at = session.read(&"x".repeat(20_000));
    session.say(Role::Assistant, "done");
    session.view.finish().unwrap();
    assert_eq!(session.guard(&guard()), 0);
    assert_eq!(session.text(at).len(), 20_000);
}

#[test]
fn a_users_own_words_beside_a_result_stay() {
    let mut session = Session::new(64_000);
    session.say(Role::User, "go");
    let at = session.read("short");
    session.push(Message::text(Role::User, "x".repeat(40_000)));
    assert_eq!(session.guard(&guard()), 0);
    assert_eq!(session.text(at), "short");
}

#[test]
fn copaw_and_pi_have_no_caps() {
    for profile in ["copaw", "pi"] {
        let mut session = Session::new(64_000);
        session.say(Role::User, "go");
        session.read(&"x".repeat(200_000));
        assert_eq!(session.guard(&ToolGuard::new(config_of(profile))), 0);
    }
}
