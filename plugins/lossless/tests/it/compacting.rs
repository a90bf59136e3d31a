use super::*;

fn compact(driven: &mut Driven, with: &Value) -> Value {
    let mut params = driven.params(8_000);
    for (key, value) in with.as_object().into_iter().flatten() {
        params[key] = value.clone();
    }
    driven.ask("compact", &params)
}

/// Applies a compaction as a host does.
fn carry_out(driven: &mut Driven, result: &Value) {
    let result = &result["result"];
    let summary = result["summary"].as_str().expect("a summary");
    let cut = driven.rows.iter().position(|row| row["id"] == result["firstKeptEntryId"]);
    driven.rows.drain(..cut.expect("a row"));
    let row = json!({"id": format!("c{}", driven.services.written), "keep": true,
        "role": "compactionSummary", "tokens": measure(summary), "group": 900_000,
        "message": message("compactionSummary", summary)});
    driven.rows.insert(0, row);
}

#[test]
fn compaction_makes_one_summary_and_splits_no_group() {
    let mut driven = Driven::up(&json!({}));
    driven.rows = session(400);
    let result = compact(&mut driven, &json!({}));
    assert_eq!((&result["ok"], &result["compacted"]), (&json!(true), &json!(true)));
    let summary = result["result"]["summary"].as_str().unwrap();
    assert!(summary.contains("[e:00000000].."), "{summary}");
    let groups = |rows: &[Value]| -> HashSet<u64> {
        rows.iter().filter_map(|row| row["group"].as_u64()).collect()
    };
    let cut = driven
        .rows
        .iter()
        .position(|row| row["id"] == result["result"]["firstKeptEntryId"])
        .unwrap();
    assert!(groups(&driven.rows[..cut]).is_disjoint(&groups(&driven.rows[cut..])));
    carry_out(&mut driven, &result);
    assert!(driven.tokens() <= result["result"]["tokensAfter"].as_u64().unwrap() + 8);
    let root = result["result"]["details"]["root"].as_str().unwrap().to_owned();
    driven.rows.push(json!({"id": root}));
    let reached = driven.in_reach();
    assert!(session(400).iter().all(|row| reached.contains(id(row))));
}

#[test]
fn a_second_compaction_also_covers_the_first() {
    let mut driven = Driven::up(&json!({}));
    driven.rows = session(400);
    let first = compact(&mut driven, &json!({}));
    carry_out(&mut driven, &first);
    let more = session(1_200).split_off(400);
    for turn in more.chunks(4) {
        driven.rows.extend_from_slice(turn);
        let answer = driven.assemble(8_000);
        driven.carry_out(&answer);
        assert!(driven.tokens() <= 6_000);
    }
    driven.restart(&json!({}));
    let second = compact(&mut driven, &json!({"force": true}));
    let summary = second["result"]["summary"].as_str().unwrap();
    assert!(summary.contains("[e:00000000].."), "{summary}");
    let root = second["result"]["details"]["root"].as_str().unwrap().to_owned();
    carry_out(&mut driven, &second);
    driven.rows.push(json!({"id": root}));
    let reached = driven.in_reach();
    assert!(session(1_200).iter().all(|row| reached.contains(id(row))));
}

#[test]
fn a_summary_by_another_engine_is_included() {
    let mut driven = Driven::up(&json!({}));
    driven.rows = session(400);
    driven.rows.insert(
        0,
        json!({"id": "older", "role": "compactionSummary", "keep": true, "tokens": 20,
            "group": 800_000, "message": message("compactionSummary", "the vault code is 4711")}),
    );
    let result = compact(&mut driven, &json!({"force": true}));
    let summary = result["result"]["summary"].as_str().unwrap();
    assert!(summary.contains("4711") && summary.contains("[e:older]"), "{summary}");
}

#[test]
fn a_budget_is_kept_and_later_attempts_keep_less() {
    let mut driven = Driven::up(&json!({}));
    driven.rows = session(400);
    let mut last = driven.tokens();
    for attempt in 1..=4 {
        let with = json!({"attempt": attempt, "tokenBudget": 2_000, "trigger": "overflow"});
        let result = compact(&mut driven, &with);
        let after = result["result"]["tokensAfter"].as_u64().unwrap();
        assert!(after <= 2_000 && after < last, "attempt {attempt}: {after} after {last}");
        last = after;
    }
}

#[test]
fn an_impossible_compaction_is_declined_with_the_reason() {
    let mut driven = Driven::up(&json!({}));
    let fits = compact(&mut driven, &json!({}));
    assert_eq!((&fits["ok"], &fits["compacted"]), (&json!(true), &json!(false)));
    driven.rows = session(3).split_off(1);
    for with in [json!({"force": true}), json!({"trigger": "overflow"})] {
        let result = compact(&mut driven, &with);
        assert_eq!((&result["ok"], &result["compacted"]), (&json!(false), &json!(false)));
        assert!(!result["reason"].as_str().unwrap().is_empty());
    }
    driven.rows = session(400);
    let anonymous = compact(&mut driven, &json!({"identifierPolicy": "anonymize"}));
    assert_eq!(anonymous["ok"], false);
}

#[test]
fn force_compacts_a_small_session() {
    let mut driven = Driven::up(&json!({}));
    driven.rows = session(60);
    assert_eq!(compact(&mut driven, &json!({}))["compacted"], false);
    let before = driven.tokens();
    let result = compact(&mut driven, &json!({"force": true, "customInstructions": "the steps"}));
    assert_eq!(result["compacted"], true, "{result}");
    assert!(driven.services.prompts.iter().any(|prompt| prompt.contains("dwell on: the steps")));
    carry_out(&mut driven, &result);
    assert!(driven.tokens() < before);
}
