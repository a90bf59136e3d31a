//! Replacing history with a summary.

use std::sync::Arc;

use ctx_core::{
    Compacted, ContextView, Counter, Entry, EntryId, ErrorKind, Message, Projected, Projection,
    ProjectionKey, Role, TokenLedger, Tokens,
};

use crate::session::{call, entry};

fn compacted(summary: &str, first_kept: &str) -> Compacted {
    Compacted {
        summary: summary.into(),
        first_kept_entry_id: first_kept.into(),
        tokens_before: Tokens(1),
        tokens_after: None,
        details: None,
        staying: Vec::new(),
        projections: Vec::new(),
    }
}

fn shorter(entry: &Entry, form: Message) -> Projection {
    Projection {
        key: ProjectionKey { entry: entry.id().clone(), hash: entry.hash().unwrap() },
        form: Projected::Replaced(Arc::new(form)),
        layer: "t".into(),
        reason: "kept shorter".into(),
        points_to: Vec::new(),
    }
}

fn holding(messages: impl IntoIterator<Item = Message>) -> ContextView {
    let ledger = TokenLedger::new(Counter::default(), Tokens(16_000), Tokens(4_000));
    let mut view = ContextView::new(ledger).with_projections([]);
    for (n, message) in messages.into_iter().enumerate() {
        view.append(entry(n, message)).unwrap();
    }
    view
}

/// system, ask, call, result, answer, ask, answer.
fn view() -> ContextView {
    holding([
        Message::text(Role::System, "be brief"),
        Message::text(Role::User, "first ask"),
        Message::new(Role::Assistant, vec![call("c1", "{}")]),
        Message::tool_result("c1", "x".repeat(4_000)),
        Message::text(Role::Assistant, "answer"),
        Message::text(Role::User, "second ask"),
        Message::text(Role::Assistant, "second answer"),
    ])
}

fn id(at: usize) -> EntryId {
    entry(at, Message::text(Role::User, "")).id().clone()
}

fn texts(view: &ContextView) -> Vec<String> {
    view.messages().unwrap().iter().map(|m| m.plain_text()).collect()
}

#[test]
fn a_summary_replaces_history_until_the_next_one() {
    let mut view = view();
    let freed = view.compact(compacted("summary one", &id(5)), "s1", "t", "full").unwrap();
    assert!(freed > Tokens(900));
    assert_eq!(texts(&view), ["be brief", "summary one", "second ask", "second answer"]);
    view.finish().unwrap();
    assert!(view.is_protected(1));

    view.compact(compacted("summary two", &id(6)), "s2", "t", "full").unwrap();
    // The newest user message stays where it is.
    assert_eq!(texts(&view), ["be brief", "summary two", "second ask", "second answer"]);
    assert_eq!(view.take_compactions().len(), 2);
    assert!(view.take_compactions().is_empty());
    // Drops caused by a summary are not recorded as projections: the summary may be undone.
    assert!(view.take_projections().is_empty());
}

#[test]
fn a_cut_that_does_not_fit_the_view_is_refused_and_changes_nothing() {
    let mut view = view();
    let before = texts(&view);
    for first_kept in [&*id(3), "nowhere"] {
        let error = view.compact(compacted("s", first_kept), "s1", "t", "full").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Contract);
        assert!(error.hint_text().is_some_and(|hint| hint.contains("again")), "{error}");
    }
    assert_eq!(texts(&view), before);
    assert!(view.edits().is_empty());
}

#[test]
fn messages_that_stay_before_the_cut_get_the_forms_that_came_with_the_summary() {
    let mut view = view();
    view.pin(1, "t", "an instruction");
    let form = |at: usize, role: Role, text: &str| {
        shorter(view.node(at).entry(), Message::text(role, text))
    };
    let projections = vec![
        form(0, Role::System, "brief"),
        form(1, Role::User, "first"),
        form(4, Role::Assistant, "gone anyhow"),
        form(5, Role::User, "second"),
        form(6, Role::Assistant, "kept"),
    ];
    // System messages, pinned messages and the newest user message all precede the kept entries.
    let compaction = Compacted { projections, ..compacted("summary", &id(6)) };
    view.compact(compaction, "s1", "t", "full").unwrap();
    let expected = ["brief", "first", "summary", "second", "kept"];
    assert_eq!(texts(&view), expected);
    view.finish().unwrap();
    assert_eq!(texts(&view), expected);
    // If the summary were undone, the dropped messages would be restored in full.
    let kept: Vec<_> = view.take_projections().into_iter().map(|form| form.key.entry).collect();
    assert_eq!(kept, [0, 1, 5, 6].map(id));
}

#[test]
fn a_form_is_applied_to_the_message_in_the_request() {
    let ask = |text: &str| Arc::new(Entry::in_memory("twice", Message::text(Role::User, text)));
    let mut view = holding([Message::text(Role::User, "begin")]);
    for text in ["the same id", "the same id"] {
        view.append(ask(text)).unwrap();
    }
    view.append(entry(9, Message::text(Role::User, "newest"))).unwrap();
    view.drop(1, "t", "the first of two");
    let form = shorter(&ask("the same id"), Message::text(Role::User, "same"));
    let compaction = Compacted { projections: vec![form], ..compacted("summary", "twice") };
    view.compact(compaction, "s1", "t", "full").unwrap();
    assert_eq!(texts(&view), ["summary", "same", "newest"]);
}

#[test]
fn a_form_that_does_not_fit_its_message_changes_nothing() {
    let mut view = view();
    let before = texts(&view);
    let form = |at: usize, role| shorter(view.node(at).entry(), Message::text(role, "short"));
    let projections = vec![form(6, Role::Assistant), form(5, Role::Assistant)];
    let compaction = Compacted { projections, ..compacted("s", &id(4)) };
    let error = view.compact(compaction, "s1", "t", "full").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Contract);
    assert_eq!(texts(&view), before);
    assert!(view.edits().is_empty());
}
