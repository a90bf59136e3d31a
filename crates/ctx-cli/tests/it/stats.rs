//! `ctx stats`: measured from the records of `ctx serve`, simulated from sessions.

use serde_json::{Value, json};

#[cfg(unix)]
use crate::serve::{CHAT, Served, provider};
use crate::support::Room;

/// A session of Claude Code.
const SESSION: &str = include_str!("../../../../examples/claude-code.jsonl");

fn stats(room: &Room, args: &[&str]) -> (Value, String) {
    let ran = room.ctx(&[&["stats", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    (serde_json::from_str(&ran.stdout).expect("one object"), ran.stderr)
}

/// Sends a history that is too long for the window through `ctx serve`.
#[cfg(unix)]
fn serve_a_long_history(room: &Room) {
    let provider = provider([]);
    let place = "You write stories.\nWorking directory: /home/me/stories\n";
    let mut messages = vec![json!({ "role": "system", "content": place })];
    for n in 0..40 {
        let text = format!("Line {n} of a long story. ").repeat(120);
        messages.push(json!({ "role": "user", "content": format!("Tell me part {n}.") }));
        messages.push(json!({ "role": "assistant", "content": text }));
    }
    messages.push(json!({ "role": "user", "content": "And the end?" }));
    let body = json!({ "model": "gpt-5", "messages": messages }).to_string();
    room.write("ctx.json5", "{ server: { summaries: 'extractive' } }");
    let served = Served::start(room, &["--upstream", &provider.v1(), "--window", "16k"], &[]);
    assert!(served.ask(CHAT, &body).contains("hello"));
    let api = served.ask("GET /api/stats", "");
    assert!(api.contains("\"origin\":\"measured\"") && api.contains("\"requests\":1"), "{api}");
    let status = |project| served.ask(&format!("GET /api/status?project={project}"), "");
    let line = status("%2Fhome%2Fme%2Fstories");
    assert!(line.contains(" of 16k · saved $"), "{line}");
    let elsewhere = status("%2Felsewhere");
    assert!(
        elsewhere.contains("\"line\":null") && elsewhere.contains("\"requests\":0"),
        "{elsewhere}"
    );
    served.signal("-TERM");
    assert!(served.end().0.success());
}

#[cfg(unix)]
#[test]
fn what_the_proxy_saved_is_measured_from_its_records() {
    let room = Room::new();
    serve_a_long_history(&room);
    let (report, _) = stats(&room, &[]);
    let total = &report["totals"][0];
    assert_eq!((&total["origin"], &total["requests"]), (&json!("measured"), &json!(1)), "{report}");
    let number = |name: &str| total[name].as_i64().expect("a number");
    assert_eq!(number("tokensSaved"), number("tokensBefore") - number("tokensAfter"));
    assert!(number("tokensSaved") > 10_000 && number("tokensAfter") < 12_600, "{total}");
    assert_eq!((number("overflowsAvoided"), number("compactions")), (1, 1), "{total}");
    assert!(total["factsKept"].as_f64() > Some(0.0), "{total}");
    assert!(total["savedUsd"].as_f64() > Some(0.0), "{total}");
    assert_eq!((&report["replayedSessions"], &report["damagedRecords"]), (&json!(0), &json!(0)));
    let key = |by: &str| stats(&room, &["--by", by]).0["rows"][0]["key"].clone();
    assert_eq!(
        [key("client"), key("project"), key("model")],
        [json!("a-client"), json!("/home/me/stories"), json!("gpt-5")]
    );
    let (report, said) = stats(&room, &["--since", "2099-01-01"]);
    assert_eq!(report["totals"], json!([]));
    assert!(said.contains("no requests since 2099-01-01"), "{said}");
}

#[cfg(unix)]
#[test]
fn the_status_line_of_claude_code_has_what_its_proxy_saved() {
    let room = Room::new();
    serve_a_long_history(&room);
    let served =
        Served::start(&room, &["--upstream", "http://127.0.0.1:9", "--window", "16k"], &[]);
    let url = format!("http://{}", served.address);
    let line = |folder: &str, url: &str| {
        let session = json!({ "workspace": { "project_dir": folder } });
        crate::hooks::ran(&room, &["statusline"], &session, url).stdout
    };
    let saved = line("/home/me/stories", &url);
    assert!(saved.contains(" of 16k · saved $0."), "{saved}");
    assert_eq!(line("/home/me/poems", &url), "\n");
    assert_eq!(line("/home/me/stories", "https://api.anthropic.com"), "\n", "it passes no proxy");
    served.signal("-TERM");
    assert!(served.end().0.success());
}

#[cfg(unix)]
#[test]
fn damaged_records_are_named_and_the_others_counted() {
    let room = Room::new();
    serve_a_long_history(&room);
    room.write("proxy/traces/a-0.jsonl", "{\"record\":{\"session\":");
    let (report, said) = stats(&room, &[]);
    assert_eq!(
        (&report["damagedRecords"], &report["totals"][0]["requests"]),
        (&json!(1), &json!(1))
    );
    assert!(said.contains("1 record skipped"), "{said}");
    let page = room.path("stats.html");
    for _ in 0..2 {
        let ran = room.ctx(&["stats", "--html", &page.display().to_string()]);
        assert_eq!(ran.code, Some(0), "an earlier page is replaced: {}", ran.stderr);
        assert!(ran.stdout.starts_with("measured: ") && ran.stdout.contains("saved in 1 request"));
    }
    let page = std::fs::read_to_string(page).expect("a page");
    assert!(page.contains("<title>ctx stats</title>") && page.contains("\"origin\":\"measured\""));
}

#[test]
fn sessions_are_replayed_if_the_proxy_has_no_records() {
    let room = Room::new();
    let (report, said) = stats(&room, &[]);
    assert_eq!((&report["rows"], &report["totals"]), (&json!([]), &json!([])));
    assert!(said.contains("no records of `ctx serve` yet") && said.contains("run"), "{said}");
    for name in ["a", "b", "c"] {
        room.write(&format!(".claude/projects/-w/{name}.jsonl"), SESSION);
    }
    let (report, _) = stats(&room, &["--last", "2", "--by", "client"]);
    assert_eq!(report["replayedSessions"], json!(2), "{report}");
    let [row] = report["rows"].as_array().expect("rows").as_slice() else { panic!("{report}") };
    assert_eq!((&row["origin"], &row["key"]), (&json!("simulated"), &json!("claude-code")));
    assert!(row["requests"].as_u64() > Some(0) && row["recoveries"].is_null(), "{row}");
    let ran = room.ctx(&["stats", "--by", "project"]);
    assert!(ran.stdout.starts_with("simulated: "), "{}", ran.stdout);
    let ran = room.ctx(&["stats", "--since", "soon"]);
    assert!(ran.code == Some(2) && ran.stderr.contains("7d"), "{}", ran.stderr);
}
