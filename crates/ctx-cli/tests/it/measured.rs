//! Token figures: those that the provider reported, else estimates that are labelled as such.

use std::collections::HashMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Room, data, join, pi_lines, text};

const MODEL: &str = "claude-opus-4-6";

/// A Claude Code session, line by line.
#[derive(Default)]
struct Claude {
    lines: Vec<String>,
}

impl Claude {
    fn push(&mut self, mut line: Value) {
        let n = self.lines.len();
        line["uuid"] = json!(format!("u{n}"));
        line["parentUuid"] = n.checked_sub(1).map_or(Value::Null, |n| json!(format!("u{n}")));
        line["sessionId"] = json!("s1");
        line["timestamp"] = json!(format!("2026-02-01T08:{:02}:{:02}.000Z", n / 60, n % 60));
        self.lines.push(line.to_string());
    }

    fn user(&mut self, text: &str) {
        self.push(json!({"type": "user", "message": {"role": "user", "content": text}}));
    }

    /// Adds a line of the answer `id`: 1,000 tokens fresh, the others from the cache.
    fn answer(&mut self, id: &str, prompt: u64, output: u64, over: &Value) {
        let usage = json!({"input_tokens": 400, "cache_creation_input_tokens": 600,
            "cache_read_input_tokens": prompt.saturating_sub(1_000), "output_tokens": output});
        let mut line = json!({"type": "assistant", "message": {"role": "assistant", "id": id,
            "model": MODEL, "content": [{"type": "text", "text": format!("answer {id}")}],
            "usage": usage}});
        for (path, value) in over.as_object().into_iter().flatten() {
            *line.pointer_mut(path).expect("a field to replace") = value.clone();
        }
        self.push(line);
    }

    fn compacted(&mut self, trigger: &str, tokens: u64) {
        self.push(json!({"type": "system", "subtype": "compact_boundary", "content": "compacted",
            "compactMetadata": {"trigger": trigger, "preTokens": tokens}}));
        self.push(json!({"type": "user", "isCompactSummary": true,
            "message": {"role": "user", "content": "Summary: all went well."}}));
    }

    fn write(&self, room: &Room) -> String {
        text(&room.write("s.jsonl", join(&self.lines))).to_owned()
    }
}

/// Returns a session of three requests: 41,000, 43,000 and 45,000 tokens.
fn three_requests() -> Claude {
    let mut session = Claude::default();
    for n in 1..4_u64 {
        session.user(&"a question about the parser. ".repeat(40));
        // An answer of two blocks is two lines with one id; the last one counts.
        let id = format!("m{n}");
        session.answer(&id, 39_000 + 2_000 * n, 1, &json!({}));
        session.answer(&id, 39_000 + 2_000 * n, 70, &json!({}));
    }
    session
}

fn status(room: &Room, file: &str) -> Value {
    room.json(&["status", file])
}

#[test]
fn the_providers_figure_is_the_headline() {
    let room = Room::new();
    let mut session = three_requests();
    let file = session.write(&room);
    let report = status(&room, &file);
    let context = &report["context"];
    assert_eq!((&context["tokens"], &context["source"]), (&json!(45_000), &json!("provider")));
    assert_eq!(context["pendingTokens"], 70);
    assert_eq!(context["limit"], report["limit"]);
    let limit = report["limit"].as_f64().expect("a number");
    assert!((report["usedShare"].as_f64().expect("a share") - 45_070.0 / limit).abs() < 1e-9);
    let shown = room.ctx(&["status", &file]).stdout;
    assert!(shown.contains("45,070 of") && shown.contains("45,000 reported by the provider"));

    // Later messages are pending.
    session.user(&"word ".repeat(800));
    let report = status(&room, &session.write(&room));
    assert_eq!(report["context"]["tokens"], 45_000);
    assert!(report["context"]["pendingTokens"].as_u64() > Some(70 + 800), "{report}");
}

#[test]
fn only_paid_requests_are_recorded() {
    let room = Room::new();
    let mut session = three_requests();
    session.answer("side", 90_000, 5, &json!({}));
    let side = session.lines.pop().expect("a line");
    session
        .lines
        .push(side.replace(r#""type":"assistant""#, r#""type":"assistant","isSidechain":true"#));
    session.answer("made-up", 90_000, 5, &json!({"/message/model": "<synthetic>"}));
    session.answer(
        "zero",
        0,
        0,
        &json!({"/message/usage": {"input_tokens": 0, "output_tokens": 0}}),
    );
    session.answer("absurd", 0, 0, &json!({"/message/usage": {"input_tokens": u64::MAX}}));
    let report = room.json(&["replay", &session.write(&room)]);
    assert_eq!(report["totals"]["recordedTokens"], 41_000 + 43_000 + 45_000);
    assert_eq!(report["recorded"]["requests"], 3);
    assert_eq!(report["recorded"]["cachedTokens"], 126_000);
    let recorded: Vec<_> = report["requests"].as_array().expect("a list").iter().collect();
    assert_eq!(recorded[1]["recordedTokens"], 43_000);
    assert_eq!(recorded[3]["recordedTokens"], Value::Null);
    // 3 x (400 x 5 + 600 x 6.25 + 70 x 25) + 126,000 x 0.5, in USD per million tokens.
    let cost = (3.0 * (2_000.0 + 3_750.0 + 1_750.0) + 63_000.0) / 1e6;
    assert!((report["totals"]["costRecordedUsd"].as_f64().expect("a price") - cost).abs() < 1e-9);
}

#[test]
fn answers_on_abandoned_branches_count_as_paid() {
    let room = Room::new();
    let mut lines = pi_lines(3);
    for (n, line) in lines.iter_mut().enumerate().skip(1) {
        let mut entry: Value = serde_json::from_str(line).expect("JSON");
        if entry["message"]["role"] == "assistant" {
            entry["message"]["usage"] =
                json!({"input": 1_000 * n, "output": 1, "cacheRead": 0, "cacheWrite": 0});
            *line = entry.to_string();
        }
    }
    let whole = room.json(&["replay", text(&room.write("a.jsonl", join(&lines)))]);
    // The last turn has the first answer as its parent: the second turn is abandoned.
    lines[9] = lines[9].replace(r#""parentId":"00000007""#, r#""parentId":"00000003""#);
    let branched = room.json(&["replay", text(&room.write("b.jsonl", join(&lines)))]);
    assert_eq!(branched["totals"]["requests"], 4);
    assert_eq!(branched["recorded"]["requests"], 6);
    assert_eq!(branched["totals"]["recordedTokens"], whole["totals"]["recordedTokens"]);
}

#[test]
fn usage_reported_before_a_compaction_is_not_the_headline() {
    let room = Room::new();
    let mut session = three_requests();
    session.compacted("manual", 45_100);
    let report = status(&room, &session.write(&room));
    let context = &report["context"];
    assert_eq!((&context["source"], &context["pendingTokens"]), (&json!("calibrated"), &json!(0)));
    let tokens = context["tokens"].as_u64().expect("a number");
    assert!((30_000..43_000).contains(&tokens), "{report}");
    let shown = room.ctx(&["status", text(&room.path("s.jsonl"))]).stdout;
    assert!(
        shown.contains("estimated, calibrated") && !shown.contains("reported by the provider,")
    );
}

#[test]
fn without_reported_usage_all_figures_are_labelled_as_estimates() {
    let room = Room::new();
    let mut session = Claude::default();
    for n in 0..3 {
        session.user("a question");
        let none = json!({"/message/usage": {"input_tokens": 0, "output_tokens": 0}});
        session.answer(&format!("m{n}"), 0, 0, &none);
    }
    for file in [session.write(&room), text(&room.write("pi.jsonl", join(&pi_lines(3)))).to_owned()]
    {
        let report = status(&room, &file);
        assert_eq!(report["context"]["source"], "estimated");
        assert_eq!((&report["calibration"], &report["reported"]), (&Value::Null, &Value::Null));
        assert_eq!(report["context"]["tokens"], report["context"]["countedTokens"]);
        assert!(room.ctx(&["status", &file]).stdout.contains("estimated"));
        let replay = room.json(&["replay", &file]);
        assert_eq!(replay["totals"]["recordedTokens"], Value::Null);
        assert_eq!(replay["totals"]["costRecordedUsd"], Value::Null);
        assert_eq!(replay["recorded"], Value::Null);
        let shown = room.ctx(&["replay", &file]).stdout;
        assert!(shown.contains("every figure is estimated") && shown.contains("full history"));
        assert!(!shown.contains("recorded"), "{shown}");
    }
}

#[test]
fn an_automatic_compaction_proves_the_window() {
    let room = Room::new();
    let window = |session: &Claude| {
        let report = status(&room, &session.write(&room));
        (report["window"].as_u64(), report["source"].as_str().map(str::to_owned))
    };
    let of = |window, source: &str| (Some(window), Some(source.to_owned()));
    let mut session = three_requests();
    assert_eq!(window(&session), of(1_000_000, "model"));
    session.compacted("manual", 150_000);
    assert_eq!(window(&session), of(1_000_000, "model"));
    session.compacted("auto", 167_471);
    session.answer("m9", 50_000, 9, &json!({}));
    assert_eq!(window(&session), of(200_000, "recordedCompaction"));
    let file = text(&room.path("s.jsonl")).to_owned();
    let shown = room.ctx(&["status", &file]).stdout;
    assert!(
        shown.contains("compacted by itself at 167,471; the catalogue says 1,000,000"),
        "{shown}"
    );
    assert_eq!(room.json(&["replay", &file])["window"], 200_000);
    // An explicit value takes precedence, and another model has another window.
    assert_eq!(room.json(&["status", &file, "-w", "500k"])["window"], 500_000);
    assert_eq!(room.json(&["status", &file, "-m", "claude-opus-4-7"])["window"], 1_000_000);
    session.answer("m10", 50_000, 9, &json!({"/message/model": "claude-opus-4-7"}));
    assert_eq!(window(&session), of(1_000_000, "model"));
}

#[test]
fn a_prompt_that_was_answered_proves_a_larger_window() {
    let room = Room::new();
    let model = |name: &str, prompt: u64| {
        let mut session = Claude::default();
        session.user("a question");
        session.answer("m1", 1_500, 9, &json!({"/message/model": name}));
        session.user("another question");
        session.answer("m2", prompt, 9, &json!({"/message/model": name}));
        session.write(&room)
    };
    let file = model("claude-opus-4-5-20251101", 250_000);
    let report = status(&room, &file);
    assert_eq!(
        (&report["window"], &report["answeredPrompt"]),
        (&json!(1_000_000), &json!(250_000))
    );
    assert_eq!(report["source"], "recordedRequest");
    let shown = room.ctx(&["status", &file]).stdout;
    assert!(
        shown.contains("a prompt of 250,000 was answered; the catalogue says 200,000"),
        "{shown}"
    );
    for prompt in [199_000, 10_000_001] {
        let report = status(&room, &model("claude-opus-4-5-20251101", prompt));
        assert_eq!((&report["window"], &report["source"]), (&json!(200_000), &json!("model")));
    }
}

#[test]
fn writing_to_the_one_hour_cache_costs_twice_the_price_of_fresh_tokens() {
    let room = Room::new();
    let cost = |hour: u64| {
        let mut session = three_requests();
        let usage = json!({"input_tokens": 400, "cache_creation_input_tokens": 60_000,
            "cache_read_input_tokens": 0, "output_tokens": 10,
            "cache_creation": {"ephemeral_1h_input_tokens": hour}});
        session.user("one more question");
        session.answer("m9", 60_400, 10, &json!({"/message/usage": usage}));
        let report = room.json(&["replay", &session.write(&room)]);
        ["costRecordedUsd", "costWithUsd"]
            .map(|key| report["totals"][key].as_f64().expect("a price"))
    };
    let ([usual, with], [dear, dear_with]) = (cost(0), cost(60_000));
    assert!((dear - usual - 60_000.0 * (2.0 * 5.0 - 6.25) / 1e6).abs() < 1e-9, "{usual}, {dear}");
    assert!(dear_with > with * 1.3, "simulated requests pay for an hour too: {dear_with}");
}

#[test]
fn prices_do_not_depend_on_the_profile() {
    let room = Room::new();
    let mut session = Claude::default();
    session.user("a question");
    let model = "claude-opus-4-5-20251101";
    session.answer("m1", 41_000, 1_000, &json!({"/message/model": model}));
    let file = session.write(&room);
    let costs = |args: &[&str]| {
        let report = room.json(&[&["replay", file.as_str()], args].concat());
        ["costRecordedUsd", "costWithUsd"]
            .map(|key| report["totals"][key].as_f64().expect("a price"))
    };
    let today = costs(&[]);
    let expected = (400.0 * 5.0 + 600.0 * 6.25 + 40_000.0 * 0.5 + 1_000.0 * 25.0) / 1e6;
    assert!((today[0] - expected).abs() < 1e-9);
    for profile in ["ponybunny", "pi", "copaw"] {
        assert_eq!(costs(&["-p", profile])[0], today[0], "{profile}");
    }
    assert!((costs(&["-p", "ponybunny"])[1] - today[1]).abs() < 0.02);
    // The price list of the seed: 15 and 75 USD per million tokens, cached or not.
    room.write("ctx.json5", r#"{models: {vintage: "seed"}}"#);
    assert!((costs(&[])[0] - (41_000.0 * 15.0 + 1_000.0 * 75.0) / 1e6).abs() < 1e-9);
    room.write("ctx.json5", r#"{models: {vintage: "tomorrow"}}"#);
    assert!(room.ctx(&["replay", &file]).stderr.contains("vintage"));
}

#[test]
fn a_replay_that_costs_more_than_recorded_says_so() {
    let room = Room::new();
    let mut session = Claude::default();
    for n in 0..8_u64 {
        session.user(&"a question about the parser. ".repeat(200));
        session.answer(&format!("m{n}"), 43_000 + 1_500 * n, 10, &json!({}));
    }
    // The requests are an hour apart, but were served from the cache; a simulated cache expires.
    for (hour, line) in session.lines.iter_mut().enumerate() {
        *line = line.replace("2026-02-01T08:00", &format!("2026-02-01T{hour:02}:00"));
    }
    let shown = room.ctx(&["replay", &session.write(&room)]);
    assert!(shown.stdout.contains("more than what was recorded"), "{}", shown.stdout);
}

#[test]
fn the_first_arm_of_an_evaluation_is_the_recorded_one() {
    let room = Room::new();
    let file = three_requests().write(&room);
    let report = room.json(&["eval", &file, "--preset", "truncation", "--profile", "openclaw"]);
    let rows = report["rows"].as_array().expect("a list");
    let names: Vec<_> = rows.iter().map(|row| row["name"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["recorded", "nothing", "openclaw", "truncation"]);
    assert_eq!(rows[0]["sentTokens"], 129_000);
    let shown = room.ctx(&["eval", &file, "--preset", "truncation", "--profile", "openclaw"]);
    assert!(shown.stdout.contains("full history"), "{}", shown.stdout);
}

/// Returns the prompt tokens of every distinct answer, in order.
fn reported(path: &Path) -> Vec<u64> {
    let count = |usage: &Value, keys: &[&str]| {
        keys.iter().map(|key| usage[*key].as_u64().unwrap_or_default()).sum::<u64>()
    };
    let (mut order, mut by_id) = (Vec::new(), HashMap::new());
    for (n, line) in std::fs::read_to_string(path).expect("text").lines().enumerate() {
        for line in serde_json::Deserializer::from_str(line).into_iter::<Value>().flatten() {
            let (message, usage) = (&line["message"], &line["message"]["usage"]);
            if message["role"] != "assistant"
                || message["model"] == "<synthetic>"
                || line["isSidechain"] == true
            {
                continue;
            }
            let prompt = match usage["input_tokens"].is_u64() {
                true => count(
                    usage,
                    &["input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"],
                ),
                false => count(usage, &["input", "cacheRead", "cacheWrite"]),
            };
            let id = message["id"].as_str().map_or_else(|| n.to_string(), str::to_owned);
            if prompt > 0 && by_id.insert(id.clone(), prompt).is_none() {
                order.push(id);
            }
        }
    }
    order.iter().map(|id| by_id[id]).collect()
}

#[test]
fn recorded_sessions_are_measured_as_the_provider_measured_them() {
    let mut files: Vec<_> = data("pi/before-compaction.jsonl").into_iter().collect();
    if let Some(folder) = data("claude-code") {
        let listed = std::fs::read_dir(folder).expect("a folder");
        let paths = listed.map(|file| file.expect("an entry").path());
        files.extend(paths.filter(|path| path.extension().is_some_and(|e| e == "jsonl")));
    }
    let room = Room::new();
    for path in files {
        let (reported, name) = (reported(&path), path.display());
        let last = *reported.last().expect("a request") as f64;
        let context = &status(&room, text(&path))["context"];
        assert_eq!(context["source"], "provider", "{name}");
        let shown = context["tokens"].as_f64().expect("a number");
        assert!((shown / last - 1.0).abs() < 0.03, "{name}: {shown} of {last}");
        let totals = &room.json(&["replay", text(&path)])["totals"];
        let (sum, all) = (totals["recordedTokens"].as_f64(), reported.iter().sum::<u64>() as f64);
        assert!((sum.expect("a number") / all - 1.0).abs() < 0.05, "{name}: {sum:?} of {all}");
    }
}
