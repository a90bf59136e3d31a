//! Spans and metrics of a conversation, and collectors that accept them or fail.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use serde_json::Value;

#[cfg(unix)]
use crate::serve::{Served, provider};
use crate::support::{Ran, Room};

const ACCEPTED: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A received request.
struct Sent {
    head: String,
    body: Vec<u8>,
}

impl Sent {
    fn has_metrics(&self) -> bool {
        self.head.starts_with("POST /v1/metrics ")
    }

    fn text(&self) -> String {
        format!("{}{}", self.head, String::from_utf8_lossy(&self.body))
    }
}

/// Starts a collector with this answer. Returns its address and the received requests.
fn collector(answer: &'static str) -> (String, Receiver<Sent>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("an address").to_string();
    let (sender, sent) = channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // A broken connection shows as a missing request.
            let _ = take(stream, answer, &sender);
        }
    });
    (place, sent)
}

/// Reads one request, and reports it before it is answered.
fn take(stream: TcpStream, answer: &str, sent: &Sender<Sent>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (mut request, mut length) = (String::new(), 0);
    while !request.ends_with("\r\n\r\n") {
        let began = request.len();
        if stream.read_line(&mut request)? == 0 {
            return Ok(());
        }
        if let Some(number) = request[began..].to_lowercase().strip_prefix("content-length:") {
            length = number.trim().parse().unwrap_or(0);
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body)?;
    // The receiver may be gone.
    let _ = sent.send(Sent { head: request, body });
    if answer.is_empty() {
        // Waits until the client closes the connection.
        stream.read_to_end(&mut Vec::new())?;
    }
    stream.get_mut().write_all(answer.as_bytes())
}

/// Runs a conversation of one message with a collector at `place`.
fn chat(place: &str) -> Ran {
    let room = Room::new();
    let mut command = room.command(&["chat", "--demo", "-p", "hello"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{place}"));
    command.env("OTEL_EXPORTER_OTLP_HEADERS", "x-team=blue").current_dir(room.path(""));
    Ran::of(&mut command)
}

/// Checks that the conversation succeeded, and that there is one message about the collector.
fn told(ran: &Ran) -> String {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.trim().is_empty());
    let told: Vec<_> = ran.stderr.lines().filter(|line| line.contains("OTLP collector")).collect();
    assert_eq!(told.len(), 1, "{}", ran.stderr);
    assert!(told[0].starts_with("warning: spans and metrics were not sent"), "{}", told[0]);
    // The message may be wrapped over several lines.
    ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn a_collector_gets_the_spans_of_a_conversation() {
    let (place, sent) = collector(ACCEPTED);
    let ran = chat(&place);
    assert_eq!((ran.code, ran.stderr.contains("OTLP")), (Some(0), false), "{}", ran.stderr);
    let sent: Vec<_> = sent.try_iter().map(|sent| sent.text()).collect();
    for request in &sent {
        let places = ["traces", "metrics"].map(|kind| format!("POST /v1/{kind} HTTP/1.1\r\n"));
        assert!(places.iter().any(|place| request.starts_with(place)), "{request}");
        assert!(request.contains("\r\nx-team: blue\r\n"), "{request}");
    }
    let all = sent.concat();
    for part in ["invoke_agent", "chat ", "assemble", "service.name", "agent:demo:", "token.usage"]
    {
        assert!(all.contains(part), "{part} in {all}");
    }
    // Message texts are not sent.
    assert!(!all.contains("hello"), "{all}");
}

/// Decodes the spans and metrics of requests with the Python package of OpenTelemetry. `None` if it is missing.
fn decoded(sent: &[Sent]) -> Option<Vec<Value>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let clients = std::env::var_os("CTX_CLIENTS").map_or(root.join("target/clients"), Into::into);
    let python = clients.join("venv/bin/python");
    let has_package = |python: &Path| {
        let mut import = Command::new(python);
        import.args(["-c", "import opentelemetry.proto"]).stderr(Stdio::null());
        import.status().is_ok_and(|status| status.success())
    };
    if !has_package(&python) {
        ctx_testkit::skipped("opentelemetry-proto (`.ci/run features` installs it)");
        return None;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let kind = |sent: &Sent| if sent.has_metrics() { "metrics" } else { "spans" };
    let files: Vec<_> = sent
        .iter()
        .enumerate()
        .map(|(n, sent)| folder.path().join(format!("{n}.{}", kind(sent))))
        .collect();
    for (file, sent) in files.iter().zip(sent) {
        std::fs::write(file, &sent.body).expect("it can be written");
    }
    let script = root.join("tests/clients/otlp_decode.py");
    let done = Command::new(python).arg(script).args(&files).output().expect("Python runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let lines = String::from_utf8(done.stdout).expect("it is text");
    Some(lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect())
}

#[test]
fn spans_and_metrics_follow_the_conventions_for_generative_ai() {
    let (place, sent) = collector(ACCEPTED);
    chat(&place);
    let Some(spans) = decoded(&sent.try_iter().collect::<Vec<_>>()) else { return };
    let named = |start: &str| {
        let has_name = |span: &&Value| span["name"].as_str().is_some_and(|n| n.starts_with(start));
        spans.iter().find(has_name).unwrap_or_else(|| panic!("no {start} in {spans:?}"))
    };
    let (turn, request) = (named("invoke_agent"), named("chat "));
    assert_eq!(turn["attributes"]["gen_ai.operation.name"], "invoke_agent");
    let about = &request["attributes"];
    assert_eq!((&about["gen_ai.operation.name"], &request["kind"]), (&"chat".into(), &3.into()));
    let model = about["gen_ai.request.model"].as_str().expect("a model");
    assert_eq!(request["name"], format!("chat {model}"));
    assert!(about["gen_ai.usage.input_tokens"].as_u64() > Some(0), "{about}");
    assert!(about["gen_ai.usage.output_tokens"].as_u64() > Some(0), "{about}");
    let input = measured(&spans, "gen_ai.client.token.usage", ("gen_ai.token.type", "input"));
    assert_eq!(input["value"].as_f64(), about["gen_ai.usage.input_tokens"].as_f64());
    assert_eq!((&input["unit"], &input["kind"]), (&"{token}".into(), &"histogram".into()));
    assert_eq!(input["attributes"]["gen_ai.request.model"], model);
    let took =
        measured(&spans, "gen_ai.client.operation.duration", ("gen_ai.operation.name", "chat"));
    assert!(took["unit"] == "s" && took["value"].as_f64() > Some(0.0), "{took}");
}

/// Returns the point of a metric with this attribute.
fn measured<'a>(decoded: &'a [Value], name: &str, (key, value): (&str, &str)) -> &'a Value {
    let is_it = |point: &&Value| point["metric"] == name && point["attributes"][key] == value;
    decoded.iter().find(is_it).unwrap_or_else(|| panic!("no {name} {value} in {decoded:?}"))
}

/// An adapter's requests are calls of `ctx rpc`.
#[test]
fn fitting_sends_a_span_with_its_compaction() {
    use serde_json::json;

    let (place, sent) = collector(ACCEPTED);
    let room = Room::new();
    let messages: Vec<_> = (0..12)
        .map(|n| {
            let role = if n % 2 == 0 { "user" } else { "assistant" };
            json!({ "role": role, "content": format!("{n} {}", "a fact. ".repeat(1500)) })
        })
        .chain([json!({ "role": "user", "content": "And now?" })])
        .collect();
    let call = |id: u32, method: &str, mut params: Value| {
        params["sessionId"] = "s".into();
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string() + "\n"
    };
    let input = [
        call(1, "open", json!({ "window": 16_000, "format": "openai", "summaryModel": "none" })),
        call(2, "fit", json!({ "messages": messages })),
    ];
    let mut command = room.command(&["rpc"]);
    command.env("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{place}"));
    let input =
        std::fs::File::open(room.write("calls.jsonl", input.concat())).expect("it is there");
    let ran = Ran::of(command.stdin(input));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let Some(told) = decoded(&sent.try_iter().collect::<Vec<_>>()) else { return };
    let span = told.iter().find(|span| span["name"] == "fit").expect("the span of the call");
    assert_eq!(span["attributes"]["gen_ai.conversation.id"], "s");
    assert!(span["attributes"]["ctx.tokens.sent"].as_u64() > Some(0), "{span}");
    let event = span["events"]
        .as_array()
        .and_then(|all| all.iter().find(|e| e["name"] == "ctx.compaction"));
    let before = &event.unwrap_or_else(|| panic!("a compaction in {span}"))["attributes"]["ctx.compaction.tokens_before"];
    let point = measured(&told, "ctx.compaction.tokens", ("ctx.compaction.when", "before"));
    assert_eq!(point["value"].as_f64(), before.as_f64());
}

/// The proxy sends a span for each request, with the compaction as its event.
#[cfg(unix)]
#[test]
fn the_proxy_sends_spans() {
    use serde_json::json;

    let provider = provider([]);
    let (place, sent) = collector(ACCEPTED);
    let room = Room::new();
    let endpoint = format!("http://{place}");
    let env = [("OTEL_EXPORTER_OTLP_ENDPOINT", &*endpoint)];
    let upstream = provider.url();
    let served = Served::start(&room, &["--upstream", &upstream, "--window", "16000"], &env);
    let mut messages = Vec::new();
    for n in 0..6 {
        messages
            .push(json!({ "role": "user", "content": format!("{n} {}", "a fact. ".repeat(2000)) }));
        messages.push(json!({ "role": "assistant", "content": "Noted." }));
    }
    messages.push(json!({ "role": "user", "content": "And now?" }));
    let body = json!({ "model": "m-1", "messages": messages }).to_string();
    let answer = served.ask("POST /v1/chat/completions", &body);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    served.signal("-TERM");
    assert!(served.end().0.success());
    let Some(spans) = decoded(&sent.try_iter().collect::<Vec<_>>()) else { return };
    let span = spans.iter().find(|span| span["name"] == "chat m-1").expect("the request's span");
    let about = &span["attributes"];
    assert_eq!(about["http.response.status_code"], 200);
    assert!(about["ctx.tokens.sent"].as_u64() < about["ctx.tokens.received"].as_u64(), "{about}");
    let event = span["events"]
        .as_array()
        .and_then(|all| all.iter().find(|e| e["name"] == "ctx.compaction"));
    let event = &event.unwrap_or_else(|| panic!("a compaction in {span}"))["attributes"];
    let tokens = |name: &str| event[name].as_u64();
    assert!(tokens("ctx.compaction.tokens_after") < tokens("ctx.compaction.tokens_before"));
    assert!(tokens("ctx.audit.kept") <= tokens("ctx.audit.facts"), "{event}");
}

#[test]
fn spans_rejected_by_a_collector_cause_one_warning() {
    let (place, _sent) =
        collector("HTTP/1.1 404 Not Found\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    let said = told(&chat(&place));
    assert!(said.contains("it answered 404 Not Found"), "{said}");
}

#[test]
fn a_collector_that_never_answers_does_not_end_the_conversation() {
    let (place, sent) = collector("");
    told(&chat(&place));
    assert!(sent.try_iter().next().is_some());
}

#[test]
fn an_unreachable_collector_causes_one_warning() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let said = told(&chat(&place));
    assert!(said.contains(&place), "{said}");
}
