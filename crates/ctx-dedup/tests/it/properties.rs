use ctx_core::{Compacted, Message, Role, Tokens};
use ctx_dedup::Config;
use proptest::prelude::*;

use crate::session::{Session, assert_resolvable, config};

#[derive(Clone, Debug)]
enum Step {
    Say(bool),
    Run(Vec<String>),
    Send,
    Drop(prop::sample::Index),
    Clear(prop::sample::Index),
    Compact(prop::sample::Index),
}

/// A part of a file of 100 lines, some of them equal, with a changed line, with numbers or not.
fn text() -> impl Strategy<Value = String> {
    (0..90usize, 1..80usize, 0..100usize, any::<bool>(), 0..4usize).prop_map(
        |(first, count, changed, numbers, added)| {
            let content = |n: usize| match n {
                n if n == changed => format!("changed {added}"),
                n if n % 7 == 0 => "}".to_owned(),
                n => format!("line {n} of the file, which has some words"),
            };
            let lines = (first..(first + count).min(100)).map(|n| match numbers {
                true => format!("{}→{}", n + added, content(n)),
                false => content(n),
            });
            lines.collect::<Vec<_>>().join("\n")
        },
    )
}

fn grows() -> impl Strategy<Value = Step> {
    prop_oneof![
        any::<bool>().prop_map(Step::Say),
        prop::collection::vec(text(), 1..3).prop_map(Step::Run),
        prop::collection::vec(text(), 1..3).prop_map(Step::Run),
        Just(Step::Send),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => grows(),
        1 => any::<prop::sample::Index>().prop_map(Step::Drop),
        1 => any::<prop::sample::Index>().prop_map(Step::Clear),
        1 => any::<prop::sample::Index>().prop_map(Step::Compact),
    ]
}

fn take(session: &mut Session, step: &Step) {
    let len = session.view.len();
    match step {
        Step::Say(user) => session.say(if *user { Role::User } else { Role::Assistant }),
        Step::Run(texts) => session.run(&texts.iter().map(String::as_str).collect::<Vec<_>>()),
        Step::Send => drop(session.send()),
        Step::Drop(at) if len > 0 => drop(session.view.drop(at.index(len), "test", "test")),
        Step::Clear(at) if len > 0 => {
            let at = at.index(len);
            let message = session.view.node(at).message().unwrap();
            let form = message.with_results(|_, _| Some(vec![ctx_core::Block::text("cleared")]));
            let form = form.unwrap_or_else(|| Message::clone(&message));
            session.view.replace(at, form, "test", "test").unwrap();
        }
        Step::Compact(at) if len > 0 => {
            let compacted = Compacted {
                summary: "a summary".to_owned(),
                first_kept_entry_id: session.view.node(at.index(len)).entry().id().clone(),
                tokens_before: Tokens(0),
                tokens_after: None,
                details: None,
                staying: Vec::new(),
                projections: Vec::new(),
            };
            // A cut inside of a group is refused.
            let id = format!("summary-{}", session.view.edits().len());
            drop(session.view.compact(compacted, id, "test", "test"));
        }
        _ => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_pointer_leads_to_its_lines(
        steps in prop::collection::vec(step(), 0..40),
        window in 300..6_000u32,
        keep_last_assistants in 0..3u32,
    ) {
        let config = Config { keep_last_assistants, ..config() };
        let mut session = Session::new(window, config, Vec::new());
        for step in &steps {
            take(&mut session, step);
            if matches!(step, Step::Send) {
                assert_resolvable(&session);
            }
        }
        let finished = session.send();
        assert_resolvable(&session);
        prop_assert!(finished.tokens <= Tokens(window));
        let total: Tokens = session.view.nodes().iter().map(|node| node.tokens()).sum();
        prop_assert_eq!(total, session.view.total());
    }

    #[test]
    fn what_was_sent_is_sent_again(
        steps in prop::collection::vec(grows(), 0..30),
        keep_last_assistants in 0..3u32,
    ) {
        let config = Config { keep_last_assistants, ..config() };
        let mut session = Session::new(1_000_000, config.clone(), Vec::new());
        let mut before = Vec::new();
        for step in &steps {
            take(&mut session, step);
            // A call that still waits for its result would get a synthetic one.
            session.send();
            let request = session.messages();
            prop_assert_eq!(&request[..before.len()], &before[..]);
            before = request;
        }
        // Another process sends the same.
        let mut again = Session::new(1_000_000, config, session.view.take_projections());
        for entry in &session.entries {
            again.view.append(entry.clone()).unwrap();
        }
        again.send();
        prop_assert_eq!(again.messages(), before);
    }
}
