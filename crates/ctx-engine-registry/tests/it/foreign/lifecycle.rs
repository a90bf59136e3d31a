//! The verbs other than `assemble`: ingested messages, turns, subagents.

use std::sync::Arc;

use ctx_core::{
    BootstrapRequest, ContextEngine, IngestRequest, Message, Role, SubagentEnd, SubagentSpawn,
};
use ctx_engine_registry::foreign::EngineSpec;
use serde_json::json;

use super::now;
use super::scripted::{Does, Stage, crashed, info};

#[test]
fn only_declared_verbs_are_called() {
    let spawn = SubagentSpawn {
        parent_session_key: "p".into(),
        child_session_key: "c".into(),
        ttl_ms: Some(9),
    };
    let named = [
        "bootstrap",
        "commit_turn",
        "after_turn",
        "maintain",
        "prepare_subagent_spawn",
        "rollback_subagent_spawn",
        "on_subagent_ended",
    ];
    for (names, remembers) in [(&named[..], true), (&[], false)] {
        let hello = json!({"verbs": names, "remembers": remembers});
        let stage = Stage::new("dylib", move |verb, _| match verb {
            "hello" => info(hello.clone()),
            "ingest" => Does::Answers(json!({"ingested": true})),
            _ => Does::Answers(json!({})),
        });
        let engine = stage.supervised(EngineSpec::default());
        let (session_id, session_file) = ("s".to_owned(), None);
        now(engine.bootstrap(BootstrapRequest { session_id, session_file })).unwrap();
        let message = Arc::new(Message::text(Role::User, "hello"));
        let ingest = IngestRequest {
            session_id: "s".into(),
            entry: "e".into(),
            message,
            is_heartbeat: true,
        };
        assert_eq!(now(engine.ingest(ingest)).unwrap().ingested, remembers);
        now(engine.commit_turn("s", "k1")).unwrap();
        now(engine.after_turn("s")).unwrap();
        now(engine.maintain("s")).unwrap();
        now(engine.prepare_subagent_spawn(&spawn)).unwrap();
        now(engine.rollback_subagent_spawn(&spawn)).unwrap();
        now(engine.on_subagent_ended("c", SubagentEnd::Failed)).unwrap();
        if !names.is_empty() {
            // Engines that do not know the field `failed` read the reason `completed`.
            let told = stage.last("on_subagent_ended");
            assert_eq!((&told["reason"], &told["failed"]), (&"completed".into(), &true.into()));
        }
        now(engine.on_subagent_ended("c", SubagentEnd::Swept)).unwrap();
        now(engine.dispose()).unwrap();
        let mut verbs = stage.verbs();
        verbs.dedup();
        if names.is_empty() {
            assert_eq!(verbs, ["hello", "dispose"]);
        } else {
            let mut all = vec!["hello", "bootstrap", "ingest"];
            all.extend(&named[1..]);
            all.push("dispose");
            assert_eq!(verbs, all);
            assert_eq!(stage.last("ingest")["isHeartbeat"], true);
            assert_eq!(stage.last("on_subagent_ended")["reason"], "swept");
            assert!(stage.last("on_subagent_ended").get("failed").is_none());
            assert_eq!(stage.last("prepare_subagent_spawn")["ttlMs"], 9);
        }
    }
}

#[test]
fn a_failed_commit_of_a_turn_is_repeated() {
    let mut fails = 1;
    let stage = Stage::new("process", move |verb, _| match verb {
        "hello" => info(json!({"verbs": ["commit_turn"]})),
        _ if fails > 0 => {
            fails -= 1;
            Does::Dies(crashed())
        }
        _ => Does::Answers(json!({"status": "committed"})),
    });
    let engine = stage.supervised(EngineSpec::default());
    now(engine.commit_turn("s", "k1")).expect("the turn completes");
    stage.tick(1);
    now(engine.commit_turn("t", "k2")).unwrap();
    let calls = stage.calls.lock().unwrap();
    let keys: Vec<_> =
        calls.iter().filter_map(|(_, params)| params["advancementKey"].as_str()).collect();
    assert_eq!(keys, ["k1", "k1", "k2"]);
}
