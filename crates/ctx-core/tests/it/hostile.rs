//! Hostile sessions. In a debug build, each takes well under a second if the cost is linear, and
//! minutes if it is not; the limit is far from both.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ctx_core::{
    Block, Compacted, ContextView, Counter, CounterKind, EntryId, Message, Node, NodeState,
    Projected, Projection, ProjectionKey, RawJson, Role, TokenLedger, Tokens, check_pairs,
};

use crate::session::{call, entry, result};

const LIMIT: Duration = Duration::from_secs(20);

fn view(window: u32) -> ContextView {
    let ledger = TokenLedger::new(Counter::default(), Tokens(window), Tokens(4_000));
    ContextView::new(ledger).with_projections([])
}

/// Appends all messages, finishes, and checks the invariants.
fn run(view: &mut ContextView, messages: impl IntoIterator<Item = Message>) {
    let start = Instant::now();
    let from = view.edits().len() + view.len();
    for (n, message) in messages.into_iter().enumerate() {
        view.append(entry(from + n, message)).unwrap();
    }
    view.finish().unwrap();
    let sent = view.messages().unwrap();
    check_pairs(sent.iter().map(|m| &**m)).unwrap();
    assert!(view.used() <= view.ledger().limit());
    assert_eq!(view.finish().unwrap().edits, []);
    assert!(start.elapsed() < LIMIT, "took {:?}", start.elapsed());
}

fn calls(ids: impl Iterator<Item = usize>) -> Message {
    Message::new(Role::Assistant, ids.map(|n| call(format!("c{n}"), "{}")).collect())
}

fn answer(n: usize) -> Message {
    Message::tool_result(format!("c{n}"), "done")
}

fn ask() -> Message {
    Message::text(Role::User, "and now?")
}

const MANY: usize = 20_000;

#[test]
fn calls_without_results() {
    run(&mut view(16_000), (0..MANY).map(|n| calls(n..n + 1)));
    run(&mut view(4_000_000), (0..MANY).map(|n| calls(n..n + 1)));
    run(
        &mut view(4_000_000),
        (0..2 * MANY).map(|n| if n % 2 == 0 { ask() } else { calls(n..n + 1) }),
    );
}

#[test]
fn results_that_arrive_at_the_end() {
    let asked = |n| [ask(), calls(n..n + 1)];
    for window in [16_000, 4_000_000] {
        let late = (0..MANY).map(answer);
        run(&mut view(window), (0..MANY).flat_map(asked).chain(late));
        // Again, with synthetic results already sent.
        let mut view = view(window);
        run(&mut view, (0..MANY).flat_map(asked));
        run(&mut view, (0..MANY).map(answer));
    }
}

#[test]
fn one_id_for_every_call() {
    run(&mut view(4_000_000), (0..MANY).map(|_| calls(7..8)));
    let again = (0..MANY).chain(0..MANY);
    run(&mut view(4_000_000), again.map(|n| calls(n..n + 1)));
}

#[test]
fn parallel_calls_by_the_thousand() {
    for window in [16_000, 200_000, 4_000_000] {
        run(&mut view(window), [ask(), calls(0..5_000)].into_iter().chain((0..5_000).map(answer)));
        run(&mut view(window), [ask(), calls(0..MANY)].into_iter().chain((0..MANY).map(answer)));
        let results = (0..MANY).map(|n| result(format!("c{n}"), vec![Block::text("x".repeat(99))]));
        let results = Message::new(Role::User, results.collect());
        run(&mut view(window), [ask(), calls(0..MANY), results, ask()]);
        // Each call in a separate message, and one message that answers all calls.
        let results = (0..MANY).map(|n| result(format!("c{n}"), vec![Block::text("x".repeat(99))]));
        let results = Message::new(Role::User, results.collect());
        run(&mut view(window), (0..MANY).map(|n| calls(n..n + 1)).chain([results, ask()]));
    }
}

#[test]
fn results_of_many_answers_at_once() {
    let pair = |n: usize| {
        let blocks = [n, MANY - 1 - n].map(|n| result(format!("c{n}"), Vec::new()));
        Message::new(Role::User, blocks.to_vec())
    };
    let asked = (0..MANY).map(|n| calls(n..n + 1));
    run(&mut view(4_000_000), asked.chain((0..MANY / 2).map(pair)));
}

#[test]
fn only_messages_that_may_not_be_dropped() {
    let system = || Message::text(Role::System, "be kind ".repeat(20));
    let mut crowd = view(16_000);
    run(&mut crowd, (0..MANY).map(|_| system()).chain([ask()]));
    let first = crowd.node(crowd.len() - 1).message().unwrap();
    assert_eq!(first.role, Role::User, "the newest user message is there");
    assert!(crowd.len() > 1_000, "as many of the others as fit");
}

#[test]
fn summaries_as_ordinary_messages() {
    let summary =
        |n: usize| Message::text(Role::CompactionSummary, format!("{n} {}", "x".repeat(99)));
    let of_all = |window, count: usize| {
        let mut view = view(window);
        run(&mut view, (0..count).flat_map(|n| [ask(), calls(n..n + 1), answer(n), summary(n)]));
        view
    };
    // Nothing else in the request has their content, so they stay if there is space.
    let roomy = of_all(4_000_000, MANY);
    let left = roomy.nodes().iter().filter(|n| *n.role() == Role::CompactionSummary);
    assert!(left.map(|n| n.state()).eq((0..MANY).map(|_| NodeState::Kept)));
    // Otherwise the newest of them stay, and the newest user message.
    let crowd = of_all(16_000, MANY);
    let newest = crowd.node(crowd.len() - 1).entry().id();
    assert_eq!(newest, roomy.node(roomy.len() - 1).entry().id());
    assert!(crowd.nodes().iter().any(Node::is_user), "the newest user message is there");
    // One request after each message, as in a live session.
    let mut turns = view(16_000);
    for n in 0..2_000 {
        run(&mut turns, [ask(), summary(n)]);
    }
    // One compaction merges all of them into one.
    let mut crowd = roomy;
    let first_kept = crowd.node(crowd.len() - 1).entry().clone();
    let compacted = Compacted {
        summary: "all of it".into(),
        first_kept_entry_id: first_kept.id().clone(),
        tokens_before: crowd.total(),
        tokens_after: None,
        details: None,
        staying: Vec::new(),
        projections: Vec::new(),
    };
    crowd.compact(compacted, "one", "test", "full").unwrap();
    run(&mut crowd, []);
    let summaries = crowd.nodes().iter().filter(|n| *n.role() == Role::CompactionSummary);
    let ids: Vec<_> = summaries.map(|node| node.entry().id()).collect();
    assert_eq!(ids, [&EntryId::from("one"), first_kept.id()]);
}

#[test]
fn a_compaction_with_a_form_for_every_message() {
    let mut view = view(4_000_000);
    run(&mut view, (0..4 * MANY).map(|_| ask()));
    let forms = view.nodes().iter().rev().map(|node| Projection {
        key: ProjectionKey { entry: node.entry().id().clone(), hash: node.entry().hash().unwrap() },
        form: Projected::Replaced(Arc::new(Message::text(Role::User, "?"))),
        layer: "test".into(),
        reason: "shorter".into(),
        points_to: Vec::new(),
    });
    let compacted = Compacted {
        summary: "asked".into(),
        first_kept_entry_id: view.node(1).entry().id().clone(),
        tokens_before: view.total(),
        tokens_after: None,
        details: None,
        staying: Vec::new(),
        projections: forms.collect(),
    };
    let start = Instant::now();
    view.compact(compacted, "one", "test", "full").unwrap();
    assert!(start.elapsed() < LIMIT, "took {:?}", start.elapsed());
    run(&mut view, []);
    assert_eq!(view.len(), 4 * MANY);
    assert!(view.nodes()[1..].iter().all(|node| node.state() == NodeState::Replaced));
}

#[test]
fn messages_without_any_size() {
    let empty = || Message::new(Role::Assistant, Vec::new());
    let mut view = view(16_000);
    run(&mut view, (0..2 * MANY).map(|_| empty()));
    for n in 0..200 {
        run(&mut view, [Message::text(Role::User, "x".repeat(n)), empty()]);
    }
}

#[test]
fn a_user_message_of_a_hundred_thousand_blocks() {
    for kind in CounterKind::ALL {
        let ledger = TokenLedger::new(Counter::new(*kind), Tokens(16_000), Tokens(4_000));
        let blocks = (0..2 * MANY).map(|_| Block::text("é"));
        run(&mut ContextView::new(ledger), [Message::new(Role::User, blocks.collect())]);
    }
}

#[test]
fn texts_of_many_megabytes() {
    for text in ["a".repeat(8 << 20), " \n".repeat(4 << 20), "字".repeat(3 << 20)] {
        let result = vec![result("c0", vec![Block::text(text.clone())])];
        run(
            &mut view(16_000),
            [Message::text(Role::User, text), calls(0..1), Message::new(Role::ToolResult, result)],
        );
    }
    let deep = format!("{}{}", "[".repeat(1 << 20), "]".repeat(1 << 20));
    let wide = format!("[{}0]", "\"some string\",".repeat(1 << 18));
    for arguments in [deep, wide] {
        let message = Message::new(Role::Assistant, vec![call("c0", &arguments)]);
        let opaque = Block::Opaque { json: RawJson::from_text(arguments) };
        run(&mut view(16_000), [Message::new(Role::User, vec![opaque]), message]);
    }
}
