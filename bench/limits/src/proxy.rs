//! What a proxy adds: `ctx serve` beside a relay that parses nothing and beside its peers, each as a
//! process of its own.
//!
//! Clients and provider are in this process. A request is sent when it is due, whether or not earlier
//! ones are answered, and its time begins then: a request that waits for others counts.

mod http;
mod server;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use http_body_util::Full;
use hyper::body::Bytes;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::Effort;
use crate::figure::{Figure, Goal, quantile};
use http::{Pool, ask, ask_once, provider, runtime};
use server::Server;

pub(crate) use http::relay;

const RELAY: &str = "a hyper relay that parses nothing";

const LITELLM: &str =
    "LiteLLM's proxy with one worker, which parses each request and writes it again";

const LEAN_CTX: &str =
    "lean-ctx's proxy with its compression off: it forwards what it gets, as ctx does here";

/// The time between two slices, in which a server finishes what it does after an answer.
const PAUSE: Duration = Duration::from_millis(100);

/// The bytes of a body: about this many on average.
const BODY: usize = 100_000;

/// How often a conversation grows.
const TURNS: usize = 72;

/// The clients that connect at once.
const AT_ONCE: usize = 64;

pub(crate) fn measure(effort: Effort, print: &mut dyn FnMut(Figure)) -> Result<()> {
    let runtime = runtime()?;
    let provider = runtime.block_on(provider())?;
    rate(effort, &runtime, provider, print)?;
    peers(effort, &runtime, provider, print)?;
    idle(effort, &runtime, provider, print)
}

/// A conversation of a coding agent, as its requests have it.
struct Conversation {
    messages: String,
    /// Where the messages of each request end.
    ends: Vec<usize>,
}

impl Conversation {
    /// Creates a conversation that grows to a bit more than the size of a body.
    fn new(number: usize) -> Self {
        const CALLS: usize = 40;
        /// The bytes of a turn without the result of its call.
        const TURN: usize = 260;
        let task = format!("Task {number}: find why the build of part {number} fails.");
        let mut all = Self { messages: String::new(), ends: Vec::new() };
        all.add(&json!({ "role": "system", "content": "You are a coding agent. Be brief." }));
        all.add(&json!({ "role": "user", "content": task }));
        for call in 0..CALLS {
            all.turn(number, call, BODY * 9 / 10 / CALLS - TURN);
        }
        all.ends.push(all.messages.len());
        for call in CALLS..CALLS + TURNS {
            all.turn(number, call, 40);
            all.ends.push(all.messages.len());
        }
        all
    }

    /// Adds a call, and its result of about that many bytes.
    fn turn(&mut self, number: usize, call: usize, bytes: usize) {
        let id = format!("call_{number}_{call}");
        let arguments = format!("{{\"path\":\"/src/part_{number}/{call}.rs\"}}");
        let function = json!({ "name": "read", "arguments": arguments });
        let made = json!([{ "id": id, "type": "function", "function": function }]);
        let mut text = String::new();
        for line in 0.. {
            text += &format!("fn part_{call}_{line}() -> Result<String> {{ \"todo\" }}\n");
            if text.len() >= bytes {
                break;
            }
        }
        self.add(&json!({ "role": "assistant", "content": null, "tool_calls": made }));
        self.add(&json!({ "role": "tool", "tool_call_id": id, "content": text }));
    }

    fn add(&mut self, message: &Value) {
        if !self.messages.is_empty() {
            self.messages.push(',');
        }
        self.messages += &message.to_string();
    }

    /// Returns the body of a request; after the last turn, that is repeated.
    fn body(&self, turn: usize) -> Bytes {
        let end = self.ends.get(turn).or(self.ends.last()).copied().unwrap_or_default();
        let messages = &self.messages[..end];
        let head = "{\"model\":\"m\",\"stream\":true,\"messages\":[";
        [head, messages, "]}"].concat().into()
    }
}

/// Requests at a fixed rate, in slices.
struct Load {
    per_second: usize,
    seconds: usize,
    conversations: Vec<Conversation>,
}

impl Load {
    fn new(per_second: usize, seconds: usize, conversations: usize) -> Self {
        let conversations = (0..conversations).map(Conversation::new).collect();
        Self { per_second, seconds, conversations }
    }

    fn requests(&self) -> usize {
        self.per_second * self.seconds
    }

    /// Sends the requests of a slice, and returns the milliseconds of each until the first byte of its
    /// answer.
    fn run(
        &self,
        runtime: &Runtime,
        pool: &Arc<Pool<Full<Bytes>>>,
        slice: usize,
    ) -> Result<Vec<f64>> {
        let pause = Duration::from_secs(1) / self.per_second as u32;
        let began = Instant::now() + pause;
        let (all, count) = (self.requests(), self.conversations.len());
        let mut sent = Vec::with_capacity(all);
        for number in 0..all {
            let turn = (slice * all + number) / count;
            let body = self.conversations[number % count].body(turn);
            let due = began + pause * number as u32;
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            sent.push(runtime.spawn(ask(pool.clone(), body, due)));
        }
        runtime.block_on(async {
            let mut times = Vec::with_capacity(all);
            for one in sent {
                times.push(one.await??);
            }
            Ok(times)
        })
    }
}

/// The figures of a way, of one kind.
type Part = fn(&mut Way) -> &mut Vec<f64>;

/// A way to the provider, and what was measured on it: one figure for each slice.
struct Way {
    server: Option<Server>,
    pool: Arc<Pool<Full<Bytes>>>,
    p50: Vec<f64>,
    p99: Vec<f64>,
    cpu_ms: Vec<f64>,
}

impl Way {
    fn to(address: SocketAddr, server: Option<Server>) -> Self {
        let pool = Pool::new(address);
        Self { server, pool, p50: Vec::new(), p99: Vec::new(), cpu_ms: Vec::new() }
    }

    fn through(server: Server) -> Self {
        Self::to(server.address, Some(server))
    }

    /// Returns the median of the slices.
    fn median(&mut self, part: Part) -> f64 {
        quantile(part(self), 0.5)
    }

    fn cpu_ms(&self) -> Result<f64> {
        self.server.as_ref().map_or(Ok(0.0), Server::cpu_ms)
    }

    /// Runs a slice. The first one only opens connections, and lets a server learn the conversations.
    fn run(&mut self, load: &Load, runtime: &Runtime, slice: usize) -> Result<()> {
        let before = self.cpu_ms()?;
        let mut times = load.run(runtime, &self.pool, slice)?;
        std::thread::sleep(PAUSE);
        if slice > 0 {
            self.cpu_ms.push((self.cpu_ms()? - before) / load.requests() as f64);
            self.p50.push(quantile(&mut times, 0.5));
            self.p99.push(quantile(&mut times, 0.99));
        }
        Ok(())
    }
}

/// Runs slices on all ways in turn.
fn in_turn(ways: &mut [&mut Way], load: &Load, runtime: &Runtime, slices: usize) -> Result<()> {
    for slice in 0..=slices {
        for turn in 0..ways.len() {
            let at = (turn + slice) % ways.len();
            ways[at].run(load, runtime, slice)?;
        }
    }
    Ok(())
}

/// Measures a fixed rate of requests directly, through the relay and through ctx.
fn rate(
    effort: Effort,
    runtime: &Runtime,
    provider: SocketAddr,
    print: &mut dyn FnMut(Figure),
) -> Result<()> {
    // Fewer conversations than `ctx serve` keeps in memory.
    let load = if effort.is_quick { Load::new(200, 1, 50) } else { Load::new(1_000, 2, 200) };
    let mut ways = [
        Way::to(provider, None),
        Way::through(Server::relay(provider)?),
        Way::through(Server::ctx(provider)?),
    ];
    in_turn(&mut ways.each_mut(), &load, runtime, effort.rounds(7))?;
    let mut added = |part: Part| {
        let [direct, relay, ctx] = ways.each_mut().map(|way| way.median(part));
        (ctx - direct, relay - direct)
    };
    let (median, most) = (added(|way| &mut way.p50), added(|way| &mut way.p99));
    let name = format!("added to a request of 100 KB at {} requests/s", load.per_second);
    print(
        Figure::new("proxy-added-p50", format!("{name}: p50"), "ms", median.0)
            .beside_limit(RELAY, median.1),
    );
    print(
        Figure::new("proxy-added-p99", format!("{name}: p99"), "ms", most.0)
            .beside_limit(RELAY, most.1)
            .goal(Goal::OfLimit(2.0)),
    );
    let (ctx, relay) = added(|way| &mut way.cpu_ms);
    print(
        Figure::new("proxy-cpu", "a request of 100 KB through `ctx serve`: CPU", "ms", ctx)
            .beside_limit(RELAY, relay)
            .goal(Goal::AtMost(0.2)),
    );
    Ok(())
}

/// Measures a rate that its peers bear: LiteLLM needs a whole core for 15 to 20 requests/s.
fn peers(
    effort: Effort,
    runtime: &Runtime,
    provider: SocketAddr,
    print: &mut dyn FnMut(Figure),
) -> Result<()> {
    const PER_SECOND: usize = 5;
    let load = Load::new(PER_SECOND, if effort.is_quick { 1 } else { 10 }, 10);
    let mut direct = Way::to(provider, None);
    let mut relay = Way::through(Server::relay(provider)?);
    let mut ctx = Way::through(Server::ctx(provider)?);
    let mut peers = [
        ("LiteLLM", LITELLM, Server::litellm(provider)?.map(Way::through)),
        ("lean-ctx", LEAN_CTX, Server::lean_ctx(provider)?.map(Way::through)),
    ];
    let mut ways = vec![&mut direct, &mut relay, &mut ctx];
    ways.extend(peers.iter_mut().filter_map(|(.., way)| way.as_mut()));
    in_turn(&mut ways, &load, runtime, effort.rounds(3))?;
    let parts: [(&str, Part); 3] =
        [("p50", |way| &mut way.p50), ("p99", |way| &mut way.p99), ("CPU", |way| &mut way.cpu_ms)];
    for (name, about, peer) in &mut peers {
        for (what, part) in parts {
            let id = format!("proxy-{name}-{what}");
            let what = format!(
                "added to a request of 100 KB at {PER_SECOND} requests/s, beside {name}: {what}"
            );
            let least = direct.median(part);
            let mut figure = Figure::new(id, what, "ms", ctx.median(part) - least);
            if let Some(peer) = peer {
                figure = figure.beside_peer(*about, peer.median(part) - least);
            }
            print(figure.beside_limit(RELAY, relay.median(part) - least));
        }
    }
    Ok(())
}

/// Measures the memory of a server whose clients made one request each, and stay connected.
fn idle(
    effort: Effort,
    runtime: &Runtime,
    provider: SocketAddr,
    print: &mut dyn FnMut(Figure),
) -> Result<()> {
    let clients = if effort.is_quick { 200 } else { 10_000 };
    raise_open_files()?;
    let memory = |server: Server| -> Result<f64> {
        let address = server.address;
        let _open = runtime.block_on(async {
            let connect = |first| async move {
                let mut open = Vec::new();
                for number in (first..clients).step_by(AT_ONCE) {
                    open.push(ask_once(address, first_body(number)).await?);
                }
                anyhow::Ok(open)
            };
            let running: Vec<_> = (0..AT_ONCE).map(|first| tokio::spawn(connect(first))).collect();
            let mut open = Vec::new();
            for one in running {
                open.extend(one.await??);
            }
            anyhow::Ok(open)
        })?;
        std::thread::sleep(PAUSE);
        server.check_connections(clients)?;
        server.memory_mib()
    };
    let relay = memory(Server::relay(provider)?)?;
    let ctx = memory(Server::ctx(provider)?)?;
    let name = format!("{clients} clients that made one request each, and are idle: memory");
    print(
        Figure::new("proxy-idle", name, "MiB", ctx)
            .beside_limit(RELAY, relay)
            .goal(Goal::AtMost(100.0)),
    );
    Ok(())
}

/// Returns the first request of a client.
fn first_body(number: usize) -> Bytes {
    let task = format!("Task {number}: ") + &"find why the build fails. ".repeat(40);
    let messages = json!([
        { "role": "system", "content": "You are a coding agent. Be brief." },
        { "role": "user", "content": task },
    ]);
    json!({ "model": "m", "stream": true, "messages": messages }).to_string().into()
}

/// Raises the number of files that this process, and those that it starts, may open.
fn raise_open_files() -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit })?;
    Ok(())
}
