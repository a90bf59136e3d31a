//! Sessions that two hosts share on PostgreSQL. A host has a home and a runtime of its own.

// Test helpers may unwrap.
#![allow(clippy::unwrap_used)]

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ctx_config::Config;
use ctx_core::{Error, ErrorKind, NoTools, Result, Timer, ToolOutput, Toolbox};
use ctx_runtime::{NoListener, Runtime, TurnOutcome};
use ctx_session::Home;
use ctx_session::key::{FileId, SessionKey};
use ctx_store::{Health, HostOptions};
use ctx_store_postgres::{Options, PostgresStore, migrate};
use ctx_testkit::chat::{ScriptedChat, ScriptedTools, Step, shared};
use ctx_testkit::postgres::PostgresServer;
use tempfile::TempDir;

/// The time of a lease in these tests.
const LEASE: Duration = Duration::from_secs(1);

async fn server() -> Option<PostgresServer> {
    let server = PostgresServer::start()?;
    migrate(&server.url("postgres")).await.unwrap();
    server.sql("create role ctx login in role ctx_app");
    Some(server)
}

struct Host {
    home: TempDir,
    store: PostgresStore,
    model: Arc<ScriptedChat>,
    runtime: Runtime,
}

/// A clock of a host that sleeps through everything.
struct Asleep;

#[async_trait::async_trait]
impl Timer for Asleep {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep(&self, _: Duration) {
        std::future::pending::<()>().await;
    }
}

impl Host {
    async fn start(server: &PostgresServer, name: &str, timer: Option<Arc<dyn Timer>>) -> Self {
        Self::with_lease(server, name, timer, LEASE).await
    }

    async fn with_lease(
        server: &PostgresServer,
        name: &str,
        timer: Option<Arc<dyn Timer>>,
        lease: Duration,
    ) -> Self {
        let wait = Duration::from_secs(20);
        let options = HostOptions { name: name.to_owned(), lease, wait, journal: false };
        Self::at(tempfile::tempdir().unwrap(), server, options, timer).await
    }

    /// Starts a host in a home, that may have sessions.
    async fn at(
        home: TempDir,
        server: &PostgresServer,
        options: HostOptions,
        timer: Option<Arc<dyn Timer>>,
    ) -> Self {
        // Longer than the server takes to start.
        let patience = Duration::from_secs(if options.journal { 1 } else { 15 });
        let settings = Options { patience, ..Options::default() };
        let store = PostgresStore::open(&server.url("ctx"), settings).await.unwrap();
        let (model, chat) = shared(ScriptedChat::new("script/a", 100_000));
        let memory = "{ enabled: true, crossSession: true }";
        let config = format!("{{ agents: {{ defaults: {{ memoryContext: {memory} }} }} }}");
        let config = Config::parse(&config).unwrap();
        let mut builder = Runtime::builder(Home::at(home.path()), config)
            .model(chat)
            .shared(Arc::new(store.clone()), options);
        if let Some(timer) = timer {
            builder = builder.timer(timer);
        }
        Self { home, store, model, runtime: builder.build().unwrap() }
    }

    async fn turn(&self, text: &str, tools: &dyn Toolbox) -> Result<TurnOutcome> {
        self.turn_of(key(), text, tools).await
    }

    async fn turn_of(
        &self,
        key: SessionKey,
        text: &str,
        tools: &dyn Toolbox,
    ) -> Result<TurnOutcome> {
        let mut listener = NoListener;
        let turn = self.runtime.turn(&key, text, tools, &mut listener);
        tokio::time::timeout(Duration::from_secs(60), turn).await.expect("no host waits for ever")
    }

    /// Returns the names and the texts of its transcripts, and of what is beside them.
    fn files(&self) -> Vec<(String, String)> {
        let folder = Home::at(self.home.path()).sessions_dir(&FileId::main());
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|file| file.unwrap())
            .map(|file| (file.file_name().into_string().unwrap(), file.path()))
            .filter(|(name, _)| name.contains(".jsonl") && !name.ends_with(".lock"))
            .map(|(name, path)| (name, std::fs::read_to_string(path).unwrap()))
            .collect();
        files.sort();
        files
    }

    fn last_request(&self) -> String {
        let requests = self.model.requests();
        let messages = &requests.last().unwrap().messages;
        messages.iter().map(|message| message.plain_text() + "\n").collect()
    }
}

fn key() -> SessionKey {
    SessionKey::main(FileId::main())
}

fn stored(server: &PostgresServer) -> String {
    server.sql("select string_agg(convert_from(body, 'utf8'), E'\\n' order by seq) from ctx.line")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_goes_on_at_the_host_that_gets_the_message() {
    let Some(server) = server().await else { return };
    let one = Host::start(&server, "one", None).await;
    let two = Host::start(&server, "two", None).await;
    for round in 0..3 {
        for (host, other) in [(&one, &two), (&two, &one)] {
            let text = format!("message {round} to {}", host.home.path().display());
            host.turn(&text, &NoTools).await.unwrap();
            assert!(host.last_request().contains(&text));
            if round > 0 {
                let theirs = format!("message {} to {}", round - 1, other.home.path().display());
                assert!(host.last_request().contains(&theirs), "{}", host.last_request());
            }
        }
    }
    one.runtime.close(&key()).await.unwrap();
    two.runtime.close(&key()).await.unwrap();
    one.turn("the last one", &NoTools).await.unwrap();
    one.runtime.close(&key()).await.unwrap();
    let [(name, text)] = &*one.files() else { panic!("{:?}", one.files()) };
    assert_eq!(stored(&server), text.trim_end());
    assert_eq!(server.sql("select file || '.jsonl' from ctx.log"), *name);
    // The other host has not opened the session since: its file is the beginning.
    assert!(text.starts_with(&two.files()[0].1));
    assert_eq!(server.sql("select count(*) from ctx.session"), "1");
    assert_eq!(server.sql("select holder is null from ctx.lease"), "t");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_session_is_handed_over_before_the_next_renewal() {
    let Some(server) = server().await else { return };
    // It renews its leases after 200 seconds.
    let long = Duration::from_secs(600);
    let one = Host::with_lease(&server, "one", None, long).await;
    let two = Host::with_lease(&server, "two", None, long).await;
    one.turn("remember the port 7431", &NoTools).await.unwrap();
    let listens = async {
        while !one.store.health().unwrap().is_listening {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), listens).await.expect("it does not listen");
    two.turn("which port?", &NoTools).await.unwrap();
    assert!(two.last_request().contains("7431"), "{}", two.last_request());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sessions_of_a_dead_host_go_on_elsewhere() {
    let Some(server) = server().await else { return };
    // It renews nothing, and releases nothing.
    let dead = Host::start(&server, "dead", Some(Arc::new(Asleep))).await;
    dead.turn("remember the port 7431", &NoTools).await.unwrap();
    let other = Host::start(&server, "other", None).await;
    other.turn("which port?", &NoTools).await.unwrap();
    assert!(other.last_request().contains("7431"), "{}", other.last_request());
    let epochs = "select max(epoch) - min(epoch) from ctx.line";
    assert_eq!(server.sql(epochs), "1");
}

/// Tools whose call ends when the test says so, and tells that it began.
fn slow() -> (ScriptedTools, Receiver<()>, Sender<()>) {
    let ((begins, began), (end, ends)) = (channel(), channel());
    let both = Mutex::new((begins, ends));
    let tools = ScriptedTools::default().with("slow", move |_| {
        let both = both.lock().unwrap();
        both.0.send(()).unwrap();
        both.1.recv().unwrap();
        ToolOutput::text("done")
    });
    (tools, began, end)
}

fn refused(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Locked, "{error}");
    assert!(error.to_string().contains("no longer holds the session"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_slept_through_its_lease_writes_nothing() {
    let Some(server) = server().await else { return };
    let asleep = Arc::new(Host::start(&server, "asleep", Some(Arc::new(Asleep))).await);
    let other = Host::start(&server, "other", None).await;
    asleep.model.then(Step::call("slow", "{}"));
    let (tools, began, end) = slow();
    let zombie = asleep.clone();
    let turn = tokio::spawn(async move { zombie.turn("run it", &tools).await });
    tokio::task::spawn_blocking(move || began.recv().unwrap()).await.unwrap();
    other.turn("what happened?", &NoTools).await.unwrap();
    let before = stored(&server);
    end.send(()).unwrap();
    refused(&turn.await.unwrap().unwrap_err());
    assert_eq!(stored(&server), before);
    assert_eq!(before.matches("what happened?").count(), 1);
    // Its own answer was never acknowledged, and leaves the file when it gets the session again.
    other.runtime.close(&key()).await.unwrap();
    asleep.turn("and now?", &NoTools).await.unwrap();
    let request = asleep.last_request();
    assert!(request.contains("what happened?") && request.contains("and now?"), "{request}");
    assert!(!request.contains("done"), "{request}");
    let [(_, text), (unstored, lost)] = &*asleep.files() else { panic!("{:?}", asleep.files()) };
    assert_eq!(stored(&server), text.trim_end());
    assert!(unstored.ends_with(".unstored-1") && lost.contains("done"), "{unstored}: {lost}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_one_host_archives_another_recalls() {
    let Some(server) = server().await else { return };
    let one = Host::start(&server, "one", None).await;
    let fact = "the parrot of the lighthouse keeper is called Quillon";
    one.turn(fact, &NoTools).await.unwrap();
    for n in 0..12 {
        let text = format!("step {n}: {}", "we talk about the weather of that day. ".repeat(300));
        one.turn(&text, &NoTools).await.unwrap();
    }
    assert!(one.runtime.compact(&key(), None).await.unwrap().compacted);
    one.runtime.close(&key()).await.unwrap();
    assert_eq!(server.sql("select count(*) from ctx.record where body like '%Quillon%'"), "1");
    let two = Host::start(&server, "two", None).await;
    let other: SessionKey = "agent:main:explicit:other".parse().unwrap();
    let question = "remind me, what is the parrot of the lighthouse keeper called?";
    two.turn_of(other.clone(), question, &NoTools).await.unwrap();
    two.turn_of(other, question, &NoTools).await.unwrap();
    assert!(two.last_request().contains("Quillon"), "{}", two.last_request());
}

/// Starts a host that keeps turns in a journal while the store is away.
async fn journaling(home: TempDir, server: &PostgresServer, lease: Duration) -> Host {
    let wait = Duration::from_secs(20);
    let options = HostOptions { name: "one".into(), lease, wait, journal: true };
    Host::at(home, server, options, None).await
}

/// Makes a turn, and returns whether it said that it is in the journal only.
async fn journals(host: &Host, text: &str) -> Result<bool> {
    let outcome = host.turn(text, &NoTools).await?;
    Ok(outcome.notices.iter().any(|notice| notice.text.contains("journal")))
}

fn suffixes(host: &Host) -> Vec<String> {
    let end = |name: &String| name.split(".jsonl").nth(1).unwrap_or_default().to_owned();
    host.files().iter().map(|(name, _)| end(name)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn turns_go_on_in_a_journal_while_the_store_is_away() {
    let Some(mut server) = server().await else { return };
    let host = journaling(tempfile::tempdir().unwrap(), &server, Duration::from_secs(120)).await;
    assert!(!journals(&host, "the first").await.unwrap());
    server.crash();
    assert!(journals(&host, "the second").await.unwrap());
    assert!(journals(&host, "the third").await.unwrap());
    assert_eq!(suffixes(&host), ["", ".journal"]);
    server.restart();
    // The breaker lets a call pass again after a time.
    while journals(&host, "once more").await.unwrap() {}
    assert_eq!(suffixes(&host), [""]);
    let (text, lines) = (stored(&server), host.files().remove(0).1);
    assert_eq!(text, lines.trim_end());
    assert_eq!((text.matches("the second").count(), text.matches("the third").count()), (1, 1));

    // The host ends while the store is away.
    server.crash();
    assert!(journals(&host, "before the end").await.unwrap());
    let Host { home, runtime, .. } = host;
    drop(runtime);
    server.restart();
    server.sql("update ctx.host set held_until = now() - interval '1 hour'");
    let host = journaling(home, &server, Duration::from_secs(120)).await;
    assert!(!journals(&host, "after the end").await.unwrap());
    assert!(host.last_request().contains("before the end"), "{}", host.last_request());
    assert_eq!(
        (stored(&server), suffixes(&host)),
        (host.files()[0].1.trim_end().into(), vec!["".into()])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_journal_ends_with_the_lease_and_yields_to_another_host() {
    let Some(mut server) = server().await else { return };
    let host = journaling(tempfile::tempdir().unwrap(), &server, Duration::from_secs(120)).await;
    assert!(!journals(&host, "the first").await.unwrap());
    server.crash();
    assert!(journals(&host, "only here").await.unwrap());
    let Host { home, runtime, .. } = host;
    drop(runtime);
    server.restart();
    server.sql("update ctx.host set held_until = now() - interval '1 hour'");
    let other = Host::start(&server, "two", None).await;
    other.turn("elsewhere", &NoTools).await.unwrap();
    other.runtime.close(&key()).await.unwrap();
    let host = journaling(home, &server, Duration::from_millis(1)).await;
    assert!(!journals(&host, "here again").await.unwrap());
    assert!(!host.last_request().contains("only here"), "{}", host.last_request());
    assert_eq!(suffixes(&host), ["", ".unstored-1"]);
    assert!(host.files()[1].1.contains("only here"));
    // Its lease has expired: another host may have the session.
    server.crash();
    let error = journals(&host, "too late").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Upstream, "{error}");
}
