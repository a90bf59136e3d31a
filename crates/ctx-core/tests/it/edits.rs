//! Single edits: what they record, what they reject, and how another process applies them.

use std::sync::Arc;

use ctx_core::{
    Action, ContextView, Counter, Entry, ErrorKind, Message, NodeState, Projection, Role,
    TokenLedger, Tokens,
};

use crate::pairs::{message, sent, view};
use crate::session::entry;

fn ledger() -> TokenLedger {
    TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000))
}

fn unfinished(session: &str) -> ContextView {
    let mut view = ContextView::new(ledger()).with_projections([]);
    for (n, word) in session.split_whitespace().enumerate() {
        view.append(entry(n, message(word))).unwrap();
    }
    view
}

#[test]
fn an_edit_records_its_layer_action_and_reason() {
    let mut view = unfinished("u A(a) R(a) t u");
    let freed = view.drop(1, "pruner", "old");
    assert_eq!(freed, Tokens(4), "a call of 3, a result of 1");
    view.replace(3, Message::text(Role::Assistant, "ok"), "trimmer", "long").unwrap();
    view.pin(0, "keeper", "first");
    let note = Entry::in_memory("note", Message::text(Role::Custom, "remember"));
    assert_eq!(view.insert(4, Arc::new(note), "memory", "fits").unwrap(), 4);
    let edits: Vec<_> = view
        .edits()
        .iter()
        .map(|e| (&*e.entry, &*e.layer, e.action, e.before.0, e.after.0, &*e.reason))
        .collect();
    assert_eq!(
        edits,
        [
            ("00000001", "pruner", Action::Drop, 3, 0, "old"),
            ("00000002", "pruner", Action::Drop, 1, 0, "old"),
            ("00000003", "trimmer", Action::Replace, 1, 1, "long"),
            ("00000000", "keeper", Action::Pin, 2, 2, "first"),
            ("note", "memory", Action::Insert, 0, 2, "fits"),
        ]
    );
    let finished = view.finish().unwrap();
    assert_eq!(finished.edits.len(), 5);
    assert_eq!(sent(&view), "u t + u");
    let states: Vec<_> =
        view.manifest().entries.into_iter().map(|e| (e.state, e.tokens.0)).collect();
    use NodeState::{Dropped, Inserted, Kept as AsIs, Replaced};
    assert_eq!(
        states,
        [(AsIs, 2), (Dropped, 0), (Dropped, 0), (Replaced, 1), (Inserted, 2), (AsIs, 2)]
    );
}

#[test]
fn an_edit_that_changes_nothing_is_not_recorded() {
    let mut view = unfinished("s u t u");
    view.pin(0, "test", "it is pinned already");
    view.pin(99, "test", "nothing is there");
    assert_eq!(view.drop(0, "test", "protected"), Tokens::ZERO);
    assert_eq!(view.drop(99, "test", "nothing is there"), Tokens::ZERO);
    assert!(!view.is_protected(99));
    assert!(view.drop(2, "test", "old") > Tokens::ZERO);
    assert_eq!(view.drop(2, "test", "gone already"), Tokens::ZERO);
    view.replace(2, Message::text(Role::Assistant, "hi"), "test", "gone already").unwrap();
    view.pin(2, "test", "gone already");
    assert_eq!(view.edits().len(), 1);
}

#[test]
fn a_form_must_keep_its_calls_and_results() {
    let mut view = unfinished("u A(a) R(a)");
    for (at, form) in [
        (0, message("t")),
        (0, message("A(a)")),
        (1, message("A(b)")),
        (1, message("A(a,a)")),
        (1, message("t")),
        (2, message("R(b)")),
        (2, message("R(a,a)")),
        (9, message("u")),
    ] {
        let error = view.replace(at, form, "test", "wrong").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Contract, "{at}: {error}");
    }
    for word in ["A(a)", "R(a)", "U(a)"] {
        let error = view.insert(0, entry(9, message(word)), "test", "wrong").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Contract, "{word}: {error}");
    }
    assert!(view.edits().is_empty());
}

#[test]
fn a_request_that_cannot_fit_is_refused_with_the_numbers() {
    let mut view = ContextView::new(ledger().with_system(Tokens(11_000)).with_tools(Tokens(900)));
    let error = view.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SystemPromptTooLarge);
    assert!(error.context().contains(&("system", "11000".into())), "{error}");
    let mut view = ContextView::new(ledger());
    view.ledger_mut().pending = Tokens(12_000);
    let error = view.finish().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput);
    assert!(error.context().contains(&("pending", "12000".into())), "{error}");
}

/// Returns a view of the first entries of the session, as another process creates it.
fn reopened(entries: usize, session: &str, forms: &[Projection]) -> ContextView {
    let mut view = ContextView::new(ledger()).with_projections(forms.to_vec());
    for (n, word) in session.split_whitespace().take(entries).enumerate() {
        view.append(entry(n, message(word))).unwrap();
    }
    view.finish().unwrap();
    view
}

/// A session opened at an earlier message has that message as its newest, even if the message was
/// dropped later.
#[test]
fn a_dropped_message_is_restored_while_it_is_protected() {
    let session = "u A(a) R(a) t u A(b) R(b) t u";
    let mut first = view(&format!("{session} -0 -1 -3 -4 -5 -7"));
    let forms = first.take_projections();
    assert_eq!(sent(&first), "u");
    let expected =
        ["", "u", "u A(a) ?a", "u A(a) R(a)", "u", "u", "u A(b) ?b", "u A(b) R(b)", "u", "u"];
    for (entries, expected) in expected.into_iter().enumerate() {
        assert_eq!(sent(&reopened(entries, session, &forms)), expected, "at {entries}");
    }
    // The same in one process, with a request after every message.
    let mut view = ContextView::new(ledger()).with_projections(forms);
    for (n, word) in session.split_whitespace().enumerate() {
        view.append(entry(n, message(word))).unwrap();
        view.finish().unwrap();
        assert_eq!(sent(&view), expected[n + 1], "after {}", n + 1);
    }
}

#[test]
fn a_form_applies_to_one_content_only() {
    let mut first = view("t u -0");
    let forms = first.take_projections();
    assert_eq!(forms.len(), 1);
    let mut second = ContextView::new(ledger()).with_projections(forms.clone());
    second.append(entry(0, Message::text(Role::Assistant, "something else"))).unwrap();
    second.append(entry(1, message("u"))).unwrap();
    second.finish().unwrap();
    assert_eq!(sent(&second), "t u");
    // The form applies again when the content is restored.
    assert_eq!(sent(&reopened(2, "t u", &forms)), "u");
}

#[test]
fn projections_survive_json() {
    let mut first = view("t A(a) R(a) t u -0");
    let call = Message::clone(&first.node(0).message().unwrap());
    first.replace(0, call, "test", "raw JSON inside").unwrap();
    let forms = first.take_projections();
    assert_eq!(forms.len(), 2);
    let json = serde_json::to_string(&forms).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Projection>>(&json).unwrap(), forms);
}
