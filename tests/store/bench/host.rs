//! A host process: one runtime for each tenant, over the same connections.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ctx_config::Config;
use ctx_core::NoTools;
use ctx_runtime::{NoListener, Runtime};
use ctx_session::Home;
use ctx_session::key::SessionKey;
use ctx_store::{Acquired, HostOptions, Leases, Line, LogHead, LogName, SessionLogs, SessionName};
use ctx_store_postgres::{Options, PostgresStore};
use ctx_testkit::chat::{ScriptedChat, Step, shared};
use tokio::task::JoinSet;

use crate::{LEASE, Sizes};

/// A message of the user, and the answer of the model.
const MESSAGE: &str = "The window of the vault is measured by the ledger, turn after turn. ";

/// A host, and its numbers.
#[derive(Clone)]
struct Host {
    number: usize,
    lines: usize,
    bytes: usize,
    sizes: Sizes,
    store: Option<PostgresStore>,
    runtimes: Arc<Vec<Runtime>>,
}

/// Runs a part in this process: says that it is ready, waits for a line, and prints the times of its
/// calls in microseconds.
pub(crate) fn run(part: &str, url: &str, number: usize, arguments: &[String]) {
    let tokio = tokio::runtime::Runtime::new().expect("a runtime");
    tokio.block_on(async {
        let home = tempfile::tempdir().expect("a folder");
        let mut host = Host::start(url, number, arguments).await;
        if part != "appends" {
            host.build(home.path());
        }
        let all = host.sizes.time();
        let times = match part {
            "appends" => host.appends(all).await,
            "turns" => {
                host.turns(host.own_sessions(), Duration::ZERO).await;
                ready();
                host.turns(host.own_sessions(), all).await
            }
            "hold" => {
                host.turns((0..host.sizes.of("killed")).collect(), Duration::ZERO).await;
                return ready();
            }
            _ => {
                ready();
                host.sizes.0.insert("at-once".to_owned(), host.sizes.of("killed"));
                host.turns((0..host.sizes.of("killed")).collect(), Duration::ZERO).await
            }
        };
        let micros: Vec<_> = times.iter().map(|time| time.as_micros().to_string()).collect();
        println!("{}", micros.join(" "));
    });
}

/// Says that this host is ready, and waits for a line.
fn ready() {
    println!("ready");
    std::io::stdout().flush().expect("it is read");
    std::io::stdin().read_line(&mut String::new()).expect("it is written");
}

impl Host {
    async fn start(url: &str, number: usize, arguments: &[String]) -> Self {
        let (own, rest): (Vec<_>, Vec<_>) =
            arguments.chunks(2).partition(|pair| ["--lines", "--bytes"].contains(&&*pair[0]));
        let value = |name: &str| {
            let pair = own.iter().find(|pair| pair[0] == name);
            pair.map_or(0, |pair| pair[1].parse().expect("a number"))
        };
        let sizes = Sizes::parse(&rest.concat());
        let options = Options { connections: sizes.of("connections"), ..Options::default() };
        let store = match url {
            "-" => None,
            url => Some(PostgresStore::open(url, options).await.expect("a store")),
        };
        let (lines, bytes) = (value("--lines"), value("--bytes"));
        Self { number, lines, bytes, sizes, store, runtimes: Arc::default() }
    }

    /// Makes the runtimes of all tenants.
    fn build(&mut self, home: &std::path::Path) {
        let one = |tenant: usize| {
            let config = Config::parse("{ session: { maintenance: { maxEntries: 1000000 } } }")
                .expect("valid");
            let model = ScriptedChat::new("script/a", 100_000).always(|_| Step::text(MESSAGE));
            let home = Home::at(home.join(tenant.to_string()));
            let builder = Runtime::builder(home, config).model(shared(model).1);
            let options = HostOptions { lease: LEASE, ..HostOptions::default() };
            let of_tenant = |store: &PostgresStore| {
                store.of_tenant(&format!("tenant {tenant}")).expect("it has a name")
            };
            match self.store.as_ref().map(of_tenant) {
                Some(store) => builder.shared(Arc::new(store), options),
                None => builder,
            }
            .build()
            .expect("a runtime")
        };
        self.runtimes = Arc::new((0..self.sizes.of("tenants")).map(one).collect());
    }

    fn own_sessions(&self) -> Vec<usize> {
        let hosts = self.sizes.of("hosts");
        (0..self.sizes.of("sessions")).filter(|session| session % hosts == self.number).collect()
    }

    /// Runs turns in these sessions for a time, and one in each at least. Returns how long each took.
    async fn turns(&self, sessions: Vec<usize>, time: Duration) -> Vec<Duration> {
        let mut tasks = JoinSet::new();
        let (began, at_once) = (Instant::now(), self.sizes.of("at-once").min(sessions.len()));
        for worker in 0..at_once {
            let mine: Vec<_> = sessions.iter().copied().skip(worker).step_by(at_once).collect();
            let host = self.clone();
            tasks.spawn(async move {
                let mut times = Vec::new();
                while times.len() < mine.len() || began.elapsed() < time {
                    let session = mine[times.len() % mine.len()];
                    let key: SessionKey =
                        format!("agent:main:chat-{session}").parse().expect("a key");
                    let runtime = &host.runtimes[session % host.runtimes.len()];
                    let called = Instant::now();
                    let turn = runtime.turn(&key, MESSAGE, &NoTools, &mut NoListener).await;
                    turn.expect("a turn");
                    times.push(called.elapsed());
                }
                times
            });
        }
        tasks.join_all().await.concat()
    }

    /// Appends to logs of its own for a time, with all connections.
    async fn appends(&self, time: Duration) -> Vec<Duration> {
        let mut tasks = JoinSet::new();
        let at_once = self.sizes.of("connections");
        let mut logs = Vec::new();
        for session in self.own_sessions() {
            let tenant = format!("direct {}", session % self.sizes.of("tenants"));
            let store = self.store.as_ref().expect("a store").of_tenant(&tenant).expect("a name");
            let name = SessionName { agent: "main".into(), key: format!("k{session}") };
            let granted = store.acquire(&name, "host", Duration::from_secs(3_600)).await;
            let Acquired::Granted(lease) = granted.expect("a lease") else { panic!("it is held") };
            let log = LogName { agent: "main".into(), file: format!("s{session}") };
            logs.push((store, lease, log, LogHead::NEW));
        }
        ready();
        let began = Instant::now();
        for worker in 0..at_once {
            let mut mine: Vec<_> = logs.iter().skip(worker).step_by(at_once).cloned().collect();
            let (count, bytes) = (self.lines, self.bytes);
            tasks.spawn(async move {
                let (mut times, own) = (Vec::new(), mine.len());
                while began.elapsed() < time && own > 0 {
                    let (store, lease, log, head) = &mut mine[times.len() % own];
                    let line = |n| Line { id: format!("{n}"), bytes: vec![b'x'; bytes] };
                    let lines: Vec<_> = (head.lines..).take(count).map(line).collect();
                    let called = Instant::now();
                    *head = store.append(lease, log, *head, &lines).await.expect("an append");
                    times.push(called.elapsed());
                }
                times
            });
        }
        tasks.join_all().await.concat()
    }
}
