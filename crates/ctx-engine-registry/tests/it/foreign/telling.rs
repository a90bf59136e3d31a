//! The updates sent to an engine: they keep its view current, at the cost of the changes.

use std::sync::Arc;

use ctx_core::{ContextView, Entry, IngestRequest, Message, NodeState, Role};
use ctx_engine_registry::Deadlines;
use ctx_engine_registry::foreign::{EngineClient, apply};
use ctx_engine_sdk::protocol::Encoding;
use ctx_engine_sdk::{Assembled, Engine, Hello, Host, Info, Plan, Result, Session};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::scripted::{Driven, Seen};
use super::{calls, entry, now, say, turn, view};

/// Answers with its copy of the session, and the configured plan.
struct Mirror(Plan);

impl Engine for Mirror {
    fn hello(hello: &Hello, _: &mut Host<'_>) -> Result<(Self, Info)> {
        let plan = serde_json::from_value(hello.config.clone())?;
        Ok((Self(plan), Info::new("mirror", "1.0.0")))
    }

    fn assemble(&mut self, session: &Session, _: &mut Host<'_>) -> Result<Assembled> {
        let rows = session.rows().iter().map(|row| {
            json!([row.id, row.role, row.tokens, row.group, row.keep, row.inserted, row.text()])
        });
        Ok(self.0.clone().because(json!(rows.collect::<Vec<_>>()).to_string()).into())
    }
}

fn mirror(plan: Value) -> (EngineClient, Arc<Seen>) {
    mirror_in(Encoding::Json, plan)
}

fn mirror_in(encoding: Encoding, plan: Value) -> (EngineClient, Arc<Seen>) {
    let driven = Driven::<Mirror>::default();
    let seen = driven.seen.clone();
    let encodings = vec![encoding.name().to_owned()];
    let hello = Hello { protocol: "1.0".into(), encodings, config: plan, ..Hello::default() };
    let started = EngineClient::start("mirror", Box::new(driven), &hello, Deadlines::default());
    (now(started).expect("an answer to hello"), seen)
}

/// Runs a turn: sends the update, applies the plan, finishes the request.
fn run(engine: &mut EngineClient, view: &mut ContextView) {
    view.set_system_addition(None);
    let checked = now(engine.assemble("s", view, &turn(0), false)).expect("a plan");
    apply(checked, view, "mirror").expect("it was checked");
    view.finish().expect("it fits");
}

fn known(seen: &Seen) -> Value {
    let answer = seen.last_answer.lock().unwrap();
    serde_json::from_str(answer["reason"].as_str().expect("rows")).expect("JSON")
}

fn as_it_is(view: &ContextView) -> Value {
    let rows = (0..view.len()).filter(|&at| view.node(at).is_live()).map(|at| {
        let node = view.node(at);
        let message = node.message().expect("a readable message");
        let results = message.tool_results().map(|r| r.plain_text().into_owned());
        let texts = results.chain([message.plain_text()]).filter(|text| !text.is_empty());
        json!([
            &**node.entry().id(),
            node.role().name(),
            node.tokens(),
            node.group,
            view.is_protected(at),
            node.state() == NodeState::Inserted,
            texts.collect::<Vec<_>>().join("\n"),
        ])
    });
    rows.collect()
}

#[test]
fn the_update_of_a_turn_does_not_grow_with_the_session() {
    let (mut engine, seen) = mirror(json!({"keepLast": 40}));
    let mut view = view(200_000);
    say(&mut view, "sys", Role::System, "be brief");
    for n in 0..1_000 {
        say(&mut view, &format!("u{n:04}"), Role::User, &"a question ".repeat(20));
        let call = format!("c{n}");
        view.append(entry(&format!("a{n:04}"), calls(&[&call]))).unwrap();
        let result = Message::tool_result(&*call, "a result ".repeat(20));
        view.append(entry(&format!("r{n:04}"), result)).unwrap();
        run(&mut engine, &mut view);
    }
    let bytes = seen.bytes.lock().unwrap();
    let (early, late) = (&bytes[50..100], &bytes[bytes.len() - 50..]);
    let most = |of: &[usize]| of.iter().copied().max().unwrap_or_default();
    assert!(most(late) <= most(early) + 64, "{} bytes a turn became {}", most(early), most(late));
    assert!(most(late) < 4_096, "{} bytes", most(late));
}

#[test]
fn insertions_in_each_turn_do_not_cause_full_updates() {
    let (mut engine, seen) = mirror(json!({}));
    let mut view = view(200_000);
    for n in 0..200 {
        say(&mut view, &format!("u{n}"), Role::User, "a question");
        say(&mut view, &format!("a{n}"), Role::Assistant, "an answer");
        run(&mut engine, &mut view);
        // Directly before the user's newest message, as recall does.
        let at = view.len() - 2;
        let recalled = entry(&format!("n{n}"), Message::text(Role::User, "recalled"));
        view.insert(at, recalled, "mirror", "recalled").unwrap();
        view.finish().unwrap();
    }
    run(&mut engine, &mut view);
    assert_eq!(known(&seen), as_it_is(&view));
    let bytes = seen.bytes.lock().unwrap();
    assert!(bytes.iter().skip(2).all(|&bytes| bytes < 2_000), "{bytes:?}");
}

#[test]
fn an_ingested_message_is_not_sent_again_with_its_row() {
    for encoding in [Encoding::Json, Encoding::MessagePack] {
        let (mut engine, seen) = mirror_in(encoding, json!({}));
        let mut view = view(16_000);
        let message = Arc::new(Message::text(Role::User, "told once"));
        let request = IngestRequest {
            session_id: "s".into(),
            entry: "u".into(),
            message: message.clone(),
            is_heartbeat: false,
        };
        assert!(now(engine.ingest(&request)).unwrap());
        assert!(!now(engine.ingest(&request)).unwrap(), "it is known");
        view.append(Arc::new(Entry::in_memory("u", message))).unwrap();
        run(&mut engine, &mut view);
        let row = seen.last_params.lock().unwrap()["update"]["added"][0].clone();
        assert_eq!((&row["id"], row.get("message")), (&json!("u"), None));
        assert_eq!(known(&seen), as_it_is(&view));
    }
}

#[test]
fn another_view_of_the_session_is_sent_in_full() {
    let (mut engine, seen) = mirror(json!({}));
    for text in ["one", "another"] {
        let mut view = view(16_000);
        say(&mut view, "u", Role::User, text);
        run(&mut engine, &mut view);
        assert_eq!(seen.last_params.lock().unwrap()["update"]["reset"], true);
        assert_eq!(known(&seen), as_it_is(&view));
    }
}

#[derive(Clone, Debug)]
enum Step {
    Say(bool),
    Call(u8),
    /// The result of one of the open calls.
    Answer(u8),
    Drop(u8),
    Replace(u8),
    Insert(u8),
    Pin(u8),
    Compact(u8),
    Request,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => any::<bool>().prop_map(Step::Say),
        2 => (1..3_u8).prop_map(Step::Call),
        3 => any::<u8>().prop_map(Step::Answer),
        2 => any::<u8>().prop_map(Step::Drop),
        1 => any::<u8>().prop_map(Step::Replace),
        1 => any::<u8>().prop_map(Step::Insert),
        1 => any::<u8>().prop_map(Step::Pin),
        1 => any::<u8>().prop_map(Step::Compact),
        3 => Just(Step::Request),
    ]
}

fn take(view: &mut ContextView, n: usize, step: &Step, open: &mut Vec<String>) {
    let at = |of: u8, view: &ContextView| usize::from(of) % view.len().max(1);
    match *step {
        Step::Say(by_user) => {
            let role = if by_user { Role::User } else { Role::Assistant };
            say(view, &format!("m{n}"), role, "some words");
        }
        Step::Call(count) => {
            let ids: Vec<String> = (0..count).map(|i| format!("c{n}-{i}")).collect();
            let refs: Vec<&str> = ids.iter().map(String::as_str).collect();
            view.append(entry(&format!("m{n}"), calls(&refs))).unwrap();
            open.extend(ids);
        }
        Step::Answer(of) if !open.is_empty() => {
            let call = open.remove(usize::from(of) % open.len());
            view.append(entry(&format!("m{n}"), Message::tool_result(&*call, "done"))).unwrap();
        }
        Step::Drop(of) => drop(view.drop(at(of, view), "layer", "test")),
        Step::Pin(of) => view.pin(at(of, view), "layer", "test"),
        Step::Insert(of) => {
            let recalled = entry(&format!("n{n}"), Message::text(Role::Custom, "recalled"));
            view.insert(at(of, view), recalled, "layer", "test").unwrap();
        }
        Step::Replace(of) if !view.is_empty() => {
            let at = at(of, view);
            let mut form = Message::clone(&view.node(at).message().unwrap());
            form.blocks.push(ctx_core::Block::text("and more"));
            if view.node(at).results().is_empty() {
                view.replace(at, form, "layer", "test").unwrap();
            }
        }
        Step::Compact(of) if !view.is_empty() => {
            let compacted = ctx_core::Compacted {
                summary: "so far".into(),
                first_kept_entry_id: view.node(at(of, view)).entry().id().clone(),
                tokens_before: view.used(),
                tokens_after: None,
                details: None,
                staying: Vec::new(),
                projections: Vec::new(),
            };
            // A cut through a group is rejected, and changes nothing.
            let _ = view.compact(compacted, format!("s{n}"), "layer", "test");
        }
        Step::Request | Step::Answer(_) | Step::Replace(_) | Step::Compact(_) => {}
    }
}

proptest! {
    #[test]
    fn an_engine_always_knows_the_current_view(
        steps in prop::collection::vec(step(), 1..120),
        finishes in any::<bool>(),
        encoding in prop::sample::select(vec![Encoding::Json, Encoding::MessagePack]),
    ) {
        let (mut engine, seen) = mirror_in(encoding, json!({}));
        let mut view = view(200_000);
        let (mut open, mut requests, mut resets, mut longest) = (Vec::new(), 0, 0, 0);
        for (n, step) in steps.iter().enumerate() {
            take(&mut view, n, step, &mut open);
            longest = longest.max(view.len());
            if matches!(step, Step::Request) {
                let checked = now(engine.assemble("s", &view, &turn(0), false)).expect("a plan");
                prop_assert!(checked.tokens == view.total());
                prop_assert_eq!(known(&seen), as_it_is(&view));
                prop_assert_eq!(*seen.encoding.lock().unwrap(), encoding);
                requests += 1;
                resets += usize::from(seen.last_params.lock().unwrap()["update"]["reset"] == true);
                if finishes {
                    view.finish().unwrap();
                }
            }
        }
        // It was never out of step: that would have been a second call for the same request.
        prop_assert_eq!(seen.bytes.lock().unwrap().len(), requests + 1);
        prop_assert!(resets <= 1 || longest > 32, "short sessions get their changes");
    }
}
