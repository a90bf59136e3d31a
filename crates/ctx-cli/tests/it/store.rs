//! `ctx store`, on a real PostgreSQL.

use std::path::Path;

use ctx_testkit::postgres::PostgresServer;
#[cfg(unix)]
use ctx_testkit::provider::{FakeProvider, Moment, Request, Step};
#[cfg(unix)]
use serde_json::{Value, json};

#[cfg(unix)]
use crate::serve::{CHAT, Served};
use crate::support::{Ran, Room, text};

pub(crate) struct Store {
    pub(crate) server: PostgresServer,
    pub(crate) room: Room,
}

impl Store {
    /// A server with the schema and a role for the program.
    pub(crate) fn new() -> Option<Self> {
        let server = PostgresServer::start()?;
        let store = Self { server, room: Room::new() };
        let owner = store.server.url("postgres");
        let ran = store.run(&["store", "migrate", "--url", &owner]);
        assert!(ran.stdout.contains("created the schema"), "{}{}", ran.stdout, ran.stderr);
        store.server.sql("create role ctx login in role ctx_app");
        Some(store)
    }

    pub(crate) fn run(&self, args: &[&str]) -> Ran {
        self.run_in(&self.room, args)
    }

    /// Runs a command with the home of another room.
    pub(crate) fn run_in(&self, room: &Room, args: &[&str]) -> Ran {
        Ran::of(room.command(args).env("CTX_STORE_URL", self.server.url("ctx")))
    }

    pub(crate) fn ok(&self, args: &[&str]) -> String {
        let ran = self.run(args);
        assert_eq!(ran.code, Some(0), "{args:?}: {}{}", ran.stdout, ran.stderr);
        ran.stdout
    }
}

/// Returns the names and bytes of an agent's transcripts.
fn transcripts(home: &Path) -> Vec<(String, Vec<u8>)> {
    let folder = std::fs::read_dir(home.join("agents/demo/sessions")).expect("a folder");
    let mut all: Vec<_> = folder
        .map(|file| file.expect("a file").path())
        .filter(|path| path.extension().is_some_and(|end| end == "jsonl"))
        .map(|path| {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            (name, std::fs::read(path).expect("it is readable"))
        })
        .collect();
    all.sort();
    all
}

#[test]
fn the_store_is_checked_and_sessions_go_there_and_back_unchanged() {
    let Some(store) = Store::new() else { return };
    let checked = store.ok(&["store", "check", "--conformance"]);
    assert!(checked.contains("ok       a lease has one holder"), "{checked}");
    assert!(!checked.contains("VIOLATED") && checked.contains("can be used"), "{checked}");
    // Two sessions of this home, before it has a store.
    for (session, message) in [("one", "the port is 7431"), ("two", "\u{e4}\u{4e2d}")] {
        let ran = store.room.ctx(&["chat", "--demo", "-s", session, "-p", message]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let imported = store.ok(&["store", "import"]);
    assert!(imported.contains("imported 2 sessions"), "{imported}");
    let imported = store.ok(&["store", "import"]);
    assert!(imported.contains("imported 2 sessions") && imported.contains(", 0 of"), "{imported}");
    let (copy, home) = (store.room.path("copy"), store.room.path(""));
    for _ in 0..2 {
        let exported = store.ok(&["store", "export", "-o", text(&copy)]);
        assert!(exported.contains("exported 2 sessions"), "{exported}");
    }
    assert_eq!(transcripts(&copy), transcripts(&home));
    // Another host continues one of them.
    let other = Room::new();
    let ran = store.run_in(&other, &["chat", "--demo", "-s", "one", "-p", "which port?"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let [(_, session)] = &*transcripts(&other.path("")) else { panic!("one session") };
    let session = String::from_utf8_lossy(session);
    assert!(session.contains("7431") && session.contains("which port?"), "{session}");
    // The file of this home is the beginning of the log now.
    assert!(store.ok(&["store", "import"]).contains("imported 2 sessions"));
    let (file, _) = &transcripts(&home)[0];
    let file = home.join("agents/demo/sessions").join(file);
    let foreign = std::fs::read_to_string(&file).expect("it is readable");
    std::fs::write(&file, "{\"role\":\"user\",\"content\":\"hi\"}\n").expect("it is writable");
    let imported = store.run(&["store", "import"]);
    assert_eq!(imported.code, Some(1));
    assert!(
        imported.stderr.contains("not the session that its entry names"),
        "{}",
        imported.stderr
    );
    std::fs::write(&file, foreign).expect("it is writable");
    let status: serde_json::Value =
        serde_json::from_str(&store.ok(&["store", "status", "--json"])).expect("JSON");
    assert_eq!((&status["sessions"], &status["leases"]), (&2.into(), &serde_json::json!([])));
    let unconfirmed = store.run(&["store", "erase"]);
    assert!(unconfirmed.stderr.contains("--confirm default"), "{}", unconfirmed.stderr);
    assert!(store.ok(&["store", "erase", "--confirm", "default"]).contains("erased"));
    assert!(store.ok(&["store", "status"]).contains("0 sessions"));
}

#[test]
fn damaged_rows_are_listed() {
    let Some(store) = Store::new() else { return };
    for session in ["one", "two"] {
        let args = ["chat", "--demo", "-s", session, "-p", "hello"];
        assert_eq!(store.run(&args).code, Some(0));
    }
    assert!(store.ok(&["store", "check"]).contains("can be used"));
    store
        .server
        .sql("delete from ctx.line where seq = 1 and file = (select entry::json ->> 'sessionId' from ctx.session where key like '%one')");
    store.server.sql("update ctx.session set entry = '{' where key like '%two'");
    let checked = store.run(&["store", "check"]);
    assert_eq!(checked.code, Some(1));
    for found in ["damaged log: demo/", "damaged entry: agent:demo:explicit:two"] {
        assert!(checked.stdout.contains(found), "{}", checked.stdout);
    }
    let other = Room::new();
    let ran = store.run_in(&other, &["store", "export", "-o", text(&other.path("copy"))]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("a line is missing in the shared store"), "{}", ran.stderr);
    let ran = store.run(&["chat", "--demo", "-s", "two", "-p", "hello"]);
    assert!(ran.stderr.contains("entry in the shared store is damaged"), "{}", ran.stderr);
}

/// Returns a conversation that is too long for a window of 16k tokens.
#[cfg(unix)]
fn long_history() -> Vec<Value> {
    let mut all = Vec::new();
    for n in 0..30 {
        let question = format!("Read /src/file{n}.rs.");
        let lines = format!("Line {n} of it says nothing new. ").repeat(180);
        all.push(json!({ "role": "user", "content": question }));
        all.push(json!({ "role": "assistant", "content": lines }));
    }
    all.push(json!({ "role": "user", "content": "And now?" }));
    all
}

#[cfg(unix)]
#[test]
fn another_replica_goes_on_with_the_same_bytes_after_one_is_killed_in_mid_answer() {
    let Some(store) = Store::new() else { return };
    let url = store.server.url("ctx");
    let stalled = Step::text("one two three").stalled_at(Moment::AfterEvents(2));
    let respond = |request: &Request| Step::text(format!("answer {}", request.number));
    let provider = FakeProvider::builder().script([stalled]).respond(respond).start();
    let provider = provider.expect("loopback can be listened on");
    let rooms = [Room::new(), Room::new()];
    let upstream = provider.url();
    let config = "{ server: { summaries: 'extractive' } }";
    let [first, second] = rooms.each_ref().map(|room| {
        room.write("ctx.json5", config);
        let args = ["--window", "16k", "--upstream", &upstream];
        Served::start(room, &args, &[("CTX_STORE_URL", &url)])
    });
    let body = |messages: &[Value]| {
        json!({ "model": "m", "stream": true, "messages": messages }).to_string()
    };
    let mut all = long_history();
    let stream = first.begin(CHAT, &body(&all));
    first.signal("-KILL");
    drop(stream);
    let stored = "select count(*) from ctx.conversation_line where position('form' in
        convert_from(body, 'UTF8')) > 0 or position('compaction' in convert_from(body, 'UTF8')) > 0";
    assert_ne!(store.server.sql(stored).trim(), "0", "its cuts are stored before the answer");
    let answer = second.ask(CHAT, &body(&all));
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let sent = |n: usize| provider.requests()[n].json["messages"].as_array().cloned();
    let (before, now) = (sent(0).expect("messages"), sent(1).expect("messages"));
    assert!(before.len() < all.len(), "it is cut: {} messages", before.len());
    assert_eq!(now, before);
    // A replica that starts later knows the conversation, too.
    let third = Served::start(
        &rooms[0],
        &["--window", "16k", "--upstream", &upstream],
        &[("CTX_STORE_URL", &url)],
    );
    all.push(json!({ "role": "assistant", "content": "answer 2" }));
    all.push(json!({ "role": "user", "content": "Thanks." }));
    third.ask(CHAT, &body(&all));
    assert_eq!(sent(2).expect("messages")[..before.len()], before);
}
