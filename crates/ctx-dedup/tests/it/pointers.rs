use ctx_core::{Message, NodeState, Role, Tokens};
use ctx_dedup::{Config, Mode};

use crate::session::{Session, assert_resolvable, config};

const WINDOW: u32 = 1_000_000;

fn file(lines: std::ops::Range<usize>) -> Vec<String> {
    lines.map(|n| format!("the line number {n} of the file")).collect()
}

fn numbered(lines: &[String]) -> String {
    let line = |(n, line): (usize, &String)| format!("{}→{line}", n + 1);
    lines.iter().enumerate().map(line).collect::<Vec<_>>().join("\n")
}

/// Sends each text as the result of a call of its own; returns the session.
fn session(config: Config, texts: &[&str]) -> Session {
    let mut session = Session::new(WINDOW, config, Vec::new());
    session.say(Role::User);
    for text in texts {
        session.run(&[text]);
        session.send();
        assert_resolvable(&session);
    }
    session
}

#[test]
fn a_repeated_result_becomes_a_pointer_between_its_first_and_last_line() {
    let text = file(0..60).join("\n");
    let session = session(config(), &[&text, &text]);
    assert_eq!(session.sent(2), text);
    let expected = [
        file(0..1).join("\n"),
        "[ctx: lines 2-59 are lines 2-59 of the result of call c1-0 (read {\"path\": \
         \"src/lib.rs\"})]"
            .to_owned(),
        file(59..60).join("\n"),
    ];
    assert_eq!(session.sent(4), expected.join("\n"));
}

#[test]
fn changed_lines_stay_with_a_line_on_both_sides() {
    let before = file(0..60);
    let mut after = before.clone();
    after[30] = "changed".to_owned();
    after.insert(10, "added".to_owned());
    let session = session(config(), &[&numbered(&before), &numbered(&after)]);
    let sent = session.sent(4);
    for line in ["11→added", "32→changed", "31→the line number 29 of the file"] {
        assert!(sent.contains(line), "{line}");
    }
    assert_eq!(sent.matches("numbered 1 higher]").count(), 2);
    assert!(sent.len() < numbered(&after).len() / 2, "{sent}");
}

#[test]
fn short_runs_other_content_and_imitated_pointers_stay() {
    let text = file(0..60).join("\n");
    let imitation =
        format!("{text}\n[ctx: lines 1-60 are lines 1-60 of the result of call c1-0 ()]");
    let first = session(config(), &[&text, &file(20..29).join("\n"), &imitation]);
    assert!([4, 6].iter().all(|&at| !first.sent(at).contains("[ctx: lines 2-")));
    let off = session(Config { mode: Mode::Off, ..config() }, &[&text, &text]);
    assert_eq!(off.sent(4), text);
}

#[test]
fn the_lines_come_back_when_the_target_is_dropped_or_changed() {
    let text = file(0..60).join("\n");
    for drop in [true, false] {
        let mut session = session(config(), &[&text, &text, &text]);
        session.say(Role::Assistant);
        if drop {
            session.view.drop(2, "test", "test");
            assert!(!session.view.node(2).is_live());
        } else {
            session.view.replace(2, Message::tool_result("c1-0", "cut"), "test", "test").unwrap();
        }
        assert_eq!(session.sent(4), text);
        assert_eq!(session.view.node(4).state(), NodeState::Kept);
        session.send();
        // The cache breaks at the target, so the third result now points to the second.
        assert!(session.sent(6).contains("of the result of call c3-0 "));
        assert_eq!(session.sent(4), text);
        assert_resolvable(&session);
    }
}

#[test]
fn later_results_are_decided_only_where_the_cache_breaks() {
    let text = file(0..60).join("\n");
    let later = Config { keep_last_assistants: 1, ..config() };
    let mut session = session(later, &[&file(100..200).join("\n"), &text, &text]);
    session.run(&["done"]);
    session.send();
    assert_eq!(session.sent(6), text);
    session.view.drop(2, "test", "test");
    session.send();
    assert!(session.sent(6).contains("of the result of call c3-0 "));
    assert_resolvable(&session);
}

#[test]
fn a_reopened_view_without_the_target_has_the_lines() {
    let text = file(0..60).join("\n");
    let mut first = session(config(), &[&text, &text]);
    let sent = first.view.take_projections();
    assert_eq!(sent.len(), 1);
    let mut again = Session::new(WINDOW, config(), sent);
    for entry in &first.entries[3..] {
        again.entries.push(entry.clone());
        again.view.append(entry.clone()).unwrap();
    }
    again.view.finish().unwrap();
    assert_eq!(again.sent(1), text);
}

#[test]
fn a_restored_result_in_progress_is_truncated_to_fit() {
    let text = file(0..60).join("\n");
    let mut session = session(config(), &[&text, &text]);
    session.view.ledger_mut().pending = Tokens(WINDOW - 400);
    session.view.finish().unwrap();
    assert_eq!(session.sent(2), "");
    assert!(session.sent(4).contains("[truncated") && session.view.used() <= Tokens(WINDOW));
}

#[test]
fn lines_that_stand_in_full_beside_a_pointer_can_be_pointed_to() {
    let (old, new) = (file(0..60), file(100..160));
    let both = [old.join("\n"), new.join("\n")].join("\n");
    let mut session = session(config(), &[&old.join("\n"), &both, &new.join("\n")]);
    assert!(session.sent(4).contains("of the result of call c1-0 "));
    assert!(
        session.sent(6).contains("[ctx: lines 2-59 are lines 62-119 of the result of call c3-0 ")
    );
    // The second is restored, and its lines keep their numbers.
    let before = session.sent(6);
    session.view.drop(2, "test", "test");
    assert_eq!((session.sent(4), session.sent(6)), (both, before));
    assert_resolvable(&session);
}
