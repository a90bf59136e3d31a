use super::*;

#[test]
fn another_process_uses_the_same_summaries() {
    let mut driven = Driven::up(&json!({}));
    driven.rows = session(400);
    let first = driven.assemble(8_000);
    let written = driven.services.written;
    // The session is opened again, without the inserted rows.
    driven.restart(&json!({}));
    let up = driven.ask("bootstrap", &json!({"sessionId": "s"}));
    assert_eq!(up["bootstrapped"], true);
    assert!(up["importedMessages"].as_u64().unwrap() > 200, "{up}");
    let again = driven.assemble(8_000);
    assert_eq!((&again["insert"], &again["drop"]), (&first["insert"], &first["drop"]));
    assert_eq!(driven.services.written, written, "nothing was folded again");
    // Now with the summaries still present as rows.
    driven.carry_out(&first);
    driven.restart(&json!({}));
    let known = driven.assemble(8_000);
    assert!(known["insert"].is_null() && known["drop"].is_null(), "{known}");
}

#[test]
fn summaries_survive_the_loss_of_the_store() {
    let mut driven = Driven::up(&json!({}));
    driven.rows = session(400);
    let plan = driven.assemble(8_000);
    driven.carry_out(&plan);
    driven.services.store.clear();
    driven.restart(&json!({}));
    driven.rows.extend(session(800).split_off(400));
    let answer = driven.assemble(8_000);
    driven.carry_out(&answer);
    assert!(driven.tokens() <= 6_000);
    let texts: String = driven.rows.iter().map(Value::to_string).collect();
    assert!(texts.contains("[e:00000000].."), "the first message is still cited");
}

#[test]
fn damaged_values_of_the_store_are_ignored() {
    for damage in [json!(7), json!({"children": "x"}), json!({"id": "a", "children": ["a"]})] {
        let mut driven = Driven::up(&json!({}));
        driven.rows = session(400);
        driven.assemble(8_000);
        for (key, value) in &mut driven.services.store {
            if key.starts_with("node/") {
                *value = damage.clone();
            }
        }
        driven.restart(&json!({}));
        let answer = driven.assemble(8_000);
        driven.carry_out(&answer);
        assert!(driven.tokens() <= 6_000, "{damage}");
    }
}

#[test]
fn a_rejected_answer_is_repeated() {
    let mut driven = Driven::up(&json!({}));
    driven.rows = session(400);
    let first = driven.assemble(8_000);
    assert_eq!(driven.assemble(8_000)["insert"], first["insert"]);
    driven.carry_out(&first);
    driven.rows.extend(session(1_200).split_off(400));
    let leaves = |driven: &Driven| {
        let keys = driven.services.store.keys();
        keys.filter(|key| key.starts_with("node/s/lossless:0:")).cloned().collect::<Vec<_>>()
    };
    driven.assemble(8_000);
    let before = leaves(&driven);
    let again = driven.assemble(8_000);
    assert_eq!(leaves(&driven), before, "nothing was folded again");
    driven.carry_out(&again);
    assert!(driven.tokens() <= 6_000);
    let reached = driven.in_reach();
    assert!(session(1_200).iter().all(|row| reached.contains(id(row))));
}

#[test]
fn a_branch_gets_only_its_own_summaries() {
    let mut driven = Driven::up(&json!({}));
    driven.rows = session(400);
    driven.assemble(8_000);
    let mut branch = session(230);
    branch.extend((0..200).map(|n| {
        json!({"id": format!("b{n}"), "role": "user", "tokens": 40, "group": 5_000 + n,
            "message": message("user", &format!("another way {n}"))})
    }));
    driven.rows = branch.clone();
    let answer = driven.assemble(8_000);
    driven.carry_out(&answer);
    let reached = driven.in_reach();
    assert!(branch.iter().all(|row| reached.contains(id(row))), "the whole branch is reachable");
    let other = session(400).split_off(230);
    assert!(!other.iter().any(|row| reached.contains(id(row))), "the other branch is not");
}

#[test]
fn a_turn_is_committed_once_even_by_another_process() {
    let mut driven = Driven::up(&json!({}));
    let turn = |key: &str| json!({"sessionId": "s", "advancementKey": key});
    assert_eq!(driven.ask("commit_turn", &turn("k1"))["status"], "committed");
    assert_eq!(driven.ask("commit_turn", &turn("k1"))["status"], "duplicate");
    driven.restart(&json!({}));
    assert_eq!(driven.ask("commit_turn", &turn("k1"))["status"], "duplicate");
    assert_eq!(driven.ask("commit_turn", &turn("k2"))["status"], "committed");
}

#[test]
fn a_subagent_gets_the_summaries_of_its_parent_unless_rolled_back() {
    let mut driven = Driven::up(&json!({}));
    driven.rows = session(400);
    driven.assemble(8_000);
    let spawn = json!({"parentSessionKey": "s", "childSessionKey": "c"});
    let child = json!({"sessionId": "c", "budget": {"messages": 8_000}, "update": {"rows": 0}});
    driven.ask("prepare_subagent_spawn", &spawn);
    driven.restart(&json!({}));
    let added = driven.ask("assemble", &child)["systemPromptAddition"].to_string();
    assert!(added.contains("the session s") && added.contains("[e:00000000].."), "{added}");
    driven.ask("rollback_subagent_spawn", &spawn);
    assert!(driven.ask("assemble", &child)["systemPromptAddition"].is_null());
    driven.ask("prepare_subagent_spawn", &spawn);
    driven.ask("on_subagent_ended", &json!({"childSessionKey": "c", "reason": "deleted"}));
    assert!(driven.ask("assemble", &child)["systemPromptAddition"].is_null());
}
