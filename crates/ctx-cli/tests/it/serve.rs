//! `ctx serve` as a program.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Stdio};
#[cfg(unix)]
use std::process::{Command, ExitStatus};

#[cfg(unix)]
use ctx_testkit::provider::Moment;
use ctx_testkit::provider::{FakeProvider, Step};
use serde_json::{Value, json};

use crate::support::Room;

/// A server that runs until dropped.
pub(crate) struct Served {
    child: Child,
    #[cfg_attr(
        not(unix),
        expect(dead_code, reason = "read at the end of a server, which a signal asks for")
    )]
    stdout: BufReader<ChildStdout>,
    /// Its address.
    pub(crate) address: String,
}

impl Served {
    pub(crate) fn start(room: &Room, args: &[&str], env: &[(&str, &str)]) -> Self {
        let mut all = vec!["serve", "--json"];
        if !args.contains(&"--listen") {
            all.extend(["--listen", "127.0.0.1:0"]);
        }
        all.extend(args);
        let mut command = room.command(&all);
        command.envs(env.iter().copied()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary runs");
        let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut line = String::new();
        stdout.read_line(&mut line).expect("it says where it listens");
        let said: Value = serde_json::from_str(&line).expect("one object");
        let url = said["url"].as_str().expect("a URL");
        let port = url.rsplit(':').next().expect("a port");
        let address = format!("127.0.0.1:{port}");
        Self { child, stdout, address }
    }

    /// As [`Self::send`], and waits for the first byte of the answer. Before that, a server that
    /// ends may close the connection.
    #[cfg(unix)]
    pub(crate) fn begin(&self, head: &str, body: &str) -> TcpStream {
        let stream = self.send(head, body);
        assert_eq!(stream.peek(&mut [0]).expect("the beginning of an answer"), 1);
        stream
    }

    /// Sends a request, and returns the connection for the answer.
    fn send(&self, head: &str, body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).expect("it listens");
        let length = body.len();
        let head = format!(
            "{head} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer k\r\nconnection: close\r\n\
             user-agent: a-client/1.0\r\ncontent-length: {length}\r\n\r\n{body}",
            self.address
        );
        stream.write_all(head.as_bytes()).expect("it reads");
        stream
    }

    pub(crate) fn ask(&self, head: &str, body: &str) -> String {
        whole(self.send(head, body))
    }

    #[cfg(unix)]
    pub(crate) fn signal(&self, signal: &str) {
        let id = self.child.id().to_string();
        let done = Command::new("kill").args([signal, &id]).status().expect("kill runs");
        assert!(done.success());
    }

    #[cfg(unix)]
    pub(crate) fn end(mut self) -> (ExitStatus, String, String) {
        let status = self.child.wait().expect("it ends");
        let (mut out, mut err) = (String::new(), String::new());
        self.stdout.read_to_string(&mut out).expect("text");
        self.child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("text");
        (status, out, err)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the whole answer, even if it is cut off.
fn whole(mut stream: TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

pub(crate) fn provider(script: impl IntoIterator<Item = Step>) -> FakeProvider {
    let builder = FakeProvider::builder().script(script).respond(|_| Step::text("hello"));
    builder.start().expect("loopback can be listened on")
}

pub(crate) const CHAT: &str = "POST /v1/chat/completions";

fn hi(stream: bool) -> String {
    let messages = json!([{ "role": "user", "content": "hi" }]);
    json!({ "model": "m", "messages": messages, "stream": stream }).to_string()
}

#[cfg(unix)]
#[test]
fn a_client_is_served_and_running_requests_finish_at_shutdown() {
    let (room, held) = (Room::new(), Step::text("one two three").held_at(Moment::AfterEvents(3)));
    let provider = provider([Step::text("hello"), held]);
    let served = Served::start(&room, &["--upstream", &provider.url()], &[]);
    let answer = served.ask(CHAT, &hi(false));
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("hello"), "{answer}");
    assert!(served.ask("GET /healthz", "").ends_with("ok\n"));
    let stream = served.begin(CHAT, &hi(true));
    served.signal("-TERM");
    // From here on it accepts no new connections.
    while TcpStream::connect(&served.address).is_ok() {
        std::thread::yield_now();
    }
    provider.release();
    let answer = whole(stream);
    assert!(answer.contains("[DONE]"), "{answer}");
    let (status, out, err) = served.end();
    assert!(status.success() && out.is_empty(), "{status} {out} {err}");
    assert!(!err.contains("Bearer"), "{err}");
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_ends_the_server_at_once() {
    let room = Room::new();
    let provider = provider([Step::text("one two three").held_at(Moment::AfterEvents(3))]);
    let served = Served::start(&room, &["--upstream", &provider.url(), "--grace", "600"], &[]);
    let stream = served.begin(CHAT, &hi(true));
    served.signal("-INT");
    while TcpStream::connect(&served.address).is_ok() {
        std::thread::yield_now();
    }
    served.signal("-INT");
    let (status, ..) = served.end();
    assert!(status.success(), "{status}");
    assert!(!whole(stream).contains("[DONE]"));
}

#[test]
fn the_next_process_cuts_a_long_history_at_the_same_place() {
    let (room, provider) = (Room::new(), provider([]));
    let mut messages = Vec::new();
    for n in 0..40 {
        let text = format!("Line {n} of a long story. ").repeat(120);
        messages.push(json!({ "role": "user", "content": format!("Tell me part {n}.") }));
        messages.push(json!({ "role": "assistant", "content": text }));
    }
    messages.push(json!({ "role": "user", "content": "And the end?" }));
    let body = json!({ "model": "m", "messages": messages }).to_string();
    room.write("ctx.json5", "{ server: { summaries: 'extractive' } }");
    for _ in 0..2 {
        let served = Served::start(&room, &["--upstream", &provider.v1(), "--window", "16k"], &[]);
        assert!(served.ask(CHAT, &body).contains("hello"));
        #[cfg(unix)]
        {
            served.signal("-TERM");
            assert!(served.end().0.success());
        }
    }
    let asked = provider.requests();
    assert!(asked[0].prompt.tokens() <= 12_600, "{}", asked[0].prompt.tokens());
    assert_eq!(asked[0].body, asked[1].body);
}

#[test]
fn a_token_is_required_if_other_machines_can_connect() {
    let (room, provider) = (Room::new(), provider([]));
    let refused = room.ctx(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(1), "{}", refused.stderr);
    assert!(refused.stderr.contains("CTX_SERVER_TOKEN"), "{}", refused.stderr);
    let env = [("CTX_SERVER_TOKEN", "a-token-for-this-test")];
    let upstream = provider.url();
    let args = ["--listen", "0.0.0.0:0", "--upstream", &upstream];
    let served = Served::start(&room, &args, &env);
    assert!(served.ask("GET /healthz", "").starts_with("HTTP/1.1 401"));
    assert!(served.ask(CHAT, &hi(false)).starts_with("HTTP/1.1 401"));
    let with = "POST /t/a-token-for-this-test/v1/chat/completions";
    assert!(served.ask(with, &hi(false)).contains("hello"));
    let asked = provider.requests().pop().expect("it was asked");
    assert_eq!(asked.path, "/v1/chat/completions");
}

#[test]
fn invalid_arguments_are_refused_before_the_server_listens() {
    let room = Room::new();
    for (args, words) in [
        (&["--listen", "here"][..], "invalid listen address 'here'"),
        (&["--upstream", "ftp://x"], "http://"),
        (&["--upstream", "foo=http://x"], "unknown API (upstream: foo)"),
        (&["--upstream", "http://x", "--upstream", "http://y"], "duplicate upstream"),
        (&["--window", "10"], "too small"),
        (&["--upstream", "http://127.0.0.1:8799", "--listen", "127.0.0.1:8799"], "server itself"),
        (&["--window", "many"], "invalid number of tokens"),
        (&["--window", "2000"], "too small"),
        (&["--engine", "nope"], "legacy"),
        (&["--max-body", "lots"], "invalid size 'lots'"),
        (&["--max-body", "1k", "--window", "many"], "invalid number of tokens"),
        (&["--max-body", "512"], "invalid body size '512'"),
        (&["--token", "short"], "invalid server token"),
    ] {
        let mut all = vec!["serve"];
        all.extend(args);
        let ran = room.ctx(&all);
        assert_ne!(ran.code, Some(0), "{args:?} {}", ran.stderr);
        assert!(ran.stderr.contains(words) && ran.stdout.is_empty(), "{args:?} {}", ran.stderr);
    }
    room.write("ctx.json5", "{ server: { upstream: 'http://x' } }");
    let ran = room.ctx(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(ran.stderr.contains("upstreams"), "the closest key is suggested: {}", ran.stderr);
    room.write("ctx.json5", "{ server: { summaries: 'model' } }");
    let ran = room.ctx(&["serve", "--listen", "127.0.0.1:0"]);
    assert!(ran.stderr.contains("agents.defaults.compaction.model"), "{}", ran.stderr);
    room.write("file", "");
    let mut command = room.command(&["serve", "--listen", "127.0.0.1:0"]);
    let ran = command.env("CTX_HOME", room.path("file")).output().expect("the binary runs");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(!ran.status.success() && said.contains("set CTX_HOME"), "{said}");
}

#[test]
fn requests_outside_of_the_page_are_forwarded_to_the_provider() {
    let (room, provider) = (Room::new(), provider([]));
    let served = Served::start(&room, &["--upstream", &provider.v1()], &[]);
    // Ollama's own API.
    let chat = json!({ "model": "m", "messages": [{ "role": "user", "content": "hi" }] });
    assert!(served.ask("POST /api/chat", &chat.to_string()).contains("hello"));
    let posted = provider.requests().into_iter().filter(|request| request.method == "POST");
    assert_eq!(posted.map(|request| request.path).collect::<Vec<_>>(), ["/api/chat"]);
    let before = provider.count();
    served.ask("GET /api/tags", "");
    served.ask("GET /assets/nothing", "");
    let later = provider.requests().into_iter().skip(before);
    let paths: Vec<_> = later.map(|request| request.path).collect();
    assert_eq!(paths, ["/api/tags", "/v1/assets/nothing"]);
    assert!(served.ask("GET /api/server", "").contains("\"name\":\"ctx\""));
    assert!(served.ask("GET /api/sessions/nobody", "").contains("unknown session"));
    assert_eq!(provider.count(), before + 2);
}
