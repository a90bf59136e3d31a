//! Which engine serves a turn, and the consequences of failures.

use std::sync::Arc;

use ctx_core::{
    AssembleRequest, Assembled, BootstrapRequest, ContextEngine, ContextView, EngineState,
    ErrorKind, Role, Timestamp,
};
use ctx_engine_registry::foreign::transport::Fault;
use ctx_engine_registry::foreign::{EngineSpec, SupervisedEngine};
use ctx_engine_registry::{EngineEncoding, OnFailure};
use ctx_engine_sdk::protocol::ErrorKind as Kind;
use serde_json::json;

use super::scripted::{Does, Fallback, Stage, crashed, info, late, refused};
use super::{live, now, short_session, turn};

fn assemble(engine: &SupervisedEngine, view: ContextView) -> ctx_core::Result<Assembled> {
    let session_id = "s".into();
    now(engine.assemble(AssembleRequest { session_id, view, turn: turn(7) }))
}

/// Returns the engine that edited the view, and why, if it is the fallback.
fn served(engine: &SupervisedEngine) -> (String, Option<String>) {
    let view = assemble(engine, short_session(16_000)).expect("the turn completes").into_view();
    let layers: Vec<_> = view.manifest().layers.into_keys().collect();
    let note = view.manifest().engine.expect("a note");
    assert_eq!(note.id, "scripted");
    (layers.join(","), note.reason)
}

fn strict() -> EngineSpec {
    EngineSpec { on_failure: OnFailure::Strict, ..EngineSpec::default() }
}

/// An engine that answers `hello`, and then does the same to every request.
fn always(carrier: &'static str, mut does: impl FnMut() -> Does + Send + 'static) -> Arc<Stage> {
    Stage::new(carrier, move |verb, _| if verb == "hello" { info(json!({})) } else { does() })
}

#[test]
fn a_working_engine_serves_and_reports_its_own_info() {
    let stage = always("process", || Does::Answers(json!({"drop": ["u1"]})));
    let engine = stage.supervised(EngineSpec::default());
    assert_eq!((&*engine.info().id, &*engine.info().version), ("scripted", "0.9.0"));
    assert_eq!(served(&engine), ("scripted".into(), None));
    assert_eq!((&*engine.info().name, &*engine.info().version), ("Scripted", "1.2.3"));
    let health = engine.health().unwrap();
    assert_eq!((health.state, health.strikes, health.restarts), (EngineState::Ok, 0, 0));
    assert_eq!(
        json!(health),
        json!({
            "id": "scripted", "carrier": "process", "version": "1.2.3", "state": "ok",
            "strikes": 0, "lease": "notAsked", "restarts": 0,
            "answered": 1, "failures": 0, "failing": false, "standIn": "legacy",
        })
    );
    assert!(engine.take_warnings().is_empty());
}

#[test]
fn after_any_failure_the_fallback_serves_the_turn_from_the_unchanged_view() {
    type Failing = Box<dyn Fn() -> Does + Send>;
    let faults: Vec<(&str, Failing)> = vec![
        ("crashed", Box::new(|| Does::Dies(crashed()))),
        ("deadline", Box::new(|| Does::Dies(late("assemble")))),
        ("deadline", Box::new(|| Does::Fails(late("assemble")))),
        ("too-large", Box::new(|| Does::Dies(Fault::TooLarge { limit: 7 }))),
        (
            "garbage",
            Box::new(|| Does::Fails(Fault::Garbage { why: "no JSON".into(), excerpt: "?".into() })),
        ),
        ("panicked", Box::new(|| Does::Fails(Fault::Panicked { message: "oh".into() }))),
        ("refused", Box::new(|| Does::Fails(refused(Kind::Failed)))),
        ("lost", Box::new(|| Does::Dies(Fault::Lost { why: "earlier".into() }))),
        (
            "busy",
            Box::new(|| {
                let after = std::time::Duration::from_secs(1);
                Does::Fails(Fault::Busy { verb: "assemble".into(), after })
            }),
        ),
        ("malformed", Box::new(|| Does::Answers(json!([1, 2])))),
        ("malformed", Box::new(|| Does::Answers(json!({"drop": "u1"})))),
        ("protected-dropped", Box::new(|| Does::Answers(json!({"drop": ["u1", "sys"]})))),
        ("group-split", Box::new(|| Does::Answers(json!({"drop": ["u1", "a1"]})))),
    ];
    for (name, does) in faults {
        let stage = always("dylib", does);
        let engine = stage.supervised(EngineSpec::default());
        let view = assemble(&engine, short_session(16_000)).expect("the turn completes").view;
        assert_eq!(live(&view), live(&short_session(16_000)), "{name}");
        let layers: Vec<_> = view.edits().iter().map(|edit| &*edit.layer).collect();
        assert_eq!(layers, ["fallback"], "{name}");
        let note = view.manifest().engine.expect("a note");
        assert!(note.reason.is_some_and(|reason| reason.starts_with(name)), "{name}");
        let error = engine.health().unwrap().last_error.expect("it is remembered");
        assert_eq!((&*error.verb, &*error.name, error.at), ("assemble", name, Timestamp(7)));
    }
}

#[test]
fn in_strict_mode_a_failure_ends_the_turn_with_its_cause() {
    let stage = always("process", || Does::Dies(crashed()));
    let engine = stage.supervised(strict());
    let error = assemble(&engine, short_session(16_000)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Contract);
    assert!(error.context().contains(&("engine", "scripted".into())));
    // It is lost now, and that is an error as well.
    let error = assemble(&engine, short_session(16_000)).unwrap_err();
    assert!(error.to_string().contains("does not serve: crashed"), "{error}");
    assert!(error.hint_text().is_some());
}

#[test]
fn after_three_strikes_a_library_is_not_called_and_one_warning_is_given() {
    let stage = always("dylib", || Does::Answers(json!({"drop": ["nobody"]})));
    let engine = stage.supervised(EngineSpec::default());
    for strikes in 1..=3 {
        served(&engine);
        assert_eq!(engine.health().unwrap().strikes, strikes);
    }
    let warnings = engine.take_warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for said in ["scripted", "'nobody'", "failed 3 times", "it is no longer used, and"] {
        assert!(warnings[0].contains(said), "{said}: {warnings:?}");
    }
    stage.tick(1_000_000);
    let (layers, reason) = served(&engine);
    assert_eq!((layers.as_str(), reason.is_some()), ("fallback", true));
    assert_eq!(engine.health().unwrap().state, EngineState::Failed);
    assert_eq!(stage.verbs().iter().filter(|verb| *verb == "assemble").count(), 3);
    assert!(engine.take_warnings().is_empty(), "already reported");
}

#[test]
fn each_kind_of_failure_is_reported_once() {
    let mut answers = vec![
        Does::Answers(json!({"drop": ["nobody"]})),
        Does::Fails(refused(Kind::Failed)),
        Does::Answers(json!({"drop": ["u1"]})),
        Does::Fails(refused(Kind::Failed)),
    ];
    let stage = always("process", move || {
        answers.pop().unwrap_or_else(|| Does::Answers(json!({"drop": ["nobody"]})))
    });
    let engine = stage.supervised(EngineSpec::default());
    let warnings = || {
        served(&engine);
        engine.take_warnings()
    };
    let first = warnings();
    assert!(first.len() == 1 && first[0].contains("(in 'assemble'); 'legacy' served"), "{first:?}");
    assert_eq!(warnings(), [""; 0], "it worked");
    assert_eq!(warnings(), [""; 0], "already reported");
    // The last warning is about the last failure only; it does not repeat earlier ones.
    let last = warnings();
    let said = ["'nobody'", "it is ended, and the default engine serves for 1s"];
    assert!(last.len() == 1 && said.iter().all(|said| last[0].contains(said)), "{last:?}");
    let strict = always("process", || Does::Fails(refused(Kind::Failed)));
    let engine = strict.supervised(self::strict());
    assemble(&engine, short_session(16_000)).unwrap_err();
    assert_eq!(engine.take_warnings(), [""; 0], "the error says it");
}

#[test]
fn the_final_warning_does_not_hide_earlier_failures() {
    let mut answers = vec![
        Does::Answers(json!({"drop": ["nobody"]})),
        Does::Answers(json!({"drop": ["nobody"]})),
        Does::Fails(refused(Kind::Failed)),
    ];
    let stage = always("process", move || answers.pop().expect("three calls"));
    let engine = stage.supervised(EngineSpec::default());
    for _ in 0..3 {
        served(&engine);
    }
    let warnings = engine.take_warnings();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("'legacy' served") && !warnings[0].contains("'nobody'"));
    assert!(warnings[1].contains("'nobody'") && warnings[1].contains("failed 3 times"));
}

#[test]
fn busy_and_cancelled_calls_are_no_strikes() {
    let after = std::time::Duration::from_secs(1);
    let mut faults = vec![
        Fault::Busy { verb: "assemble".into(), after },
        refused(Kind::Cancelled),
        Fault::Busy { verb: "assemble".into(), after },
        refused(Kind::Cancelled),
    ];
    let stage = always("dylib", move || match faults.pop() {
        Some(fault) => Does::Fails(fault),
        None => Does::Answers(json!({"drop": ["u1"]})),
    });
    let engine = stage.supervised(EngineSpec::default());
    for _ in 0..4 {
        assert_eq!(served(&engine).0, "fallback");
    }
    assert_eq!(served(&engine).0, "scripted");
    assert_eq!(engine.health().unwrap().strikes, 0);
}

#[test]
fn a_crashed_process_is_restarted_five_times_with_doubling_pauses() {
    let stage = always("process", || Does::Dies(crashed()));
    let engine = stage.supervised(EngineSpec::default());
    served(&engine);
    for (restarts, pause) in [1, 2, 4, 8, 16].into_iter().enumerate() {
        let health = engine.health().unwrap();
        assert_eq!((health.state, health.restarts), (EngineState::Degraded, restarts as u32));
        assert_eq!(engine.take_warnings().len(), 1, "one for each crash");
        stage.tick(pause - 1);
        assert_eq!(served(&engine).0, "fallback");
        assert_eq!(stage.verbs().len(), 2 * (restarts + 1), "it is not called in between");
        stage.tick(1);
        served(&engine);
        assert_eq!(stage.verbs().len(), 2 * (restarts + 2));
    }
    assert_eq!(engine.health().unwrap().state, EngineState::Failed);
    stage.tick(1_000_000);
    served(&engine);
    assert_eq!(stage.verbs().len(), 12);
    assert_eq!(engine.health().unwrap().restarts, 5);
}

#[test]
fn a_restarted_engine_gets_the_whole_session() {
    let mut requests = 0;
    let stage = Stage::new("process", move |verb, _| match verb {
        "hello" => info(json!({"verbs": ["bootstrap"]})),
        "bootstrap" => Does::Answers(json!({"bootstrapped": true, "importedMessages": 3})),
        _ => {
            requests += 1;
            if requests == 2 { Does::Dies(crashed()) } else { Does::Answers(json!({})) }
        }
    });
    let engine = stage.supervised(EngineSpec::default());
    let request = BootstrapRequest { session_id: "s".into(), session_file: Some("s.jsonl".into()) };
    assert_eq!(now(engine.bootstrap(request)).unwrap().imported_messages, 3);
    let mut view = short_session(16_000);
    for at in 0..3 {
        view = assemble(&engine, view).unwrap().into_view();
        view.finish().unwrap();
        super::say(&mut view, &format!("more{at}"), Role::User, "more");
        stage.tick(1);
    }
    let verbs = ["hello", "bootstrap", "assemble", "assemble", "hello", "bootstrap", "assemble"];
    assert_eq!(stage.verbs(), verbs);
    assert_eq!(stage.last("bootstrap")["sessionFile"], "s.jsonl");
    let update = &stage.last("assemble")["update"];
    assert_eq!((&update["reset"], &update["rows"]), (&json!(true), &json!(8)));
    let health = engine.health().unwrap();
    assert_eq!((health.state, health.strikes, health.restarts), (EngineState::Ok, 0, 1));
}

#[test]
fn an_engine_out_of_step_gets_the_whole_session_once() {
    let mut steps = vec![true, true, false, true, false, false];
    let stage = always("dylib", move || match steps.pop() {
        Some(true) => Does::Fails(refused(Kind::OutOfStep)),
        _ => Does::Answers(json!({})),
    });
    let engine = stage.supervised(EngineSpec::default());
    let mut view = short_session(16_000);
    let mut turn = |engine: &SupervisedEngine, resets: &[bool], strikes: u32| {
        let all = short_session(16_000);
        let before = stage.verbs().len().max(1);
        view = assemble(engine, std::mem::replace(&mut view, all)).unwrap().into_view();
        view.finish().unwrap();
        let calls = stage.calls.lock().unwrap();
        let told: Vec<bool> =
            calls[before..].iter().map(|(_, params)| params["update"]["reset"] == true).collect();
        assert_eq!(told, resets);
        assert_eq!(engine.health().unwrap().strikes, strikes);
    };
    turn(&engine, &[true], 0);
    turn(&engine, &[false], 0);
    turn(&engine, &[false, true], 0);
    turn(&engine, &[false, true], 1);
}

#[test]
fn a_turn_dropped_by_the_host_is_no_engine_failure() {
    let mut requests = 0;
    let stage = always("dylib", move || {
        requests += 1;
        if requests == 2 { Does::Works } else { Does::Answers(json!({})) }
    });
    let engine = stage.supervised(EngineSpec::default());
    let mut view = assemble(&engine, short_session(16_000)).unwrap().into_view();
    view.finish().unwrap();
    let session_id = "s".to_owned();
    let given_up = AssembleRequest { session_id, view, turn: turn(8) };
    let mut given_up = Box::pin(engine.assemble(given_up));
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    assert!(given_up.as_mut().poll(&mut context).is_pending());
    drop(given_up);
    assert_eq!(served(&engine).1, None, "it still serves");
    assert_eq!(engine.health().unwrap().strikes, 0);
}

#[test]
fn a_different_engine_or_protocol_is_refused() {
    for (more, why) in [
        (json!({"id": "imposter"}), "imposter"),
        (json!({"protocol": "2.0"}), "protocol version '2.0'"),
        (json!({"protocol": ""}), "protocol version ''"),
        (json!({"base": "other"}), "'other'"),
    ] {
        let stage = Stage::new("process", move |_, _| info(more.clone()));
        let engine = stage.supervised(EngineSpec::default());
        assert_eq!(served(&engine).0, "fallback");
        let health = engine.health().unwrap();
        assert_eq!(health.state, EngineState::Failed, "starting it again would change nothing");
        assert!(health.last_error.unwrap().message.contains(why));
        assert!(now(engine.start()).is_err());
        assert_eq!(stage.verbs(), ["hello"]);
        assert_eq!(engine.take_warnings().len(), 1);
    }
}

#[test]
fn an_engine_that_fails_to_start_is_retried_later() {
    let mut hellos = 0;
    let stage = Stage::new("process", move |verb, _| {
        hellos += usize::from(verb == "hello");
        match (verb, hellos) {
            ("hello", 1) => Does::Dies(late("hello")),
            ("hello", _) => info(json!({})),
            _ => Does::Answers(json!({"drop": ["u1"]})),
        }
    });
    let engine = stage.supervised(EngineSpec::default());
    assert_eq!(served(&engine).0, "fallback");
    stage.tick(1);
    assert_eq!(served(&engine).0, "scripted");
}

#[test]
fn an_engine_with_a_base_runs_after_it() {
    let adds = || {
        Does::Answers(json!({
            "insert": [{"id": "note", "before": "u2", "text": "remember"}],
            "systemPromptAddition": "you have notes",
        }))
    };
    let by_config = || {
        always("dylib", adds)
            .supervised(EngineSpec::default())
            .with_base(Arc::new(Fallback::default()))
    };
    let by_contract = || {
        let stage = Stage::new("dylib", move |verb, _| match verb {
            "hello" => info(json!({"base": "legacy"})),
            _ => adds(),
        });
        stage.supervised(EngineSpec::default())
    };
    for engine in [by_config(), by_contract()] {
        let assembled = assemble(&engine, short_session(16_000)).unwrap();
        let plain = assembled.view.used();
        let mut view = assembled.into_view();
        let layers: Vec<_> = view.manifest().layers.into_keys().collect();
        assert_eq!(layers, ["fallback", "scripted"]);
        assert_eq!(view.system_addition(), Some("you have notes"));
        assert!(view.used() > plain, "it is counted");
        view.finish().unwrap();
        let view = assemble(&engine, view).unwrap().into_view();
        assert_eq!(
            view.manifest().engine.unwrap().reason.unwrap().split(':').next(),
            Some("taken-id")
        );
        assert_eq!(view.system_addition(), None);
        let served = view.edits().iter().filter(|edit| edit.layer == "fallback").count();
        assert_eq!(served, 1, "the edits of the base stay, and are not repeated");
    }
}

#[test]
fn a_wrong_estimate_is_reported_once_and_the_answer_applied() {
    let stage = always("process", || Does::Answers(json!({"estimatedTokens": 900_000})));
    let engine = stage.supervised(strict());
    for _ in 0..3 {
        assert_eq!(served(&engine).1, None);
    }
    let warnings = engine.take_warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("its estimate is off"), "{warnings:?}");
}

#[test]
fn a_wrong_estimate_of_a_rejected_answer_is_reported_once() {
    let stage = always("process", || Does::Answers(json!({"estimatedTokens": 1})));
    let engine = stage.supervised(EngineSpec::default());
    let mut long = short_session(16_000);
    for at in 0..40 {
        super::say(&mut long, &format!("long{at}"), Role::User, &"many words ".repeat(300));
    }
    for turn in 0..2 {
        let session_id = "s".into();
        let request = AssembleRequest { session_id, view: long, turn: super::turn(7) };
        long = now(engine.assemble(request)).expect("the turn completes").into_view();
        let reason = long.manifest().engine.and_then(|note| note.reason).expect("a reason");
        assert!(reason.starts_with("over-budget"), "{reason}");
        let warnings = engine.take_warnings();
        assert_eq!(warnings.len(), 1 - turn, "{warnings:?}");
        let told = |warning: &String| warning.contains("its estimate is off: it says 1 (in");
        assert!(warnings.iter().all(told), "{warnings:?}");
    }
}

#[test]
fn health_contains_the_verbs_whose_last_call_failed() {
    let mut bad = vec![false, true, true];
    let stage = always("dylib", move || match bad.pop() {
        Some(true) => Does::Fails(refused(Kind::Failed)),
        _ => Does::Answers(json!({"drop": ["u1"]})),
    });
    let engine = stage.supervised(EngineSpec::default());
    let health = || engine.health().unwrap();
    assert_eq!((health().answered, health().failing), (0, false), "it was not asked yet");
    for (answered, failures, failing) in [(0, 1, true), (0, 2, true), (1, 2, false)] {
        served(&engine);
        let health = health();
        assert_eq!((health.answered, health.failures), (answered, failures));
        assert_eq!(health.failing, failing);
    }
    let strict = stage.supervised(strict());
    assert_eq!(
        (health().stand_in.as_deref(), strict.health().unwrap().stand_in),
        (Some("legacy"), None)
    );
}

#[test]
fn an_error_contains_the_name_of_its_rejection_or_fault() {
    let fact = |does: fn() -> Does| {
        let stage = always("process", does);
        let error = assemble(&stage.supervised(strict()), short_session(16_000)).unwrap_err();
        error.context().last().cloned().expect("a fact")
    };
    let rejected = fact(|| Does::Answers(json!({"drop": ["nobody"]})));
    assert_eq!(rejected, ("rejection", "unknown-id".to_owned()));
    assert_eq!(fact(|| Does::Dies(crashed())), ("fault", "crashed".to_owned()));
}

#[test]
fn an_engine_may_only_choose_an_offered_encoding() {
    for (setting, chosen, offered) in [
        (EngineEncoding::Msgpack, "cbor", json!(["msgpack"])),
        (EngineEncoding::Json, "msgpack", json!(null)),
    ] {
        let stage = Stage::new("process", move |_, _| info(json!({"encoding": chosen})));
        let error = now(stage.supervised(EngineSpec { encoding: setting, ..strict() }).start());
        let error = error.unwrap_err();
        assert!(
            error.to_string().contains(&format!("it chose the encoding '{chosen}'")),
            "{error}"
        );
        assert!(error.hint_text().is_some());
        assert_eq!(stage.last("hello")["encodings"], offered);
    }
    // JSON may be chosen by its name.
    let stage = Stage::new("process", |_, _| info(json!({"encoding": "json"})));
    now(stage.supervised(strict()).start()).unwrap();
}

#[test]
fn a_strict_error_has_a_hint_even_if_the_engine_gives_none() {
    let stage = always("process", || Does::Fails(refused(Kind::Failed)));
    let error = assemble(&stage.supervised(strict()), short_session(16_000)).unwrap_err();
    let hint = error.hint_text().expect("a hint");
    assert!(hint.contains("onFailure") && hint.contains("'fallback'"), "{hint}");
}

#[test]
fn a_refused_configuration_is_reported_with_its_key() {
    let refuses = || Stage::new("process", |_, _| Does::Fails(refused(Kind::Failed)));
    let hint = |terms: EngineSpec| {
        let error = assemble(&refuses().supervised(terms), short_session(16_000)).unwrap_err();
        error.hint_text().expect("a hint").to_owned()
    };
    let given = EngineSpec { config: json!({"mode": "x"}).into(), ..strict() };
    let said = hint(given);
    assert!(said.contains("plugins.engines.scripted.config"), "{said}");
    assert!(!hint(strict()).contains("config"), "it was given none");
    let engine =
        refuses().supervised(EngineSpec { config: json!(7).into(), ..EngineSpec::default() });
    served(&engine);
    let warnings = engine.take_warnings().join("\n");
    assert!(warnings.contains("plugins.engines.scripted.config"), "{warnings}");
}
