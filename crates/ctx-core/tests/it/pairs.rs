//! Sessions in shorthand: the appended messages, and the messages sent.
//!
//! `u` user, `t` assistant's text, `s` system, `x` another role; `A(a,b)` calls, `R(a)` results,
//! `U(a)` results and text of the user; `|` finish, `-2` drop position 2, `+2` insert there, `!2`
//! pin. In the output, `?a` is a synthetic result and `+` an inserted message.

use std::sync::Arc;

use ctx_core::{
    Block, ContextView, Counter, Entry, Message, Node, NodeState, Role, TokenLedger, Tokens,
    check_pairs,
};

use crate::session::{call, entry, result};

pub(crate) fn message(word: &str) -> Message {
    let (kind, ids) = word.split_once('(').unwrap_or((word, ""));
    let ids = ids.trim_end_matches(')').split(',').filter(|id| !id.is_empty());
    let results = ids.clone().map(|id| result(id, vec![Block::text("fine")]));
    match kind {
        "u" => Message::text(Role::User, "please"),
        "t" => Message::text(Role::Assistant, "done"),
        "s" => Message::text(Role::System, "be kind"),
        "x" => Message::text(Role::Custom, "by the way"),
        "A" => Message::new(Role::Assistant, ids.map(|id| call(id, "{}")).collect()),
        "R" => Message::new(Role::ToolResult, results.collect()),
        "U" => Message::new(Role::User, results.chain([Block::text("please")]).collect()),
        _ => panic!("unknown message: {word}"),
    }
}

fn shorthand(node: &Node) -> String {
    let with = |name: &str, ids: &[Arc<str>]| format!("{name}({})", ids.join(","));
    match node.role() {
        Role::ToolResult if node.state() == NodeState::Inserted => {
            format!("?{}", node.results().join(","))
        }
        _ if node.state() == NodeState::Inserted => "+".into(),
        Role::ToolResult => with("R", node.results()),
        Role::User if !node.results().is_empty() => with("U", node.results()),
        Role::Assistant if !node.outline.calls.is_empty() => with("A", &node.outline.calls),
        Role::User => "u".into(),
        Role::Assistant => "t".into(),
        Role::System => "s".into(),
        _ => "x".into(),
    }
}

/// Runs a session in shorthand and finishes the view.
pub(crate) fn view(session: &str) -> ContextView {
    let ledger = TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000));
    let mut view = ContextView::new(ledger).with_projections([]);
    for (n, word) in session.split_whitespace().enumerate() {
        let at = || word[1..].parse().unwrap();
        match &word[..1] {
            "|" => drop(view.finish().unwrap()),
            "-" => drop(view.drop(at(), "test", "requested")),
            "!" => view.pin(at(), "test", "requested"),
            "+" => {
                let entry =
                    Arc::new(Entry::in_memory("added", Message::text(Role::Custom, "note")));
                view.insert(at(), entry, "test", "requested").unwrap();
            }
            _ => view.append(entry(n, message(word))).unwrap(),
        }
    }
    view.finish().unwrap();
    view
}

pub(crate) fn sent(view: &ContextView) -> String {
    let words: Vec<String> = view.nodes().iter().map(shorthand).collect();
    words.join(" ")
}

fn check(cases: &[(&str, &str)]) {
    for (session, expected) in cases {
        let view = view(session);
        assert_eq!(sent(&view), *expected, "{session}");
        let messages = view.messages().unwrap();
        check_pairs(messages.iter().map(|m| &**m)).unwrap();
    }
}

#[test]
fn complete_pairs_stay_unchanged() {
    for session in [
        "s u A(a) R(a) t u",
        "u A(a,b) R(a) R(b) t",
        "u A(a,b) R(b,a) A(c) R(c)",
        "u A(a,b) U(a,b) t",
        "u A(a) R(a) A(a) R(a)",
        "u A(a) A(b) R(a,b) t",
        "u A(a) t A(b) U(a,b) t",
    ] {
        check(&[(session, session)]);
    }
}

#[test]
fn results_are_placed_next_to_their_calls() {
    check(&[
        ("A(a) u R(a)", "A(a) R(a) u"),
        ("A(a) x s R(a) t", "A(a) R(a) x s t"),
        ("A(a) A(b) R(b) R(a)", "A(a) R(a) A(b) R(b)"),
        ("A(a) u A(b) R(b) R(a)", "A(a) R(a) u A(b) R(b)"),
        ("A(a) u U(a) t", "A(a) U(a) u t"),
        ("A(a,b) u R(b) u R(a)", "A(a,b) R(b) R(a) u u"),
    ]);
}

#[test]
fn every_call_is_answered_once() {
    check(&[
        ("A(a) u", "A(a) ?a u"),
        ("A(a,b) R(b)", "A(a,b) R(b) ?a"),
        ("A(a) t u", "A(a) ?a t u"),
        ("R(a) u", "u"),
        ("U(a)", "u"),
        ("A(a) R(a) R(a) u", "A(a) R(a) u"),
        ("A(a) R(a,a,b)", "A(a) R(a)"),
        ("A(a,a) R(a)", "A(a) R(a)"),
        ("A(a) A(a) R(a)", "A(a) ?a A(a) R(a)"),
        // One message cannot be in two places: it answers the newest call.
        ("A(a) u A(b) R(a,b)", "A(a) ?a u A(b) R(b)"),
    ]);
}

/// The outcome does not depend on whether a request was made in between.
#[test]
fn late_results_replace_synthetic_ones() {
    check(&[
        ("A(a) | u | R(a)", "A(a) R(a) u"),
        ("A(a,b) | R(b) | u R(a)", "A(a,b) R(b) R(a) u"),
        ("A(a,b,c) | R(b)", "A(a,b,c) R(b) ?a ?c"),
        ("A(a) | A(b) | R(a,b)", "A(a) A(b) R(a,b)"),
        ("A(a,c) | A(b,d) | R(a,b)", "A(a,c) A(b,d) R(a,b) ?c ?d"),
        ("A(a) | A(a) R(a)", "A(a) ?a A(a) R(a)"),
        ("A(a) | A(a) | R(a) R(a)", "A(a) ?a A(a) R(a)"),
    ]);
}

#[test]
fn groups_are_dropped_together() {
    check(&[
        ("u A(a) R(a) t u -1", "u t u"),
        ("u A(a) R(a) t u -2", "u t u"),
        ("u A(a,b) R(a) R(b) t u -3", "u t u"),
        ("u A(a) u R(a) t -1", "u u t"),
        ("A(a) | u t u -0", "u t u"),
        // A result that arrives after its call was dropped is dropped.
        ("A(a) u t u -0 R(a)", "u t u"),
        ("A(a) | u t u -0 | R(a)", "u t u"),
        // Dropping a call does not drop a newer one with the same id.
        ("A(a) R(a) t A(a) -0 R(a)", "t A(a) R(a)"),
        ("A(a) u t u A(a) -0 u R(a)", "u t u A(a) R(a) u"),
    ]);
}

#[test]
fn protected_messages_stay() {
    check(&[
        ("u -0", "u"),
        ("u u -0", "u"),
        ("s u u -0", "s u u"),
        ("u A(a) R(a) -1", "u A(a) R(a)"),
        ("u A(a) R(a) -2 u", "u A(a) R(a) u"),
        ("u A(a) A(b) R(a) R(b) -1", "u A(a) R(a) A(b) R(b)"),
        ("u A(a) R(a) t -1", "u t"),
        // An answer in several messages continues while its calls wait.
        ("u A(a) t -1", "u A(a) ?a t"),
        ("u t u !1 -1", "u t u"),
        // Protecting a result protects its call, and vice versa.
        ("u A(a) R(a) t u !2 -1", "u A(a) R(a) t u"),
        ("u A(a) R(a) t u !1 -2", "u A(a) R(a) t u"),
        ("A(a) U(a) t -0", "A(a) U(a) t"),
        // A result without content is not a user message.
        ("u A(a) R(a) t -0", "u A(a) R(a) t"),
    ]);
}

#[test]
fn nothing_is_inserted_between_a_call_and_its_results() {
    check(&[
        ("u t +0", "+ u t"),
        ("u t +1", "u + t"),
        ("u t +2", "u t +"),
        ("u t +99", "u t +"),
        ("u A(a) R(a) t +2", "u + A(a) R(a) t"),
        ("u A(a) R(a) t +3", "u A(a) R(a) + t"),
        ("u A(a,b) R(a) | +3 R(b)", "u + A(a,b) R(a) R(b)"),
        ("u A(a) +2 R(a)", "u A(a) R(a) +"),
    ]);
}
