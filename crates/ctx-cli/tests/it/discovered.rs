//! Sessions of other agents: listed, and named by a folder, an id, or nothing.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::{Ran, Room, text};

/// Agents' homes in one folder, with a project that two of them worked in.
struct Agents {
    room: Room,
}

impl Agents {
    fn new() -> Self {
        let this = Self { room: Room::new() };
        std::fs::create_dir_all(this.project("shop/src")).expect("a folder");
        std::fs::create_dir_all(this.project("mail")).expect("a folder");
        this.claude("aaaa-1", "shop", 40_000, 50);
        this.claude("aaaa-2", "mail", 50_000, 40);
        this.codex("bbbb-1", "mail", 30);
        this.pi("cccc-1", "shop", 20);
        this
    }

    fn project(&self, name: &str) -> PathBuf {
        self.room.path("work").join(name)
    }

    /// Writes a session that was used this number of hours ago.
    fn write(&self, path: &str, lines: &[Value], hours: u64) -> PathBuf {
        let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
        let path = self.room.write(path, lines.join("\n") + "\n");
        let at = SystemTime::now() - Duration::from_secs(hours * 3_600);
        let file = std::fs::File::options().write(true).open(&path).expect("a file");
        file.set_modified(at).expect("a time");
        path
    }

    fn claude(&self, id: &str, project: &str, tokens: u64, hours: u64) -> PathBuf {
        let line = |kind: &str, uuid: &str, message: Value| {
            json!({ "parentUuid": null, "isSidechain": false, "cwd": self.project(project),
                "sessionId": id, "type": kind, "message": message, "uuid": uuid,
                "timestamp": "2026-01-05T08:00:00Z" })
        };
        let usage = json!({ "input_tokens": 10, "cache_read_input_tokens": tokens - 10,
            "output_tokens": 5 });
        let answer = json!({ "role": "assistant", "id": "m1", "model": "claude-sonnet-4-5",
            "content": [{ "type": "text", "text": "it is the lease" }], "usage": usage });
        let lines = [
            line("user", "u1", json!({ "role": "user", "content": "what is wrong?" })),
            line("assistant", "u2", answer),
        ];
        self.write(&format!(".claude/projects/-work-{project}/{id}.jsonl"), &lines, hours)
    }

    fn codex(&self, id: &str, project: &str, hours: u64) -> PathBuf {
        let line = |kind: &str, payload: Value| json!({ "timestamp": "2026-01-05T08:00:00Z", "type": kind, "payload": payload });
        let said = |role: &str, kind: &str, text: &str| {
            let content = json!([{ "type": kind, "text": text }]);
            line("response_item", json!({ "type": "message", "role": role, "content": content }))
        };
        let info = json!({ "last_token_usage": { "input_tokens": 5_000, "output_tokens": 5 },
            "model_context_window": 20_000 });
        let lines = [
            line("session_meta", json!({ "id": id, "cwd": self.project(project) })),
            said("user", "input_text", "send it"),
            said("assistant", "output_text", "sent"),
            line("event_msg", json!({ "type": "token_count", "info": info })),
        ];
        self.write(&format!(".codex/sessions/2026/01/05/rollout-x-{id}.jsonl"), &lines, hours)
    }

    fn pi(&self, id: &str, project: &str, hours: u64) -> PathBuf {
        let lines = [
            json!({ "type": "session", "version": 3, "id": id, "cwd": self.project(project) }),
            json!({ "type": "message", "id": "1", "parentId": null, "message":
                { "role": "user", "content": [{ "type": "text", "text": "hello" }] } }),
            json!({ "type": "message", "id": "2", "parentId": "1", "message":
                { "role": "assistant", "content": [{ "type": "text", "text": "hello" }] } }),
        ];
        self.write(&format!(".pi/agent/sessions/--work-{project}--/x_{id}.jsonl"), &lines, hours)
    }

    fn json(&self, args: &[&str]) -> Value {
        self.room.json(args)
    }

    /// Runs ctx in a folder of a project.
    fn ran_in(&self, project: &str, args: &[&str]) -> Ran {
        Ran::of(self.room.command(args).current_dir(self.project(project)))
    }

    fn ids(&self, args: &[&str]) -> Vec<String> {
        let listed = self.json(&[&["sessions"], args].concat());
        let id = |session: &Value| session["sessionId"].as_str().expect("an id").to_owned();
        listed.as_array().expect("a list").iter().map(id).collect()
    }
}

#[test]
fn sessions_of_all_agents_are_listed_newest_first() {
    let agents = Agents::new();
    let store = r#"{"agent:main:main":{"sessionId":"s1","updatedAt":1,"compactionCount":2}}"#;
    agents.room.write("agents/main/sessions/sessions.json", store);
    let listed = agents.json(&["sessions"]);
    let told: Vec<_> = listed
        .as_array()
        .expect("a list")
        .iter()
        .map(|session| {
            let text = |key: &str| session[key].as_str().unwrap_or_default().to_owned();
            let path = Path::new(&text("path")).exists();
            (
                text("agent"),
                text("sessionId"),
                text("project"),
                path,
                session["contextTokens"].clone(),
            )
        })
        .collect();
    let row = |agent: &str, id: &str, project: &str, tokens: Value| {
        let project = text(&agents.project(project)).to_owned();
        (agent.to_owned(), id.to_owned(), project, true, tokens)
    };
    let ours = ("ctx".to_owned(), "s1".to_owned(), String::new(), false, Value::Null);
    assert_eq!(
        told,
        [
            row("pi", "cccc-1", "shop", Value::Null),
            row("codex", "bbbb-1", "mail", json!(5_000)),
            row("claude-code", "aaaa-2", "mail", json!(50_000)),
            row("claude-code", "aaaa-1", "shop", json!(40_000)),
            ours,
        ]
    );
    assert_eq!(listed[1]["window"], 20_000);
    assert_eq!(listed[4]["sessionKey"], "agent:main:main");
    assert_eq!(listed[4]["compactionCount"], 2);
    let ran = agents.room.ctx(&["sessions"]);
    let rows: Vec<&str> = ran.stdout.lines().collect();
    assert!(rows[2].contains("5,000 (33 %)") && rows[2].contains("~/work/mail"), "{}", ran.stdout);
    assert!(rows[2].contains("30 h ago") && rows[2].ends_with("bbbb-1"), "{}", ran.stdout);
    assert!(rows[1].contains(" - "), "an unknown size is not guessed: {}", ran.stdout);
    assert!(rows[5].ends_with("agent:main:main"), "{}", ran.stdout);
    let paths = agents.room.ctx(&["sessions", "--paths"]).stdout;
    assert!(paths.contains("rollout-x-bbbb-1.jsonl"), "{paths}");
}

#[test]
fn the_list_is_narrowed_by_agent_project_and_number() {
    let agents = Agents::new();
    assert_eq!(agents.ids(&["--agent", "claude-code"]), ["aaaa-2", "aaaa-1"]);
    assert_eq!(agents.ids(&["--agent", "ctx"]), [""; 0]);
    assert_eq!(agents.ids(&["--agent", "main"]), [""; 0]);
    agents
        .room
        .refused(&["sessions", "--agent", "claude"], "known agents: ctx, claude-code, codex");
    assert_eq!(agents.ids(&["--limit", "2"]), ["cccc-1", "bbbb-1"]);
    let shop = agents.project("shop");
    assert_eq!(agents.ids(&["--project", text(&shop)]), ["cccc-1", "aaaa-1"]);
    assert_eq!(agents.ids(&["--project", text(&agents.project("shop/src"))]), [""; 0]);
    let here = agents.ran_in("mail", &["sessions", "--project", "--json"]);
    let here: Value = serde_json::from_str(&here.stdout).expect("JSON");
    assert_eq!(here.as_array().map(Vec::len), Some(2), "{here}");
}

#[test]
fn without_a_name_the_newest_session_of_the_current_folder_is_used() {
    let agents = Agents::new();
    for (folder, id) in [("shop", "cccc-1"), ("mail", "bbbb-1"), ("shop/src", "cccc-1")] {
        let ran = agents.ran_in(folder, &["status", "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        assert!(ran.stderr.contains(&format!("{id} of ")), "{}", ran.stderr);
        let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
        assert!(report["session"]["path"].as_str().expect("a path").contains(id), "{report}");
    }
    for command in [&["replay"][..], &["eval"], &["memory", "ingest"]] {
        let ran = agents.ran_in("mail", command);
        assert_eq!(ran.code, Some(0), "{command:?}: {}", ran.stderr);
        assert!(ran.stderr.contains("bbbb-1 of codex"), "{command:?}: {}", ran.stderr);
    }
    std::fs::create_dir_all(agents.project("empty")).expect("a folder");
    let ran = agents.ran_in("empty", &["status"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{}", ran.stderr);
    assert!(ran.stderr.contains("no session of the current folder"), "{}", ran.stderr);
    assert!(ran.stderr.contains("`ctx sessions`"), "{}", ran.stderr);
}

#[test]
fn a_session_is_found_by_its_id_or_a_prefix_from_any_folder() {
    let agents = Agents::new();
    for name in ["bbbb-1", "bbbb", "b"] {
        let report = agents.json(&["status", name]);
        assert!(report["session"]["path"].as_str().expect("a path").contains("bbbb-1"), "{report}");
    }
    for command in [&["check"][..], &["compactions"], &["assemble"], &["convert", "--to", "pi"]] {
        let ran = agents.room.ctx(&[command, &["cccc"]].concat());
        assert_eq!(ran.code, Some(0), "{command:?}: {}", ran.stderr);
    }
    agents.room.misused(&["status", "aaaa"], "aaaa-2, aaaa-1");
    agents.room.misused(&["compactions", "aaaa"], "aaaa-2, aaaa-1");
    agents.room.refused(&["status", "dddd"], "unknown session id");
    agents.room.refused(&["status", "dddd.jsonl"], "dddd.jsonl");
    // A file of that name takes precedence.
    let file = agents.project("mail").join("cccc");
    std::fs::copy(agents.claude("aaaa-3", "mail", 60_000, 1), file).expect("copied");
    let ran = agents.ran_in("mail", &["status", "cccc", "--json"]);
    assert!(ran.stdout.contains(r#""path": "cccc""#), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_folder_means_all_its_sessions_and_several_reports_are_an_array() {
    let agents = Agents::new();
    let folder = agents.room.path(".claude");
    let side = agents.claude("aaaa-4", "mail", 1_000, 1);
    std::fs::rename(&side, side.with_file_name("agent-4.jsonl")).expect("renamed");
    agents.room.write(".claude/notes.jsonl", "not JSON\n");
    let reports = agents.json(&["status", text(&folder)]);
    assert_eq!(reports.as_array().map(Vec::len), Some(2), "{reports}");
    let replays = agents.json(&["replay", text(&folder), "cccc-1"]);
    assert_eq!(replays.as_array().map(Vec::len), Some(3), "{replays}");
    let single = agents.json(&["replay", "aaaa-1"]);
    assert!(single["totals"].is_object(), "{single}");
    let report = agents.json(&["eval", text(&folder)]);
    assert_eq!(report["sessions"].as_array().map(Vec::len), Some(2));
    let archived = agents.json(&["memory", "ingest", text(&folder)]);
    assert_eq!(archived["sessions"].as_array().map(Vec::len), Some(2));
    let ran = agents.room.ctx(&["status", text(&folder)]);
    assert!(ran.stderr.contains("2 sessions in "), "{}", ran.stderr);
    // If one of several cannot be read, there is a warning.
    let ran = agents.room.ctx(&["status", "missing.jsonl", "cccc-1"]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("missing.jsonl") && ran.stdout.contains("cccc-1"),
        "{}",
        ran.stderr
    );
    agents.room.misused(&["replay", "aaaa-1", "cccc-1", "--html", "page.html"], "one session");
    let empty = agents.room.path("work/shop");
    agents.room.refused(&["status", text(&empty)], "no session of an agent in the folder");
    agents.room.refused(&["compactions", text(&folder)], "a folder is not a transcript");
}

#[test]
fn nothing_is_written_into_the_homes_of_agents() {
    let agents = Agents::new();
    let before = agents.room.files();
    agents.json(&["sessions"]);
    agents.json(&["status", "aaaa-1"]);
    agents.json(&["replay", "cccc-1"]);
    assert_eq!(agents.room.files(), before);
}

#[test]
fn sessions_in_the_database_of_opencode_are_read() {
    let agents = Agents::new();
    let project = text(&agents.project("shop")).to_owned();
    let database = agents.room.path(".local/share/opencode/opencode.db");
    std::fs::create_dir_all(database.parent().expect("a folder")).expect("a folder");
    let rows = include_str!("../../../ctx-session/tests/data/opencode-1.18.33.sql");
    let db = rusqlite::Connection::open(&database).expect("a database");
    let rows = rows.replace("/home/ada/shop", &project);
    db.execute_batch(&format!("PRAGMA journal_mode = WAL; BEGIN; {rows} COMMIT;")).expect("rows");
    let long: String = (0..400).map(|n| format!("request {n} took {} ms\n", n * 7 % 97)).collect();
    let longer = "UPDATE part SET data = json_set(data, '$.state.output', ?1)
        WHERE json_extract(data, '$.state.output') IS NOT NULL";
    db.execute(longer, [long]).expect("longer results");
    let newest = "UPDATE session SET time_updated = unixepoch() * 1000";
    db.execute(newest, []).expect("the newest session of its folder");
    let before = agents.room.files();
    let id = "ses_dfac11359ffeiUb100yKdyWQcQ";
    let session = &agents.json(&["sessions", "--agent", "opencode"])[0];
    assert_eq!((&session["sessionId"], &session["project"]), (&json!(id), &json!(project)));
    assert_eq!(session["contextTokens"], 11_860);
    let status = agents.json(&["status", "ses_dfac11"]);
    assert_eq!(status["context"]["tokens"], 11_860);
    // The sums of the tokens that opencode recorded for its messages.
    let replayed = agents.json(&["replay", id, "--window", "32000"]);
    assert_eq!(replayed["totals"]["recordedTokens"], 22_726 + 46_112);
    let ran = agents.ran_in("shop", &["eval", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains(&format!("{id} of opencode")), "{}", ran.stderr);
    let compacted = agents.json(&["compact", id, "--force", "--window", "16000"]);
    assert_eq!(compacted["compacted"], true, "{compacted}");
    assert_eq!(agents.json(&["compactions", id]).as_array().map(Vec::len), Some(2));
    let ran = agents.ran_in("shop", &["compact", id, "--undo"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(agents.json(&["memory", "ingest", id])["segments"].as_u64() > Some(0));
    let args = ["inspect", id, "--listen", "127.0.0.1:0", "--json"];
    let mut inspector = agents.room.command(&args);
    let mut inspector = inspector.stdout(Stdio::piped()).spawn().expect("the binary runs");
    let said = BufReader::new(inspector.stdout.take().expect("a pipe")).lines();
    let said: Vec<_> = said.map_while(Result::ok).take_while(|line| line != "}").collect();
    inspector.kill().and_then(|()| inspector.wait()).expect("it ends");
    assert!(said.iter().any(|line| line.contains("\"session\": \"file-")), "{said:?}");
    let after = agents.room.files();
    let of_opencode = |(path, _): &(&PathBuf, _)| path.starts_with(database.parent().expect("one"));
    assert!(before.iter().filter(of_opencode).eq(after.iter().filter(of_opencode)));
    db.close().expect("the database is idle");
    std::fs::write(&database, "noise ".repeat(100)).expect("a file");
    let ran = agents.room.ctx(&["sessions"]);
    assert!(ran.stdout.contains("aaaa-1") && ran.stderr.contains("opencode.db"), "{}", ran.stderr);
}
