//! The sessions of other agents, in the home of a new user of ctx.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::support::{Room, text};

const CLAUDE: &str = "11111111-aaaa-4000-8000-000000000001";
const CODEX: &str = "22222222-bbbb-4000-8000-000000000002";
const PI: &str = "33333333-cccc-4000-8000-000000000003";
const OPENCLAW: &str = "44444444-dddd-4000-8000-000000000004";

/// Returns the lines of a Claude Code session: each message has the previous one as its parent.
fn claude(id: &str, project: &Path, said: &[&str]) -> String {
    let lines = said.iter().enumerate().map(|(n, said)| {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let content = match role {
            "user" => json!(said),
            _ => json!([{ "type": "text", "text": said }]),
        };
        let mut message = json!({ "role": role, "content": content });
        if role == "assistant" {
            message["id"] = json!(format!("msg_{n}"));
            message["model"] = json!("claude-sonnet-4-5");
            message["usage"] = json!({ "input_tokens": 3, "cache_read_input_tokens": 21_000,
                "cache_creation_input_tokens": 500, "output_tokens": 7 });
        }
        let parent = n.checked_sub(1).map(|n| format!("{}-{n}", &id[..8]));
        json!({ "parentUuid": parent, "isSidechain": false, "cwd": project, "sessionId": id,
            "type": role, "message": message, "uuid": format!("{}-{n}", &id[..8]),
            "timestamp": format!("2026-01-05T08:00:{n:02}Z") })
        .to_string()
            + "\n"
    });
    lines.collect()
}

fn pi(id: &str, project: &Path, said: &[&str]) -> String {
    let at = "2026-01-05T08:00:00Z";
    let header =
        json!({ "type": "session", "version": 3, "id": id, "timestamp": at, "cwd": project });
    let lines = said.iter().enumerate().map(|(n, said)| {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let parent = n.checked_sub(1).map(|n| format!("{n:08x}"));
        json!({ "type": "message", "id": format!("{n:08x}"), "parentId": parent, "timestamp": at,
            "message": { "role": role, "content": [{ "type": "text", "text": said }] } })
        .to_string()
            + "\n"
    });
    std::iter::once(header.to_string() + "\n").chain(lines).collect()
}

fn codex(id: &str, project: &Path, said: &[&str]) -> String {
    let at = "2026-01-05T08:00:00Z";
    let meta = json!({ "timestamp": at, "type": "session_meta",
        "payload": { "id": id, "cwd": project, "source": "cli" } });
    let lines = said.iter().enumerate().map(|(n, said)| {
        let (role, kind) =
            if n % 2 == 0 { ("user", "input_text") } else { ("assistant", "output_text") };
        json!({ "timestamp": at, "type": "response_item", "payload": { "type": "message",
            "role": role, "content": [{ "type": kind, "text": said }] } })
        .to_string()
            + "\n"
    });
    std::iter::once(meta.to_string() + "\n").chain(lines).collect()
}

/// A home with one session of each of four agents, in three projects.
struct Machine {
    room: Room,
}

impl Machine {
    fn new() -> Self {
        let machine = Self { room: Room::new() };
        for project in ["shop", "secret", "lab"] {
            std::fs::create_dir_all(machine.project(project)).expect("a folder");
        }
        let (shop, secret, lab) =
            (machine.project("shop"), machine.project("secret"), machine.project("lab"));
        let talk = ["Which port does the staging database use?", "Staging listens on port 6543."];
        machine.write(".claude/projects/-w-shop", CLAUDE, &claude(CLAUDE, &shop, &talk), 1);
        let talk = [
            "what is the vault of the mint called?",
            "It is called Quillon, token=hunter2hunter2hunter2X9.",
        ];
        let rollout = format!("rollout-2026-01-05T08-00-00-{CODEX}");
        machine.write(".codex/sessions/2026/01/05", &rollout, &codex(CODEX, &secret, &talk), 2);
        let talk = ["我们用哪个消息队列？", "用 RabbitMQ，因为需要延迟队列。"];
        machine.write(".pi/agent/sessions/--w-lab--", &format!("x_{PI}"), &pi(PI, &lab, &talk), 3);
        let talk = ["how long is a lease of the lighthouse?", "A lease lasts ninety seconds."];
        machine.write(".openclaw/agents/main/sessions", OPENCLAW, &pi(OPENCLAW, &lab, &talk), 4);
        machine
    }

    fn project(&self, name: &str) -> PathBuf {
        self.room.path("").canonicalize().expect("a folder").join("w").join(name)
    }

    /// Writes a session that is `age` hours old.
    fn write(&self, folder: &str, name: &str, text: &str, age: u64) -> PathBuf {
        let path = self.room.write(&format!("{folder}/{name}.jsonl"), text);
        set_age(&path, age * 3_600);
        path
    }

    fn claude_file(&self) -> PathBuf {
        self.room.path(&format!(".claude/projects/-w-shop/{CLAUDE}.jsonl"))
    }

    fn start(&self) -> Client {
        self.start_with(&[])
    }

    fn start_with(&self, args: &[&str]) -> Client {
        let args: Vec<&str> = ["mcp"].iter().chain(args).copied().collect();
        let mut command = self.room.command(&args);
        command.env("CTX_HOME", self.room.path("ctx")).current_dir(self.project("shop"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut client = Client { child, stdin: Some(stdin), stdout, calls: 0 };
        let about = json!({ "name": "test", "version": "1" });
        client.ask(
            "initialize",
            &json!({ "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": about }),
        );
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        client
    }

    fn ctx(&self, args: &[&str]) -> Value {
        let args: Vec<&str> = args.iter().copied().chain(["--json"]).collect();
        let mut command = self.room.command(&args);
        command.env("CTX_HOME", self.room.path("ctx"));
        let ran = crate::support::Ran::of(&mut command);
        assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
        serde_json::from_str(&ran.stdout).expect("JSON")
    }

    fn archive(&self) -> String {
        let path = self.room.path("ctx/agents/main/memory/context/segments.jsonl");
        std::fs::read_to_string(path).unwrap_or_default()
    }
}

fn set_age(path: &Path, seconds: u64) {
    let at = SystemTime::now() - Duration::from_secs(seconds);
    File::options().write(true).open(path).and_then(|file| file.set_modified(at)).expect("a time");
}

/// A client that waits for each answer.
struct Client {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    calls: u64,
}

impl Client {
    fn send(&mut self, message: &Value) {
        let stdin = self.stdin.as_mut().expect("it is open");
        writeln!(stdin, "{message}").expect("the binary reads");
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.calls += 1;
        let id = self.calls;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let mut line = String::new();
        self.stdout.read_line(&mut line).expect("an answer");
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(answer["id"], id, "{answer}");
        answer["result"].clone()
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> Value {
        self.ask("tools/call", &json!({ "name": tool, "arguments": arguments }))
    }

    /// Returns the text of a successful answer.
    fn says(&mut self, tool: &str, arguments: &Value) -> String {
        let result = self.call(tool, arguments);
        assert_eq!(result["isError"], false, "{tool}: {result}");
        result["content"][0]["text"].as_str().expect("text").to_owned()
    }

    /// Polls until this number of sessions is found and archived. Returns the progress report.
    fn archived(&mut self, sessions: u64) -> Value {
        loop {
            let found = self.call("search_sessions", &json!({ "query": "anything at all" }));
            let archive = &found["structuredContent"]["archive"];
            if archive["pending"] == 0 && archive["sessions"] == sessions {
                return found;
            }
            let said = found["content"][0]["text"].as_str().expect("text");
            assert!(
                archive.is_null() || archive["pending"] == 0 || said.contains("not archived yet")
            );
            std::thread::yield_now();
        }
    }

    /// Ends it, and returns its standard error.
    fn end(mut self) -> String {
        drop(self.stdin.take());
        let mut said = String::new();
        let mut stderr = self.child.stderr.take().expect("a pipe");
        std::io::Read::read_to_string(&mut stderr, &mut said).expect("text");
        assert_eq!(self.child.wait().expect("it ends").code(), Some(0), "{said}");
        said
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn each_tool_answers_over_the_sessions_of_all_agents_without_any_setup() {
    let machine = Machine::new();
    let mut client = machine.start();
    client.archived(4);
    for (question, answer, session) in [
        ("which port does the staging database use?", "port 6543", CLAUDE),
        ("what is the vault of the mint called?", "Quillon", CODEX),
        ("我们用哪个消息队列？", "RabbitMQ", PI),
        ("how long is a lease of the lighthouse?", "ninety seconds", OPENCLAW),
    ] {
        let recalled = client.says("recall", &json!({ "query": question }));
        assert!(recalled.contains(answer), "{question}: {recalled}");
        assert!(recalled.contains(&format!("from session {session}: [e:")), "{recalled}");
        assert!(!recalled.contains("hunter2"), "{recalled}");
        // `expand` opens the results of recall and search: by id, and by a prefix of it.
        let found = client.call("search_sessions", &json!({ "query": question }));
        let hits = found["structuredContent"]["hits"].as_array().expect("hits");
        let hit = hits.iter().find(|hit| hit["session"] == session).expect("a hit of it");
        for session in [session, &session[..6]] {
            let cited = json!({ "entry": hit["entry"], "session": session });
            let opened = client.says("expand", &cited);
            assert!(opened.contains(hit["text"].as_str().expect("text")), "{opened}");
            let only = json!({ "query": question, "session": session });
            assert!(client.says("recall", &only).contains(answer), "{only}");
            let found = client.call("search_sessions", &only);
            let hits = found["structuredContent"]["hits"].as_array().expect("hits");
            assert!(hits.iter().all(|hit| hit["session"] == hits[0]["session"]), "{found}");
            let status = client.says("context_status", &json!({ "session": session }));
            assert!(status.contains("messages: 2"), "{status}");
        }
    }
    // The newest session of the folder.
    let status = client.says("context_status", &json!({}));
    assert!(status.contains(CLAUDE), "{status}");
    assert!(client.says("expand", &json!({ "entry": "11111111-1" })).contains("port 6543"));
    client.says("remember", &json!({ "text": "the ferry leaves at noon" }));
    assert!(
        client.says("recall", &json!({ "query": "when does the ferry leave?" })).contains("noon")
    );
    let told = client.call("expand", &json!({ "entry": "x", "session": "99999999" }));
    assert_eq!(told["structuredContent"]["error"]["kind"], "notFound", "{told}");
    assert!(told.to_string().contains(CLAUDE), "the newest sessions are listed: {told}");
    let said = client.end();
    assert!(said.contains("archiveSessions") && said.lines().count() == 1, "{said}");
    assert!(!machine.archive().contains("hunter2"));
}

#[test]
fn the_first_recall_waits_for_the_newest_session_of_the_folder() {
    let machine = Machine::new();
    let mut client = machine.start();
    let asked = std::time::Instant::now();
    let recalled =
        client.says("recall", &json!({ "query": "which port does the staging database use?" }));
    // On a very slow machine, recall answers without that session 1.5 s after the start.
    let is_slow = asked.elapsed() >= Duration::from_secs(1);
    assert!(recalled.contains("port 6543") || is_slow, "{recalled}");
}

#[test]
fn after_a_restart_only_new_messages_are_archived() {
    let machine = Machine::new();
    machine.start().archived(4);
    let before = machine.archive();
    assert_eq!(before.lines().count(), 8);
    let mut client = machine.start();
    client.archived(4);
    assert_eq!(machine.archive(), before);
    // An incomplete line is read once it is complete.
    let whole = claude(
        CLAUDE,
        &machine.project("shop"),
        &[
            "Which port does the staging database use?",
            "Staging listens on port 6543.",
            "and production?",
            "Production listens on port 7654.",
        ],
    );
    let torn = &whole[..whole.len() - 40];
    std::fs::write(machine.claude_file(), torn).expect("written");
    set_age(&machine.claude_file(), 1_800);
    let has = |words: &str| machine.archive().contains(words);
    while !has("and production?") {
        client.archived(4);
    }
    assert!(!has("port 7654"));
    std::fs::write(machine.claude_file(), &whole).expect("written");
    set_age(&machine.claude_file(), 900);
    while !has("port 7654") {
        client.archived(4);
    }
    let said = client.end();
    assert_eq!(said, "", "only the first start prints the note");
    assert_eq!(machine.archive().lines().count(), 10);
}

#[test]
fn a_server_killed_at_any_time_loses_and_duplicates_nothing() {
    let machine = Machine::new();
    let talk: Vec<String> =
        (0..600).map(|n| format!("message number {n} of a long talk")).collect();
    let talk: Vec<&str> = talk.iter().map(String::as_str).collect();
    let lab = machine.project("lab");
    for n in 5..9 {
        let id = format!("{n}5555555-eeee");
        machine.write(".pi/agent/sessions/--w-lab--", &id, &pi(&id, &lab, &talk), n);
    }
    for calls in 0..6 {
        let mut client = machine.start();
        (0..calls).for_each(|_| drop(client.call("search_sessions", &json!({ "query": "talk" }))));
        let _ = client.child.kill();
    }
    machine.start().archived(8);
    let archive = machine.archive();
    let mut ids: Vec<_> = archive
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["id"].clone().to_string())
        .collect();
    assert_eq!(ids.len(), 8 + 4 * 600);
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 8 + 4 * 600);
}

#[test]
fn excluded_and_forgotten_sessions_are_not_archived_and_unreadable_ones_reported() {
    let machine = Machine::new();
    let config = json!({ "agents": { "defaults": { "memoryContext": {
        "excludeProjects": [machine.project("secret")] } } } });
    machine.room.write("ctx/ctx.json5", config.to_string());
    let broken = machine.write(".claude/projects/-w-shop", "55555555", "{\"type\":\"user\"}\n", 1);
    let mut client = machine.start();
    let found = client.archived(3);
    assert!(!machine.archive().contains("Quillon"));
    drop(client);
    std::fs::remove_file(broken).expect("removed");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let closed = machine.write(".claude/projects/-w-shop", "66666666", "{}\n", 1);
        std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o0)).expect("rights");
        if File::open(&closed).is_err() {
            let found = machine.start().archived(4);
            assert_eq!(found["structuredContent"]["archive"]["unreadable"], 1, "{found}");
            assert!(found.to_string().contains("1 of 4 sessions cannot be read"), "{found}");
        }
        std::fs::remove_file(closed).expect("removed");
    }
    drop(found);
    // `forget` first shows the messages that it would erase.
    let lab = machine.project("lab");
    let forget = ["memory", "forget", "--project", text(&lab)];
    let would = machine.ctx(&[&forget[..], &["--dry-run"]].concat());
    assert_eq!((&would["segments"], &would["sessions"]), (&json!(4), &json!([PI, OPENCLAW])));
    assert!(machine.archive().contains("RabbitMQ"));
    let gone = machine.ctx(&[&forget[..], &["--yes"]].concat());
    assert_eq!((&gone["segments"], &gone["dryRun"]), (&json!(4), &json!(false)));
    assert!(!machine.archive().contains("RabbitMQ") && machine.archive().contains("6543"));
    // After a restart, neither these sessions nor new ones of the project are archived.
    let more = ["a new talk about the RabbitMQ of the lab", "noted"];
    let id = "77777777-ffff";
    machine.write(".pi/agent/sessions/--w-lab--", id, &pi(id, &lab.join("deep"), &more), 1);
    let mut client = machine.start();
    client.archived(1);
    assert!(!machine.archive().contains("RabbitMQ"));
    let found = client.call("search_sessions", &json!({ "query": "RabbitMQ" }));
    assert_eq!(found["structuredContent"]["hits"], json!([]), "{found}");
}

/// Returns the ids in the addresses of a page of `resources/list`.
fn ids(page: &Value) -> Vec<&str> {
    let resources = page["resources"].as_array().expect("a list");
    let uris = resources.iter().map(|resource| resource["uri"].as_str().expect("an address"));
    uris.map(|uri| uri.strip_prefix("ctx://session/").expect("a session")).collect()
}

#[test]
fn sessions_of_all_agents_are_resources_without_secrets_and_the_folders_come_first() {
    let machine = Machine::new();
    let old = "88888888-gggg";
    let talk = ["and where is the shop?", "By the harbour."];
    let shop = machine.project("shop");
    machine.write(".pi/agent/sessions/--w-shop--", old, &pi(old, &shop, &talk), 9);
    // The list does not depend on the archive.
    let mut client = machine.start_with(&["--read-only"]);
    let listed = client.ask("resources/list", &json!({}));
    assert_eq!(ids(&listed), [CLAUDE, old, CODEX, PI, OPENCLAW]);
    assert_eq!(listed["nextCursor"], Value::Null);
    let first = &listed["resources"][0];
    let size = machine.claude_file().metadata().expect("it is there").len();
    assert_eq!((&first["name"], &first["size"]), (&json!(CLAUDE), &json!(size)));
    let description = format!("session of claude-code in {}", shop.display());
    assert_eq!(first["description"], description);
    assert!(first["annotations"]["lastModified"].is_string(), "{first}");
    let mut read = |uri: &str| {
        let contents = client.ask("resources/read", &json!({ "uri": uri }));
        contents["contents"][0]["text"].as_str().expect("text").to_owned()
    };
    for (resource, said) in listed["resources"].as_array().expect("a list").iter().zip([
        "Staging listens on port 6543.",
        "By the harbour.",
        "It is called Quillon, token=[redacted:",
        "因为需要延迟队列",
        "A lease lasts ninety seconds.",
    ]) {
        let text = read(resource["uri"].as_str().expect("an address"));
        assert!(text.contains(said) && !text.contains("hunter2"), "{text}");
        assert_eq!(text.matches("[e:").count(), 2, "{text}");
    }
    let rest = read(&format!("ctx://session/{CLAUDE}/1"));
    assert!(rest.starts_with("assistant [e:11111111-1]") && !rest.contains("Which"), "{rest}");
}

#[test]
fn excluded_and_forgotten_projects_are_not_listed_as_resources() {
    let machine = Machine::new();
    let config = json!({ "agents": { "defaults": { "memoryContext": {
        "excludeProjects": [machine.project("secret")] } } } });
    machine.room.write("ctx/ctx.json5", config.to_string());
    machine.start().archived(3);
    let lab = machine.project("lab");
    machine.ctx(&["memory", "forget", "--project", text(&lab), "--yes"]);
    for args in [&[][..], &["--read-only"]] {
        let listed = machine.start_with(args).ask("resources/list", &json!({}));
        assert_eq!(ids(&listed), [CLAUDE], "{args:?}");
    }
}

#[test]
fn a_long_list_of_resources_comes_page_by_page_and_each_session_once() {
    let machine = Machine::new();
    let lab = machine.project("lab");
    let more: Vec<_> = (0..120).map(|n| format!("99999999-{n:03}")).collect();
    for (id, age) in more.iter().zip(5..) {
        machine.write(".pi/agent/sessions/--w-lab--", id, &pi(id, &lab, &["a", "b"]), age);
    }
    // A second file of a session.
    machine.write(".pi/agent/sessions/--w-lab--", "copy", &pi(&more[7], &lab, &["a", "b"]), 200);
    let mut client = machine.start_with(&["--read-only"]);
    let first = client.ask("resources/list", &json!({}));
    assert_eq!(first["nextCursor"], "100");
    let second = client.ask("resources/list", &json!({ "cursor": first["nextCursor"] }));
    assert_eq!(second["nextCursor"], Value::Null);
    let all: Vec<_> = ids(&first).into_iter().chain(ids(&second)).collect();
    let newest = [CLAUDE, CODEX, PI, OPENCLAW].into_iter();
    assert_eq!(all, newest.chain(more.iter().map(String::as_str)).collect::<Vec<_>>());
}

#[test]
fn archiving_can_be_disabled_and_deleted_files_are_read_from_the_archive() {
    let machine = Machine::new();
    machine.start().archived(4);
    std::fs::remove_file(machine.claude_file()).expect("removed");
    let off =
        json!({ "agents": { "defaults": { "memoryContext": { "archiveSessions": false } } } });
    machine.room.write("ctx/ctx.json5", off.to_string());
    let before = machine.archive();
    for args in [&[][..], &["--read-only"]] {
        let mut client = machine.start_with(args);
        let found = client.call("search_sessions", &json!({ "query": "staging database" }));
        assert_eq!(found["structuredContent"]["archive"], Value::Null);
        let hit = &found["structuredContent"]["hits"][0];
        assert_eq!(hit["session"], CLAUDE, "{found}");
        let cited = json!({ "entry": hit["entry"], "session": &CLAUDE[..8] });
        assert!(client.says("expand", &cited).contains("staging database"));
        assert_eq!(client.end(), "");
        machine.room.write("ctx/ctx.json5", "{}");
    }
    assert_eq!(machine.archive(), before);
}
