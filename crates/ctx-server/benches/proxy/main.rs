//! Benchmarks of the proxy: the time for a history that must be cut; memory over very many requests; the
//! effect of requests with stalled bodies on others; the cost of very many tool calls; recorded sessions
//! while a model writes summaries.
//!
//! `cargo bench -p ctx-server --bench proxy`; single benchmarks by name: `-- cut`, `-- memory`, `--
//! stalled`, `-- calls`, `-- replay`. Everything runs in this process on loopback: the provider, the proxy
//! and its clients. `cargo xtask bench proxy` measures the proxy by itself.

#![allow(clippy::print_stdout, reason = "a benchmark prints its measurements")]

mod replay;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use axum::http::header;
use axum::response::IntoResponse;
use cpu_time::ProcessTime;
use ctx_config::Config;
use ctx_core::Tokens;
use ctx_model::header::{HeaderMap, HeaderValue};
use ctx_model::{Client, Method, Request, Url};
use ctx_server::Host;
use ctx_server::http::{Metrics, Server, Shutdown};
use ctx_server::proxy::{Proxy, Settings, Upstreams, UpstreamsConfig};
use ctx_session::Home;
use ctx_testkit::provider::Api;
use ctx_trace::{Trace, TraceLimits};
use http_body_util::BodyExt;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const CLIENTS: usize = 64;
const MANY: usize = 100_000;

fn main() {
    let selected: Vec<String> =
        std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let runs = |part: &str| selected.is_empty() || selected.iter().any(|name| name == part);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("threads can be created");
    runtime.block_on(async {
        if runs("cut") {
            cut().await;
        }
        if runs("memory") {
            memory().await;
        }
        if runs("stalled") {
            stalled().await;
        }
        if runs("calls") {
            calls().await;
        }
        if runs("replay") {
            replay::replay().await;
        }
    });
}

const CHAT: &str = "data: {\"id\":\"f\",\"object\":\"chat.completion.chunk\",\"created\":1767600000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"ok\"},\"finish_reason\":null}]}\n\n\
    data: {\"id\":\"f\",\"object\":\"chat.completion.chunk\",\"created\":1767600000,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n\
    data: [DONE]\n\n";
const RESPONSES: &str = "event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"f\",\"object\":\"response\",\"status\":\"in_progress\",\"output\":[]}}\n\n\
    event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"ok\"}\n\n\
    event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":2,\"response\":{\"id\":\"f\",\"object\":\"response\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"ok\"}]}]}}\n\n";
const MESSAGES: &str = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"f\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"m\",\"content\":[],\"stop_reason\":null,\"usage\":{\"input_tokens\":1,\"output_tokens\":1}}}\n\n\
    event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n\
    event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"ok\"}}\n\n\
    event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n\
    event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":1}}\n\n\
    event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
const GEMINI: &str = "data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"ok\"}]},\"finishReason\":\"STOP\",\"index\":0}]}\r\n\r\n";

/// An upstream that answers each request with a small stream of events as soon as its body has
/// arrived. It parses no body, and listens on loopback until the program ends.
struct Fast {
    address: SocketAddr,
    count: Arc<AtomicU64>,
}

impl Fast {
    fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("an address");
        let count: Arc<AtomicU64> = Arc::default();
        let counted = Arc::clone(&count);
        std::thread::spawn(move || {
            let answer = move |request| fast_answer(request, counted.clone());
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a socket");
                axum::serve(listener, axum::Router::new().fallback(answer)).await
            })
        });
        Self { address, count }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn fast_answer(request: axum::extract::Request, count: Arc<AtomicU64>) -> impl IntoResponse {
    let stream = match Api::of(request.method().as_str(), request.uri().path()) {
        Some(Api::Responses) => RESPONSES,
        Some(Api::Messages) => MESSAGES,
        Some(Api::Gemini) => GEMINI,
        _ => CHAT,
    };
    let mut body = request.into_body();
    while let Some(Ok(_)) = body.frame().await {}
    count.fetch_add(1, Ordering::Relaxed);
    ([(header::CONTENT_TYPE, "text/event-stream")], stream)
}

/// A proxy on its own runtime, as if in its own process.
struct Proxied {
    url: String,
    upstream: Option<Fast>,
    proxy: Arc<Proxy>,
    shutdown: Shutdown,
    thread: Option<std::thread::JoinHandle<()>>,
    _home: tempfile::TempDir,
}

impl Proxied {
    fn start(window: u32) -> Self {
        let upstream = Fast::start();
        let config = "{ server: { summaries: 'extractive' } }";
        let mut proxied = Self::before(&upstream.url(), window, config);
        proxied.upstream = Some(upstream);
        proxied
    }

    /// Starts a proxy in front of a provider.
    fn before(upstream: &str, window: u32, config: &str) -> Self {
        let home = tempfile::tempdir().expect("a temporary folder");
        let config = Config::parse(config).expect("sound");
        let settings = Settings {
            config: config.section().expect("sound"),
            host: Host { config, home: Home::at(home.path()) },
            upstreams: Upstreams::new(&[upstream.to_owned()], &UpstreamsConfig::default())
                .expect("a URL"),
            window: Some(Tokens(window)),
            engine: None,
            agent: None,
            replicas: None,
            warn: Box::new(|_| {}),
            note: Box::new(|_| {}),
        };
        let trace =
            Trace::at(home.path().join("traces"), TraceLimits::default()).expect("a folder");
        let proxy = Proxy::new(settings, Arc::new(trace), Metrics::default()).expect("a folder");
        let (shutdown, (sender, receiver)) = (Shutdown::default(), std::sync::mpsc::channel());
        let (routes, stop) = (proxy.router(), shutdown.clone());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
            runtime.expect("threads can be created").block_on(async move {
                let address = "127.0.0.1:0".parse().expect("an address");
                let bound = Server::new(address).bind().await.expect("loopback can be listened on");
                sender.send(bound.url()).expect("the URL is received");
                bound.serve(routes, stop).await;
            });
        });
        let url = receiver.recv().expect("it listens");
        Self { url, upstream: None, proxy, shutdown, thread: Some(thread), _home: home }
    }

    /// Returns the provider of [`start`](Self::start).
    fn upstream(&self) -> &Fast {
        self.upstream.as_ref().expect("it was started with one")
    }
}

impl Drop for Proxied {
    fn drop(&mut self) {
        self.shutdown.stop();
        self.shutdown.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns a request with a conversation of about `bytes` bytes, unique to its number.
fn body(number: usize, messages: usize, bytes: usize) -> String {
    let mut all = vec![json!({ "role": "system", "content": "Be brief." })];
    for n in 0..messages {
        let role = if n % 2 == 0 { "user" } else { "assistant" };
        let line = format!("Client {number} says in message {n} that the river is long. ");
        all.push(
            json!({ "role": role, "content": line.repeat(bytes / messages / line.len() + 1) }),
        );
    }
    json!({ "model": "m", "messages": all, "stream": true }).to_string()
}

/// Sends a request and returns the time until the first byte of the response body.
async fn ask(client: &Client, url: &Url, body: &str) -> Duration {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    headers.insert("authorization", HeaderValue::from_static("Bearer k"));
    let body = body.as_bytes().to_vec().into();
    let began = Instant::now();
    let request = Request { method: Method::POST, url: url.clone(), headers, body };
    let mut response = client.send(request).await.expect("it answers");
    assert!(response.status.is_success(), "{}", response.status);
    response.body.chunk().await.expect("a body").expect("a first byte");
    let first = began.elapsed();
    while response.body.chunk().await.expect("a whole answer").is_some() {}
    first
}

fn at(base: &str) -> Url {
    Url::parse(&format!("{base}/v1/chat/completions")).expect("a URL")
}

/// Returns a percentile in milliseconds.
fn percentile(times: &mut [Duration], of_a_hundred: usize) -> f64 {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    times.get(last * of_a_hundred / 100).map_or(0.0, |time| time.as_secs_f64() * 1_000.0)
}

/// Measures a fixed rate of requests from many clients, alternately with and without the proxy.
fn long(number: usize) -> Vec<serde_json::Value> {
    let mut all: Vec<serde_json::Value> = Vec::new();
    for n in 0..400 {
        let id = format!("call_{n}");
        let call = json!({ "id": id, "type": "function",
            "function": { "name": "read", "arguments": format!("{{\"path\":\"/src/{n}.rs\"}}") } });
        if n % 10 == 0 {
            let task = format!("Task {number}: now step {n}, please.");
            all.push(json!({ "role": "user", "content": task }));
        }
        all.push(json!({ "role": "assistant", "content": null, "tool_calls": [call] }));
        let line = format!("line {n}: fn read_file_{n}() -> Result<String> {{ todo }}\n");
        let text = line.repeat(1_950 / line.len() + 1);
        all.push(json!({ "role": "tool", "tool_call_id": id, "content": text }));
    }
    all
}

/// Returns the body of a request with a history.
fn chat(all: &[serde_json::Value]) -> String {
    json!({ "model": "m", "messages": all, "stream": true }).to_string()
}

/// Measures histories of 200,000 tokens that were never seen before, without and with the proxy.
async fn unseen(proxied: &Proxied, client: &Client) -> (Vec<Duration>, Vec<Duration>) {
    const OTHERS: usize = 30;
    let (direct, through) = (at(&proxied.upstream().url()), at(&proxied.url));
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for number in 1..=OTHERS {
        let other = chat(&long(number));
        without.push(ask(client, &direct, &other).await);
        with.push(ask(client, &through, &other).await);
    }
    (without, with)
}

/// Measures a history of 200,000 tokens that must be cut, and cut again as it grows.
async fn cut() {
    const TURNS: usize = 30;
    let proxied = Proxied::start(128_000);
    let client = Client::default();
    let (direct, through) = (at(&proxied.upstream().url()), at(&proxied.url));
    let mut all = long(0);
    let whole = chat(&all);
    println!("cut: a history of {} KB, about {} tokens", whole.len() / 1_024, whole.len() / 4);
    let plain = ask(&client, &direct, &whole).await;
    let first = ask(&client, &through, &whole).await;
    let (mut others, mut others_cut) = unseen(&proxied, &client).await;
    let (mut without, mut with, mut busy) = (Vec::new(), Vec::new(), [Duration::ZERO; 2]);
    for n in 0..TURNS {
        all.push(json!({ "role": "assistant", "content": format!("Step {n} is done.") }));
        all.push(json!({ "role": "user", "content": format!("And then, {n}?") }));
        let whole = chat(&all);
        for (at, (url, times)) in
            [(&direct, &mut without), (&through, &mut with)].into_iter().enumerate()
        {
            let cpu = ProcessTime::now();
            times.push(ask(&client, url, &whole).await);
            busy[at] += cpu.elapsed();
        }
    }
    let sessions = proxied.proxy.trace().sessions();
    let of_first = |trace: &&ctx_trace::SessionTrace| trace.requests.len() > TURNS;
    let session = sessions.iter().find(of_first).expect("it was recorded");
    let last = session.requests.last().expect("it was recorded");
    println!("sent in the last request: {} of {} tokens", last.sent_tokens, last.raw_tokens);
    let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
    println!("| time to first byte, ms | without ctx | with ctx | added |");
    println!("|---|--:|--:|--:|");
    let (a, b) = (ms(plain), ms(first));
    println!("| first since the start | {a:.2} | {b:.2} | {:.2} |", b - a);
    for of in [50, 99] {
        let (a, b) = (percentile(&mut others, of), percentile(&mut others_cut, of));
        println!("| first of a conversation, p{of} | {a:.2} | {b:.2} | {:.2} |", b - a);
    }
    for of in [50, 99] {
        let (a, b) = (percentile(&mut without, of), percentile(&mut with, of));
        println!("| later ones, p{of} | {a:.2} | {b:.2} | {:.2} |", b - a);
    }
    let mut own: Vec<f64> = session.requests.iter().skip(1).map(|record| record.millis).collect();
    own.sort_unstable_by(f64::total_cmp);
    let [without, with] = busy.map(|busy| ms(busy) / TURNS as f64);
    println!("CPU ms per later request, including client and provider: {without:.2}, {with:.2}");
    println!("prepared in (p50): {:.2} ms", own.get(own.len() / 2).copied().unwrap_or_default());
}

/// Sends enough requests to see whether memory grows.
async fn memory() {
    let proxied = Proxied::start(200_000);
    let url = at(&proxied.url);
    let mut before = 0;
    println!(
        "memory: {MANY} requests of {CLIENTS} clients, 20 KB bodies; \
         the process includes the clients and the provider"
    );
    println!("| requests | MiB |");
    println!("|--:|--:|");
    for part in 0..10 {
        let mut running = Vec::new();
        for number in 0..CLIENTS {
            let url = url.clone();
            running.push(tokio::spawn(async move {
                let client = Client::default();
                // Every hundredth request starts another conversation.
                for n in 0..MANY / 10 / CLIENTS {
                    let which = (part * CLIENTS + number) * 100 + n / 100;
                    ask(&client, &url, &body(which, 20, 20_000)).await;
                }
            }));
        }
        for one in running {
            one.await.expect("no client fails");
        }
        before = resident();
        println!("| {} | {before} |", proxied.upstream().count.load(Ordering::Relaxed));
    }
    println!(
        "at the end: {before} MiB, {} conversations recorded",
        proxied.proxy.trace().sessions().len()
    );
}

/// Measures the time to the first byte while other requests withhold their bodies.
async fn stalled() {
    const STALLED: usize = 64;
    const SAMPLES: usize = 50;
    let proxied = Proxied::start(200_000);
    let (client, url, body) = (Client::default(), at(&proxied.url), body(0, 20, 20_000));
    let measured = async || {
        let mut times = Vec::new();
        for _ in 0..SAMPLES {
            times.push(ask(&client, &url, &body).await);
        }
        (percentile(&mut times, 50), percentile(&mut times, 99))
    };
    measured().await;
    let alone = measured().await;
    let address = proxied.url.trim_start_matches("http://");
    let mut open = Vec::new();
    for n in 0..STALLED {
        let length = ["transfer-encoding: chunked", "content-length: 64000000"][n % 2];
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n\
             expect: 100-continue\r\n{length}\r\n\r\n"
        );
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        stream.write_all(head.as_bytes()).await.expect("it reads");
        stream.read_exact(&mut [0; 25]).await.expect("it waits for the body");
        open.push(stream);
    }
    let beside = measured().await;
    println!("stalled: {STALLED} requests have sent everything but their bodies");
    println!("| time to first byte, ms | p50 | p99 |");
    println!("|---|--:|--:|");
    println!("| alone | {:.2} | {:.2} |", alone.0, alone.1);
    println!("| with stalled requests | {:.2} | {:.2} |", beside.0, beside.1);
}

/// Measures a body with very many tool calls.
async fn calls() {
    let proxied = Proxied::start(16_000);
    let (client, url) = (Client::default(), at(&proxied.url));
    println!(
        "calls: tool calls without results in one message; memory includes client and provider"
    );
    println!("| calls | MB | time to first byte, ms | MiB |");
    println!("|--:|--:|--:|--:|");
    for count in [10_000, 50_000, 90_000, 300_000] {
        let call = |n: usize| {
            json!({ "id": format!("call_{n}"), "type": "function",
                "function": { "name": "read", "arguments": format!("{{\"path\":\"/{n}\"}}") } })
        };
        let calls: Vec<_> = (0..count).map(call).collect();
        let messages = json!([{ "role": "user", "content": format!("read {count} files") },
            { "role": "assistant", "content": null, "tool_calls": calls },
            { "role": "user", "content": "go on" }]);
        let body = json!({ "model": "m", "messages": messages, "stream": true }).to_string();
        drop((calls, messages));
        let took = ask(&client, &url, &body).await.as_secs_f64() * 1_000.0;
        println!("| {count} | {} | {took:.0} | {} |", body.len() / 1_000_000, resident());
    }
}

/// Returns the resident memory of this process in MiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse::<u64>().ok());
    kib.unwrap_or_default() / 1_024
}
