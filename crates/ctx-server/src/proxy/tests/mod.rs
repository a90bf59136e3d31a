//! Tests of the proxy between clients and a fake provider.

mod alike;
mod background;
mod bedrock;
mod breaking;
mod cached;
mod chat_only;
mod client_compaction;
mod client_summaries;
mod context_edits;
mod continued;
mod cutting;
mod limits;
mod packed;
mod passing;
mod pinned;
mod provider_compaction;
mod recovery;
mod replicas;
mod retrieval;
mod stored_conversations;
mod strict;
mod summaries;
mod windows;

use std::sync::Arc;

use axum::body::Bytes;
use ctx_config::Config;
use ctx_core::Tokens;
use ctx_model::header::{HeaderMap, HeaderName};
use ctx_model::{Client, Method, Request, StatusCode, Url};
use ctx_session::Home;
use ctx_testkit::provider::FakeProvider;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::*;
use crate::http::{Server, Shutdown, status_routes};

/// A proxy in front of a provider.
struct Rig {
    provider: FakeProvider,
    home: TempDir,
    proxy: Arc<Proxy>,
    url: String,
    shutdown: Shutdown,
    running: JoinHandle<()>,
    warnings: Arc<Mutex<Vec<String>>>,
    notes: Arc<Mutex<Vec<String>>>,
    client: Client,
}

/// A whole response.
#[derive(Debug, PartialEq, Eq)]
struct Got {
    status: StatusCode,
    headers: HeaderMap,
    body: String,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("invalid JSON: {}", self.body))
    }
}

/// The settings of a rig.
#[derive(Clone)]
struct Set {
    window: Option<u32>,
    engine: Option<&'static str>,
    config: &'static str,
    /// The path after the provider's address.
    base: &'static str,
    /// Another server instead of the provider.
    upstream: Option<String>,
    replicas: Option<ReplicaStore>,
}

impl Default for Set {
    fn default() -> Self {
        let config = "{ server: { summaries: 'extractive' } }";
        Self {
            window: Some(16_000),
            engine: None,
            config,
            base: "",
            upstream: None,
            replicas: None,
        }
    }
}

impl Rig {
    async fn new(provider: FakeProvider, set: Set) -> Self {
        Self::at(TempDir::new().unwrap(), provider, set).await
    }

    /// Starts a second rig in the home of a running one.
    async fn beside(other: &Self, provider: FakeProvider) -> Self {
        let own = TempDir::new().unwrap();
        Self::in_home(other.home.path().to_owned(), own, provider, Set::default()).await
    }

    async fn at(home: TempDir, provider: FakeProvider, set: Set) -> Self {
        Self::in_home(home.path().to_owned(), home, provider, set).await
    }

    /// Starts a rig in front of another server.
    async fn before(url: String) -> Self {
        let provider = FakeProvider::builder().start().unwrap();
        let set = Set { upstream: Some(url), ..Set::default() };
        Self::new(provider, set).await
    }

    async fn in_home(
        path: std::path::PathBuf,
        home: TempDir,
        provider: FakeProvider,
        set: Set,
    ) -> Self {
        let config = Config::parse(set.config).unwrap();
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let sink = warnings.clone();
        let notes = Arc::new(Mutex::new(Vec::new()));
        let noted = notes.clone();
        let upstream = set.upstream.unwrap_or_else(|| format!("{}{}", provider.url(), set.base));
        let settings = Settings {
            config: config.section().unwrap(),
            host: Host { config, home: Home::at(&path) },
            upstreams: Upstreams::new(&[upstream], &UpstreamsConfig::default()).unwrap(),
            window: set.window.map(Tokens),
            engine: set.engine.map(str::to_owned),
            agent: None,
            replicas: set.replicas,
            warn: Box::new(move |text| sink.lock().unwrap().push(text.to_owned())),
            note: Box::new(move |text| noted.lock().unwrap().push(text.to_owned())),
        };
        let records = path.join("proxy/traces");
        let trace = Arc::new(Trace::at(records, ctx_trace::TraceLimits::default()).unwrap());
        let proxy = Proxy::new(settings, trace, Metrics::default()).unwrap();
        let bound = Server::new("127.0.0.1:0".parse().unwrap()).bind().await.unwrap();
        let (url, shutdown) = (bound.url(), Shutdown::default());
        proxy.announce(&url);
        let routes = status_routes(proxy.metrics()).merge(proxy.router());
        let running = tokio::spawn(bound.serve(routes, shutdown.clone()));
        let client = Client::default();
        Self { provider, home, proxy, url, shutdown, running, warnings, notes, client }
    }

    /// Stops it, and returns what another one needs to continue.
    async fn end(self) -> (TempDir, FakeProvider) {
        self.shutdown.stop();
        self.running.await.unwrap();
        self.proxy.settle();
        (self.home, self.provider)
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Got {
        send(&self.client, &self.url, method, path, headers, body.into()).await
    }

    async fn post(&self, path: &str, body: &Value) -> Got {
        let headers = [("authorization", "Bearer k"), ("content-type", "application/json")];
        self.send(Method::POST, path, &headers, body.to_string()).await
    }

    async fn chat(&self, messages: &[Value]) -> Got {
        self.post("/v1/chat/completions", &json!({ "model": "m", "messages": messages })).await
    }

    /// Returns the last request that the provider received.
    fn last(&self) -> ctx_testkit::provider::Request {
        self.provider.requests().pop().expect("a request arrived")
    }

    /// Returns the records of the only conversation.
    async fn records(&self) -> Vec<Arc<ctx_trace::Record>> {
        let mut sessions = self.proxy.trace().sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions.pop().unwrap().requests
    }
}

async fn send(
    client: &Client,
    base: &str,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: Bytes,
) -> Got {
    let url = Url::parse(&format!("{base}{path}")).unwrap();
    let headers = headers
        .iter()
        .map(|(name, value)| (name.parse::<HeaderName>().unwrap(), value.parse().unwrap()))
        .collect();
    let request = Request { method, url, headers, body };
    let mut response = client.send(request).await.unwrap();
    let body = response.body.read_up_to(1 << 24).await.unwrap();
    let body = String::from_utf8_lossy(&body).into_owned();
    Got { status: response.status, headers: response.headers, body }
}

fn user(text: impl Into<String>) -> Value {
    json!({ "role": "user", "content": text.into() })
}

/// Returns a call and its result of about `tokens` tokens.
fn work(n: usize, tokens: usize) -> [Value; 2] {
    let id = format!("call_{n}");
    let call = json!({ "id": id, "type": "function",
        "function": { "name": "read", "arguments": format!("{{\"path\":\"/src/file{n}.rs\"}}") } });
    let line = format!("line {n}: the quick brown fox jumps over the lazy dog\n");
    let text = line.repeat(tokens * 4 / line.len() + 1);
    [
        json!({ "role": "assistant", "content": null, "tool_calls": [call] }),
        json!({ "role": "tool", "tool_call_id": id, "content": text }),
    ]
}

/// Returns a conversation with `rounds` calls and results.
fn session(rounds: usize, tokens: usize) -> Vec<Value> {
    let mut all =
        vec![json!({ "role": "system", "content": "Be brief." }), user("Read the files.")];
    all.extend((0..rounds).flat_map(|n| work(n, tokens)));
    all
}

/// Returns a conversation with `turns` questions and answers.
fn talk(turns: usize, tokens: usize) -> Vec<Value> {
    let mut all = vec![json!({ "role": "system", "content": "Be brief." })];
    for n in 0..turns {
        all.push(user(format!("Tell me of the river number {n} in /maps/river{n}.txt.")));
        let line = format!("River {n} flows past the town of Town{n}, which has {n}00 houses. ");
        let text = line.repeat(tokens * 4 / line.len() + 1);
        all.push(json!({ "role": "assistant", "content": text }));
    }
    all.push(user("Which of them was the longest?"));
    all
}
