//! Every rejection of an answer, and the effects of accepted answers.

use std::collections::{BTreeSet, HashSet};

use ctx_core::{ContextView, NodeState, Role, Tokens};
use ctx_engine_registry::foreign::{
    CheckContext, CheckedPlan, EstimateOff, Rejection, SyncOptions, ViewSync, apply, check,
};
use ctx_engine_sdk::protocol::{Assembled, Contract};
use serde_json::{Value, json};

use super::{live, say, short_session, view};

fn checked(view: &ContextView, answer: &Value) -> Result<CheckedPlan, Rejection> {
    let answer: Assembled = serde_json::from_str(&answer.to_string()).expect("an answer");
    let telling = SyncOptions { contract: &Contract::default(), ingested: &HashSet::new() };
    let (sync, _) = ViewSync::all(view, telling);
    check(answer, CheckContext { view, sync: &sync, adds_only: false })
}

fn applied(view: &mut ContextView, answer: &Value) -> Vec<String> {
    let checked = checked(view, answer).expect("a valid plan");
    let tokens = checked.tokens;
    apply(checked, view, "scripted").expect("it was checked");
    assert_eq!(view.total(), tokens, "the tokens are those counted before: {answer}");
    live(view)
}

#[test]
fn an_answer_that_would_break_the_session_is_rejected_by_name() {
    let text = |role: &str| json!({"role": role, "blocks": [{"type": "text", "text": "x"}]});
    let call = json!({"role": "assistant", "blocks": [
        {"type": "toolCall", "id": "c9", "name": "read", "arguments": {}}]});
    let all = |ids: &[&str]| json!(ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>());
    let mut seen = BTreeSet::new();
    for (name, answer) in [
        ("unknown-id", json!({"drop": ["nobody"]})),
        ("unknown-id", json!({"replace": [{"id": "nobody", "text": "x"}]})),
        ("unknown-id", json!({"pin": ["nobody"]})),
        ("unknown-id", json!({"insert": [{"id": "n", "before": "nobody", "text": "x"}]})),
        ("unknown-id", json!({"messages": [{"id": "nobody"}]})),
        ("named-twice", json!({"drop": ["u1", "u1"]})),
        ("named-twice", json!({"drop": ["u1"], "replace": [{"id": "u1", "text": "x"}]})),
        ("named-twice", json!({"drop": ["u1"], "pin": ["u1"]})),
        ("named-twice", json!({"insert": [{"id": "n", "text": "x"}, {"id": "n", "text": "y"}]})),
        ("named-twice", json!({"messages": all(&["u2", "u2"])})),
        ("protected-dropped", json!({"drop": ["sys"]})),
        ("protected-dropped", json!({"drop": ["u2"]})),
        ("protected-dropped", json!({"messages": all(&["u1", "a1", "r1", "a2", "u2"])})),
        ("group-split", json!({"drop": ["a1"]})),
        ("group-split", json!({"drop": ["r1"]})),
        ("group-split", json!({"messages": all(&["sys", "u1", "r1", "a2", "u2"])})),
        ("replacement-mismatch", json!({"replace": [{"id": "u1", "message": text("assistant")}]})),
        ("replacement-mismatch", json!({"replace": [{"id": "a1", "message": text("assistant")}]})),
        ("replacement-mismatch", json!({"replace": [{"id": "a2", "message": call}]})),
        ("replacement-mismatch", json!({"replace": [{"id": "u1"}]})),
        ("replacement-mismatch", json!({"replace": [{"id": "u1", "text": ""}]})),
        ("replacement-mismatch", json!({"messages": [{"id": "sys", "message": text("user")}]})),
        // The user's newest message is sent unchanged.
        ("replacement-mismatch", json!({"replace": [{"id": "u2", "text": "x"}]})),
        (
            "replacement-mismatch",
            json!({"messages": [{"id": "sys"}, {"id": "u2", "message": text("user")}]}),
        ),
        ("taken-id", json!({"insert": [{"id": "u1", "text": "x"}]})),
        ("bad-insertion", json!({"insert": [{"id": "n", "text": ""}]})),
        ("bad-insertion", json!({"insert": [{"id": "", "text": "x"}]})),
        ("bad-insertion", json!({"insert": [{"id": "n", "role": "toolResult", "text": "x"}]})),
        ("bad-insertion", json!({"messages": [{"id": "n", "message": call}]})),
        ("out-of-order", json!({"messages": all(&["sys", "u2", "u1"])})),
        ("over-budget", json!({"insert": [{"id": "n", "text": "long ".repeat(20_000)}]})),
        ("over-budget", json!({"systemPromptAddition": "long ".repeat(20_000)})),
        ("over-budget", json!({"replace": [{"id": "u1", "text": "long ".repeat(20_000)}]})),
        ("malformed", json!({"messages": [], "keepLast": 2})),
        ("malformed", json!({"messages": [{"id": "n", "message": {"role": "user"}}]})),
        (
            "malformed",
            json!({"replace": [{"id": "u1", "message":
            {"role": "user", "blocks": [{"type": "toolResult"}]}}]}),
        ),
    ] {
        let view = short_session(16_000);
        let rejection = checked(&view, &answer).expect_err(&answer.to_string());
        assert_eq!(rejection.name(), name, "{answer}: {rejection}");
        assert!(!rejection.hint().is_empty() && !rejection.to_string().is_empty());
        seen.insert(rejection.name());
    }
    // The other rejections are about compactions.
    let here = [
        "malformed",
        "unknown-id",
        "named-twice",
        "protected-dropped",
        "group-split",
        "replacement-mismatch",
        "taken-id",
        "bad-insertion",
        "out-of-order",
        "over-budget",
    ];
    assert_eq!(seen, BTreeSet::from(here));
}

#[test]
fn a_plan_over_budget_is_rejected_if_rows_could_be_dropped() {
    let mut view = view(16_000);
    for n in 0..40 {
        say(&mut view, &format!("u{n}"), Role::User, &"words ".repeat(400));
    }
    assert!(view.overflow() > Tokens::ZERO);
    assert_eq!(checked(&view, &json!({})).unwrap_err().name(), "over-budget");
    assert_eq!(checked(&view, &json!({"keepLast": 30})).unwrap_err().name(), "over-budget");
    assert_eq!(applied(&mut view, &json!({"keepLast": 3})), ["u37", "u38", "u39"]);
}

#[test]
fn protected_rows_may_exceed_the_budget() {
    let mut view = view(4_000);
    say(&mut view, "u", Role::User, &"words ".repeat(4_000));
    assert_eq!(applied(&mut view, &json!({})), ["u"]);
    let more = json!({"insert": [{"id": "n", "text": "more"}]});
    assert_eq!(checked(&view, &more).unwrap_err().name(), "over-budget");
}

#[test]
fn keep_last_keeps_protected_rows_and_whole_groups() {
    for (keep, left) in [
        (0, vec!["sys", "u2"]),
        (1, vec!["sys", "u2"]),
        (2, vec!["sys", "a2", "u2"]),
        (3, vec!["sys", "a1", "r1", "a2", "u2"]),
        (5, vec!["sys", "u1", "a1", "r1", "a2", "u2"]),
        (99, vec!["sys", "u1", "a1", "r1", "a2", "u2"]),
    ] {
        assert_eq!(applied(&mut short_session(16_000), &json!({"keepLast": keep})), left);
    }
}

#[test]
fn edits_of_a_plan_have_the_engine_as_their_layer() {
    let mut view = short_session(16_000);
    let plan = json!({
        "drop": ["u1"],
        "replace": [{"id": "r1", "text": "cut"}, {"id": "a2", "text": "short"}],
        "insert": [
            {"id": "n1", "before": "a1", "text": "one"},
            {"id": "n2", "before": "a1", "text": "two", "role": "assistant"},
            {"id": "n3", "text": "at the end"},
        ],
        "pin": ["a2", "n1"],
        "reason": "to\u{7} test",
    });
    assert_eq!(applied(&mut view, &plan), ["sys", "n1", "n2", "a1", "r1", "a2", "u2", "n3"]);
    let node = |id: &str| view.nodes().iter().find(|node| &**node.entry().id() == id).unwrap();
    assert_eq!(node("r1").message().unwrap().tool_results().next().unwrap().plain_text(), "cut");
    assert_eq!(node("a2").message().unwrap().plain_text(), "short");
    assert_eq!((node("n2").role(), node("n1").state()), (&Role::Assistant, NodeState::Inserted));
    assert!(node("a2").pinned && node("n1").pinned && !node("n2").pinned);
    assert!(view.edits().iter().all(|e| e.layer == "scripted" && e.reason == "to\u{fffd} test"));
}

#[test]
fn a_full_list_of_messages_is_converted_to_edits() {
    let mut view = short_session(16_000);
    let echoed = |text: &str| json!({"role": "user", "blocks": [{"type": "text", "text": text}]});
    let all = json!({"messages": [
        {"id": "sys"},
        {"id": "u1", "message": echoed("read the file")},
        {"id": "new", "message": echoed("something new")},
        {"id": "a2", "message": {"role": "assistant", "blocks": [{"type": "text", "text": "it"}]}},
        {"id": "u2", "message": echoed("thanks; go on")},
    ]});
    assert_eq!(applied(&mut view, &all), ["sys", "u1", "new", "a2", "u2"]);
    let edited: Vec<_> = view.edits().iter().map(|edit| &*edit.entry).collect();
    assert_eq!(edited, ["a1", "r1", "a2", "new"], "an unchanged echo is not an edit");
}

#[test]
fn a_returned_message_keeps_fields_outside_the_protocol() {
    let mut view = short_session(16_000);
    let mut call = super::calls(&["c2"]);
    call.meta.model = Some("a model".into());
    if let Some(ctx_core::Block::ToolCall(call)) = call.blocks.first_mut() {
        call.spelling = ctx_core::CallSpelling::FunctionCall;
    }
    view.append(super::entry("a3", call)).unwrap();
    let form = json!({"role": "assistant", "blocks": [
        {"type": "text", "text": "I read"},
        {"type": "toolCall", "id": "c2", "name": "read", "arguments": {"shorter": true}}]});
    applied(&mut view, &json!({"replace": [{"id": "a3", "message": form}]}));
    let form = view.nodes().last().unwrap().message().unwrap();
    let call = form.tool_calls().next().unwrap();
    assert_eq!(call.spelling, ctx_core::CallSpelling::FunctionCall);
    assert_eq!(call.arguments.as_str(), r#"{"shorter":true}"#);
    assert_eq!(form.meta.model.as_deref(), Some("a model"));
}

#[test]
fn a_wrong_estimate_only_causes_a_remark() {
    let mut view = view(64_000);
    say(&mut view, "u", Role::User, &"words ".repeat(6_000));
    let remark = |estimated: u64| {
        checked(&view, &json!({"estimatedTokens": estimated})).expect("a valid plan").remark
    };
    let counted = view.total();
    assert_eq!(remark(counted.get()), None);
    assert_eq!(remark(counted.get() * 14 / 10), None);
    assert_eq!(remark(10), Some(EstimateOff { estimated: 10, counted }));
    assert_eq!(
        checked(&short_session(16_000), &json!({"estimatedTokens": 1_900})).unwrap().remark,
        None
    );
}
