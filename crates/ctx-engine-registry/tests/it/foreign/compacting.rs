//! Which side compacts, and the checks of the result.

use ctx_core::{
    CompactRequest, CompactResult, CompactionTrigger, ContextEngine, ContextView, LeaseState, Role,
};
use ctx_engine_registry::foreign::{EngineSpec, SupervisedEngine};
use ctx_engine_registry::{CompactionBy, OnFailure};
use serde_json::{Value, json};

use super::scripted::{Does, Stage, crashed, info, late};
use super::{now, say, short_session, turn, view};

/// A long conversation, with a system prompt and an earlier summary.
fn talk() -> ContextView {
    let mut view = view(64_000);
    say(&mut view, "sys", Role::System, "be brief");
    say(&mut view, "sum", Role::CompactionSummary, "what was before");
    for n in 0..20 {
        say(&mut view, &format!("u{n}"), Role::User, &"a question ".repeat(20));
        say(&mut view, &format!("a{n}"), Role::Assistant, &"an answer ".repeat(20));
    }
    view
}

fn compact(engine: &SupervisedEngine, session: &str, view: ContextView) -> CompactResult {
    let request = CompactRequest::new(session, view, turn(7), CompactionTrigger::Threshold);
    now(engine.compact(request)).expect("the turn completes")
}

fn summary(result: &CompactResult) -> &str {
    &result.result.as_ref().expect("it was compacted").summary
}

fn owner(mut does: impl FnMut(&Value) -> Does + Send + 'static) -> std::sync::Arc<Stage> {
    Stage::new("dylib", move |verb, params| match verb {
        "hello" => info(json!({"ownsCompaction": true})),
        _ => does(params),
    })
}

fn good() -> Does {
    let result = json!({"summary": "by the engine", "firstKeptEntryId": "u10",
        "tokensBefore": 1, "tokensAfter": 2, "details": {"depth": 3}});
    Does::Answers(json!({"ok": true, "compacted": true, "result": result}))
}

#[test]
fn an_engine_with_the_lease_compacts_and_the_host_counts() {
    let stage = owner(|_| good());
    let engine = stage.supervised(EngineSpec::default());
    let mut view = talk();
    view.pin(2, "user", "important");
    let used = view.used();
    let mut request = CompactRequest::new("s", view, turn(7), CompactionTrigger::Manual);
    request.token_budget = Some(ctx_core::Tokens(500));
    request.custom_instructions = Some("dwell on names".into());
    request.attempt = 2;
    let result = now(engine.compact(request)).unwrap();
    let compacted = result.result.expect("it was compacted");
    assert_eq!((&*compacted.summary, &*compacted.first_kept_entry_id), ("by the engine", "u10"));
    assert_eq!(compacted.staying, ["u0".into()], "what is pinned stays");
    assert_eq!(compacted.details, Some(json!({"engine": "scripted", "details": {"depth": 3}})));
    assert_eq!(compacted.tokens_before, used);
    let mut view = talk();
    view.pin(2, "user", "important");
    let after = compacted.tokens_after.expect("the host counts");
    view.compact(compacted, "new", "host", "stored").expect("a valid compaction");
    assert_eq!(view.used(), after);
    let asked = stage.last("compact");
    assert_eq!((&asked["tokenBudget"], &asked["attempt"]), (&json!(500), &json!(2)));
    assert_eq!((&asked["trigger"], &asked["maxAttempts"]), (&json!("manual"), &json!(3)));
    assert_eq!(asked["customInstructions"], "dwell on names");
    assert_eq!(engine.health().unwrap().lease, LeaseState::Granted);
    assert!(engine.info().owns_compaction);
}

#[test]
fn without_the_lease_the_default_engine_compacts() {
    let refused = EngineSpec { compaction: CompactionBy::Host, ..EngineSpec::default() };
    let unasked = Stage::new("dylib", |_, _| info(json!({})));
    for (stage, terms, lease) in [
        (owner(|_| good()), refused, LeaseState::Refused),
        (unasked, EngineSpec::default(), LeaseState::NotAsked),
    ] {
        let engine = stage.supervised(terms);
        assert_eq!(summary(&compact(&engine, "s", talk())), "by the fallback");
        assert_eq!(stage.verbs(), ["hello"], "the engine is not asked");
        assert_eq!(engine.health().unwrap().lease, lease);
    }
}

#[test]
fn an_invalid_compaction_is_rejected_by_name() {
    let of = |summary: &str, first: &str| {
        json!({"ok": true, "compacted": true,
            "result": {"summary": summary, "firstKeptEntryId": first}})
    };
    for (name, answer) in [
        ("malformed", json!({"ok": true, "compacted": true})),
        ("malformed", json!("done")),
        ("empty-summary", of(" \n", "u2")),
        ("unknown-id", of("short", "nobody")),
        ("group-split", of("x", "r1")),
        ("not-smaller", of("a summary that is much longer than what it replaces", "a1")),
        ("not-smaller", of("x", "sys")),
    ] {
        let stage = owner(move |_| Does::Answers(answer.clone()));
        let engine = stage.supervised(EngineSpec::default());
        let result = compact(&engine, "s", short_session(16_000));
        assert_eq!(summary(&result), "by the fallback", "{name}");
        let health = engine.health().unwrap();
        let error = health.last_error.expect("it is remembered");
        assert_eq!((&*error.verb, &*error.name), ("compact", name));
        assert_eq!(
            (health.lease, health.strikes),
            (LeaseState::Granted, 1),
            "one rejection does not revoke it"
        );
    }
}

#[test]
fn a_deadline_or_crash_revokes_the_lease_of_the_session_with_one_warning() {
    let mut first = true;
    let stage =
        owner(
            move |_| {
                if std::mem::take(&mut first) { Does::Fails(late("compact")) } else { good() }
            },
        );
    let engine = stage.supervised(EngineSpec::default());
    assert_eq!(summary(&compact(&engine, "s", talk())), "by the fallback");
    assert_eq!(engine.health().unwrap().lease, LeaseState::Withdrawn);
    let warnings = engine.take_warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("no longer compacts this session:"));
    assert_eq!(summary(&compact(&engine, "s", talk())), "by the fallback");
    assert_eq!(summary(&compact(&engine, "t", talk())), "by the engine");
    assert_eq!(stage.verbs(), ["hello", "compact", "compact"]);
    assert!(engine.take_warnings().is_empty());

    let crash = owner(|_| Does::Dies(crashed()));
    let engine = crash.supervised(EngineSpec::default());
    assert_eq!(summary(&compact(&engine, "s", talk())), "by the fallback");
    assert_eq!(engine.health().unwrap().lease, LeaseState::Withdrawn);
    assert_eq!(engine.take_warnings().len(), 1, "the crash and the lease are one warning");
}

#[test]
fn losing_lease_and_engine_in_one_turn_gives_one_warning() {
    let stage = owner(|_| Does::Fails(late("compact")));
    let engine = stage.supervised(EngineSpec::default());
    for session in ["s", "t", "u"] {
        assert_eq!(summary(&compact(&engine, session, talk())), "by the fallback");
    }
    let health = engine.health().unwrap();
    assert_eq!((health.strikes, health.failures, health.failing), (3, 3, true));
    let warnings = engine.take_warnings();
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    for said in ["failed", "default engine serves", "no longer compacts this session"] {
        assert!(warnings[0].contains(said), "{said}: {warnings:?}");
    }
}

#[test]
fn the_default_engine_compacts_if_the_engine_declines() {
    let declined = || json!({"ok": false, "compacted": false, "reason": "too early"});
    let nothing = || json!({"ok": true, "compacted": false, "reason": "small enough"});
    let stage = owner(move |_| Does::Answers(declined()));
    let engine = stage.supervised(EngineSpec::default());
    assert_eq!(summary(&compact(&engine, "s", talk())), "by the fallback");
    assert_eq!(engine.health().unwrap().strikes, 0, "not a failure");

    let stage = owner(move |_| Does::Answers(nothing()));
    let engine = stage.supervised(EngineSpec::default());
    let result = compact(&engine, "s", talk());
    assert_eq!((result.ok, result.compacted), (true, false));
    assert_eq!(result.reason.as_deref(), Some("small enough"));
    // A prompt that was refused as too long must become smaller, whatever the engine decides.
    let request = CompactRequest::new("s", talk(), turn(7), CompactionTrigger::Overflow);
    assert_eq!(summary(&now(engine.compact(request)).unwrap()), "by the fallback");
}

#[test]
fn in_strict_mode_a_failed_compaction_is_an_error_with_its_cause() {
    let stage = owner(|_| Does::Answers(json!({"ok": true, "compacted": true})));
    let engine =
        stage.supervised(EngineSpec { on_failure: OnFailure::Strict, ..EngineSpec::default() });
    let request = CompactRequest::new("s", talk(), turn(7), CompactionTrigger::Threshold);
    let error = now(engine.compact(request)).unwrap_err();
    assert!(error.to_string().contains("without a result") && error.hint_text().is_some());
}
