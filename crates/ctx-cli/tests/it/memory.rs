//! `ctx memory` and `ctx recall`.

use serde_json::{Value, json};

use crate::support::{Room, join, pi_lines, text};

/// A fact that a session states once, long before it asks for it.
pub(crate) const FACT: &str = "by the way, the parrot of the lighthouse keeper is called Quillon";

/// Returns a message of a pi session, as a line.
pub(crate) fn said(n: usize, role: &str, words: &str) -> String {
    let parent = if n == 0 { "null".to_owned() } else { format!("\"{:08x}\"", n - 1) };
    let (hour, minute) = (8 + n / 60, n % 60);
    let minute = format!("2026-01-{:02}T{:02}:{minute:02}:00.000Z", 5 + hour / 24, hour % 24);
    let words = Value::from(words);
    format!(
        r#"{{"type":"message","id":"{n:08x}","parentId":{parent},"timestamp":"{minute}","message":{{"role":"{role}","content":[{{"type":"text","text":{words}}}]}}}}"#
    )
}

/// Returns a session with this number of messages, and the fact in the fifth one.
pub(crate) fn long_talk(messages: usize) -> String {
    let mut lines = vec![pi_lines(0).remove(0)];
    lines.extend((0..messages).map(|n| match (n, n % 2) {
        (4, _) => said(n, "user", &format!("one question before we go on: {FACT}. Noted?")),
        (_, 0) => said(n, "user", &format!("please look at module {n} and tell what it does")),
        (_, _) => {
            let words = format!("module {n} reads its input, checks it and writes it out again. ");
            said(n, "assistant", &words.repeat(8))
        }
    }));
    join(&lines)
}

/// Returns the end of that session, which asks for the fact. Only the archive has earlier messages.
pub(crate) fn asks_again() -> String {
    let question = "remind me, what is the parrot of the lighthouse keeper called?";
    let talk = long_talk(320);
    let lines: Vec<&str> = talk.lines().collect();
    let first = lines[301].replacen("\"0000012b\"", "null", 1);
    let mut asking = vec![lines[0].to_owned(), first];
    asking.extend(lines[302..].iter().map(|line| (*line).to_owned()));
    asking.push(said(320, "user", question));
    join(&asking)
}

pub(crate) fn room(config: &Value) -> Room {
    let room = Room::new();
    room.write("ctx.json5", config.to_string());
    room
}

/// Disables eviction by age, because the sessions of the tests are of last year.
pub(crate) fn keeps_old(memory: Value) -> Value {
    let mut memory = memory;
    memory["evictionDays"] = json!(0);
    json!({"agents": {"defaults": {"memoryContext": memory}}})
}

#[test]
fn transcripts_are_archived_once_searched_and_recalled() {
    let room = room(&keeps_old(json!({})));
    let file = room.write("talk/long.jsonl", long_talk(40));
    let file = text(&file);
    let done = room.json(&["memory", "ingest", file]);
    let session = &done["sessions"][0];
    assert_eq!((&session["messages"], &session["added"]), (&json!(40), &json!(40)), "{done}");
    assert_eq!((&session["session"], &done["segments"]), (&json!("s1"), &json!(40)));
    let again = room.json(&["memory", "ingest", file]);
    assert_eq!((&again["sessions"][0]["added"], &again["segments"]), (&json!(0), &json!(40)));

    let query = "what is the parrot of the lighthouse keeper called?";
    let found = room.json(&["memory", "search", query, "--explain", "--limit", "3"]);
    let best = &found["hits"][0];
    assert!(best["text"].as_str().is_some_and(|text| text.contains(FACT)), "{found}");
    assert_eq!((&best["entry"], &best["session"]), (&json!("00000004"), &json!("s1")));
    assert!(best["parts"]["bm25"].as_f64() > Some(0.0), "{best}");
    assert!(found["hits"].as_array().is_some_and(|hits| hits.len() <= 3));
    for session in ["s1", file] {
        let found = room.json(&["memory", "search", query, "--session", session]);
        assert_eq!(found["hits"][0]["entry"], "00000004", "{session}");
    }
    let other = room.write("talk/other.jsonl", join(&pi_lines(2)).replace("\"s1\"", "\"another\""));
    room.json(&["memory", "ingest", text(&other), "--agent", "ops"]);
    room.write(
        "agents/main/sessions/sessions.json",
        r#"{"agent:main:new":{"sessionId":"another"}}"#,
    );
    for named in ["another", "agent:main:new", text(&other)] {
        let other = room.json(&["memory", "search", query, "--session", named]);
        assert_eq!((&other["hits"], &other["session"]), (&json!([]), &json!("another")), "{named}");
    }
    let shown = room.ctx(&["memory", "search", query, "--explain"]).stdout;
    assert!(shown.contains("e:00000004") && shown.contains("BM25"), "{shown}");

    let recalled = room.json(&["recall", query, "--session", "s1", "--budget", "500"]);
    let block = recalled["block"].as_str().expect("a block");
    assert!(block.starts_with("<recalled-context") && block.contains(FACT), "{block}");
    assert!(recalled["tokens"].as_u64() <= Some(500), "{recalled}");
    let used: Vec<_> = recalled["passages"].as_array().expect("a list").iter().collect();
    assert!(used.iter().any(|p| p["entry"] == "00000004" && p["used"] == true), "{recalled}");
    let small = room.ctx(&["recall", query, "--session", "s1", "--budget", "1"]).stderr;
    assert!(
        small.contains("fits into 1 tokens")
            && !small.contains("no passage scores high enough; a search shows the nearest ones"),
        "{small}"
    );
    room.misused(&["memory", "search", query, "--limit", "0"], "--limit");
    let nothing = room.json(&["recall", "quantum chromodynamics", "--session", "s1"]);
    assert_eq!(nothing["block"], Value::Null, "{nothing}");
    let short = room.json(&["recall", "ok", "--session", "s1"]);
    assert_eq!((&short["block"], &short["passages"]), (&Value::Null, &json!([])));
    let elsewhere = room.json(&["recall", query, "--session", "another"]);
    assert_eq!(elsewhere["block"], Value::Null, "a session recalls only its own messages");
    let across = room.json(&["recall", query, "--all-sessions"]);
    assert!(across["block"].as_str().is_some_and(|block| block.contains(FACT)));
    room.misused(&["recall", query], "--session");

    for of in [&["recall", query][..], &["memory", "search", query], &["memory", "facts"]] {
        let mistyped = [of, &["--session", "s2"]].concat();
        room.refused(&mistyped, "unknown session");
    }
    let bad = room.write("bad.jsonl", "no transcript");
    let ran = room.ctx(&["memory", "search", query, "--session", text(&bad)]);
    assert!(ran.stderr.contains("bad.jsonl"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("unknown session"), "the reason is reported: {}", ran.stderr);
    room.write("agents/main/sessions/sessions.json", "{");
    room.refused(&["memory", "search", query, "--session", "agent:main:new"], "is damaged");

    let stats = room.json(&["memory", "stats"]);
    assert_eq!((&stats["segments"], &stats["sessions"]["s1"]), (&json!(40), &json!(40)));
    assert!(stats["storedPieces"].as_u64() >= Some(40), "{stats}");
    let rebuilt = room.json(&["memory", "rebuild"]);
    assert_eq!(rebuilt["storedPieces"], stats["storedPieces"]);
    let found = room.json(&["memory", "search", query]);
    assert_eq!(found["hits"][0]["entry"], "00000004");
}

#[test]
fn facts_are_extracted_listed_and_searched_and_agents_share_none() {
    let room = room(&keeps_old(json!({})));
    let lines = [
        pi_lines(0).remove(0),
        said(0, "user", "Let's use PostgreSQL instead of MySQL for the billing service."),
        said(1, "assistant", "Done."),
    ];
    let file = room.write("talk.jsonl", join(&lines));
    let done = room.json(&["memory", "ingest", text(&file), "--agent", "ops"]);
    assert!(done["facts"]["added"].as_u64() >= Some(1), "{done}");
    let known = room.json(&["memory", "facts", "--agent", "ops"]);
    let fact = &known["facts"][0];
    assert!(fact["content"].as_str().is_some_and(|text| text.contains("PostgreSQL")), "{known}");
    assert_eq!(fact["sourceEntryIds"], json!(["00000000"]));
    let asked = room.json(&["memory", "facts", "billing PostgreSQL", "--agent", "ops"]);
    assert!(asked["facts"][0]["score"].as_f64() > Some(0.0), "{asked}");
    assert_eq!(room.json(&["memory", "facts"])["facts"], json!([]));
    assert_eq!(room.json(&["memory", "stats"])["segments"], 0);
    assert!(!room.path("agents/main").exists(), "queries create no files");
    room.misused(&["memory", "stats", "--agent", "../x"], "../x");
    let again = room.json(&["memory", "ingest", text(&file), "--agent", "ops"]);
    assert_eq!(again["facts"]["added"], 0);
    let id = fact["id"].as_str().expect("an id");
    for asked in [id, &id[..8], fact["content"].as_str().expect("text")] {
        let why = room.json(&["why", text(&file), asked, "--agent", "ops"]);
        assert_eq!(why["facts"][0]["fact"], *fact, "{why}");
        let source = &why["facts"][0]["sources"][0];
        assert_eq!((&source["entry"], &source["place"]["line"]), (&json!("00000000"), &json!(2)));
    }
}

#[test]
fn unarchivable_input_is_refused_and_evictions_are_reported() {
    let room = Room::new();
    room.misused(&["memory", "ingest", "-"], "standard input");
    room.refused(&["memory", "ingest", "nowhere.jsonl"], "nowhere.jsonl");
    let bad = room.write("bad.jsonl", "no transcript");
    room.refused(&["memory", "ingest", text(&bad)], "bad.jsonl");
    // The sessions are of last year; the 90 days count from the time of archiving.
    let file = room.write("talk/long.jsonl", long_talk(8));
    let ran = room.ctx(&["memory", "ingest", text(&file)]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("evictionDays"), "{}", ran.stderr);
    assert_eq!(room.json(&["memory", "stats"])["segments"], 8);
    let small = self::room(&keeps_old(json!({"maxSegments": 4})));
    let file = small.write("talk/long.jsonl", long_talk(8));
    let ran = small.ctx(&["memory", "ingest", text(&file)]);
    assert!(
        ran.stderr.contains("4 messages skipped, as they are older than the archive keeps"),
        "{}",
        ran.stderr
    );
    let newer = small.write("talk/newer.jsonl", long_talk(12).replace("\"s1\"", "\"s2\""));
    let ran = small.ctx(&["memory", "ingest", text(&newer)]);
    assert!(ran.stderr.contains("4 segments evicted"), "{}", ran.stderr);
    assert!(!ran.stderr.contains("evictionDays"), "nothing is evicted by age: {}", ran.stderr);
    assert_eq!(small.json(&["memory", "stats"])["segments"], 4);
}

#[test]
fn a_large_archive_without_an_index_is_searched() {
    let room = room(&keeps_old(json!({})));
    let file = room.write("talk/long.jsonl", long_talk(4_200));
    room.json(&["memory", "ingest", text(&file)]);
    let query = "what is the parrot of the lighthouse keeper called?";
    let finds = |what: &str| {
        let found = room.json(&["memory", "search", query]);
        assert!(found["hits"].to_string().contains(FACT), "{what}: {found}");
    };
    let lost = || std::fs::remove_dir_all(room.path("agents/main/memory/context/lexical"));
    finds("as it was written");
    room.json(&["memory", "forget", "--matching", "nobody ever said this", "--yes"]);
    finds("nothing was forgotten");
    let gone = room.json(&["memory", "forget", "--entry", "00000009", "--yes"]);
    assert_eq!(gone["agents"][0]["segments"], 1, "{gone}");
    let stats = room.json(&["memory", "stats"]);
    assert!(stats["storedPieces"].as_u64() >= Some(4_199), "{stats}");
    finds("something was forgotten");
    lost().expect("it was there");
    finds("the index was deleted");
    lost().expect("it was rebuilt");
    let recalled = room.json(&["recall", query, "--session", "s1"]);
    assert!(recalled["block"].to_string().contains(FACT), "{recalled}");
}

#[test]
fn recall_finds_the_matching_part_of_a_long_message() {
    let room = room(&keeps_old(json!({})));
    let filler = |from: usize| -> String {
        (from..from + 900).map(|n| format!("line {n}: the build went on as usual\n")).collect()
    };
    let log = format!("{}note: {FACT}\n{}", filler(0), filler(900));
    let lines = [pi_lines(0).remove(0), said(0, "user", &log), said(1, "assistant", "I see.")];
    let file = room.write("talk.jsonl", join(&lines));
    room.json(&["memory", "ingest", text(&file)]);
    let question = "what is the parrot of the lighthouse keeper called?";
    let recalled = room.json(&["recall", question, "--session", "s1", "--budget", "1500"]);
    let block = recalled["block"].as_str().expect("a block");
    assert!(block.contains(FACT) && block.contains("line 0: "), "{block}");
    assert!(block.contains("line 899: ") && block.contains("[...]"), "{block}");
}
