use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ctx_core::{Role, Timer, Timestamp};
use ctx_memory::facts::{FactStore, Scope};
use ctx_memory::{Config, Memory, MemorySettings};
use ctx_search::{Query, Segment, SegmentId};
use ctx_session::key::{FileId, SessionKey};
use ctx_session::{Home, SessionEntry, SessionStore};
use ctx_shared::{HostMemory, SharedSessions};
use ctx_store::{
    Acquired, AnyStore, Directory, HostOptions, Lease, Leases, Line, LogHead, LogName, Record,
    RecordKind, RecordLogs, SessionLogs, SessionName,
};
use ctx_store_postgres::{Options, PostgresStore, migrate};
use ctx_testkit::postgres::PostgresServer;

/// How often a host looks for erasures before the test fails.
const MOST: usize = 100_000;

/// Time passes as it is waited for.
#[derive(Default)]
struct FakeTime(AtomicU64);

#[async_trait::async_trait]
impl Timer for FakeTime {
    fn elapsed(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::Relaxed))
    }

    async fn sleep(&self, duration: Duration) {
        let milliseconds = u64::try_from(duration.as_millis()).unwrap();
        self.0.fetch_add(milliseconds, Ordering::Relaxed);
        tokio::task::yield_now().await;
    }
}

/// A store with a session of three lines, and a host that has it in its files.
struct House {
    _server: PostgresServer,
    store: PostgresStore,
    sessions: Arc<SharedSessions>,
    folder: tempfile::TempDir,
    home: Home,
    key: SessionKey,
    log: LogName,
    head: LogHead,
}

fn line(id: &str, text: &str) -> Line {
    Line { id: id.into(), bytes: format!(r#"{{"id":"{id}","text":"{text}"}}"#).into() }
}

impl House {
    async fn new() -> Option<Self> {
        let server = PostgresServer::start()?;
        migrate(&server.url("postgres")).await.unwrap();
        server.sql("create role ctx login in role ctx_app");
        let store = PostgresStore::open(&server.url("ctx"), Options::default()).await.unwrap();
        let key: SessionKey = "agent:main:explicit:one".parse().unwrap();
        let log = LogName { agent: "main".into(), file: "s1".into() };
        let folder = tempfile::tempdir().unwrap();
        let home = Home::at(folder.path());
        let (host, shared): (_, AnyStore) = (HostOptions::default(), Arc::new(store.clone()));
        let sessions = SharedSessions::new(shared, &host, home.clone(), Arc::<FakeTime>::default());
        let sessions = Arc::new(sessions);
        let mut house =
            Self { _server: server, store, sessions, folder, home, key, log, head: LogHead::NEW };
        let lease = house.lease().await;
        let lines = [
            line("a", "see own.txt and both.txt"),
            line("b", "secret, see gone.txt and both.txt and others.txt"),
            line("c", "later"),
        ];
        house.head = house.store.append(&lease, &house.log, LogHead::NEW, &lines).await.unwrap();
        let entry = serde_json::to_string(&SessionEntry::new("s1", Timestamp(1))).unwrap();
        house.store.compare_and_put(&lease.session, None, &entry).await.unwrap();
        house.store.release(&lease).await.unwrap();
        house.sessions.fetch(&house.key).await.unwrap().release().await;
        assert!(std::fs::read_to_string(house.file("s1.jsonl")).unwrap().contains("secret"));
        Some(house)
    }

    async fn lease(&self) -> Lease {
        let name = SessionName { agent: "main".into(), key: self.key.to_string() };
        let granted = self.store.acquire(&name, "another host", Duration::from_secs(60)).await;
        let Acquired::Granted(lease) = granted.unwrap() else { panic!("it is held") };
        lease
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.sessions_dir(&FileId::main()).join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder.path().join("agents/main").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Returns the files of the agent that contain a text.
    fn holding(&self, text: &str) -> Vec<String> {
        let (root, mut found) = (self.folder.path().join("agents/main"), Vec::new());
        let mut folders = vec![root.clone()];
        while let Some(folder) = folders.pop() {
            // Files may be deleted meanwhile.
            let Ok(files) = std::fs::read_dir(folder) else { continue };
            for path in files.filter_map(|file| Some(file.ok()?.path())) {
                let holds = || {
                    let bytes = std::fs::read(&path).unwrap_or_default();
                    String::from_utf8_lossy(&bytes).contains(text)
                };
                if path.is_dir() {
                    folders.push(path);
                } else if holds() {
                    let name = path.strip_prefix(&root).unwrap().to_string_lossy();
                    found.push(name.replace('\\', "/"));
                }
            }
        }
        found.sort();
        found
    }

    /// Plants what a host may have of the session beside its file.
    fn plant(&self) {
        for suffix in ["unstored-1", "archived-1", "deleted.2026-02-01T10-00-00.000Z"] {
            self.write(&format!("sessions/s1.jsonl.{suffix}"), "secret");
        }
        self.write("sessions/s2.jsonl", "others.txt");
        for result in ["own", "both", "gone", "others"] {
            self.write(&format!("tool-results/{result}.txt"), &format!("result {result}"));
        }
        self.write("store/engines/x/1", "\"engines/x/head/agent:main:explicit:one\"\nsecret");
        self.write("store/engines/x/2", "\"engines/x/head/s1\"\nsecret");
        self.write("store/engines/x/3", "\"engines/x/head/s12\"\nanother");
    }

    /// Renews leases as an idle host does, until a condition holds.
    async fn keep_until(&self, holds: impl Fn() -> bool) {
        for _ in 0..MOST {
            if holds() {
                return;
            }
            assert_eq!(self.sessions.keep().await, []);
        }
        panic!("the erasure was not applied");
    }
}

#[tokio::test]
async fn an_idle_host_erases_what_another_host_erased() {
    let Some(mut house) = House::new().await else { return };
    house.plant();
    let lease = house.lease().await;
    let lines = [line("a", "see own.txt and both.txt"), line("c", "later")];
    house.head = house.store.replace(&lease, &house.log, house.head, &lines).await.unwrap();
    house.store.release(&lease).await.unwrap();
    let done = house.folder.path().join("agents/main/erasures");
    house.keep_until(|| done.exists()).await;
    assert_eq!(house.holding("secret"), Vec::<String>::new());
    assert_eq!(house.holding("later"), ["sessions/s1.jsonl"]);
    let results = ["both", "others", "own"].map(|name| format!("tool-results/{name}.txt"));
    assert_eq!(house.holding("result "), results);
    assert_eq!(house.holding("another"), ["store/engines/x/3"]);
    // The session goes on from there.
    let fetched = house.sessions.fetch(&house.key).await.unwrap();
    let session = house.sessions.opened(fetched, &house.key, &house.file("s1.jsonl")).unwrap();
    let text = std::fs::read_to_string(house.file("s1.jsonl")).unwrap();
    std::fs::write(house.file("s1.jsonl"), text + "{\"id\":\"d\"}\n").unwrap();
    session.commit(&house.file("s1.jsonl")).await.unwrap();
    session.release().await;
    let head = house.store.head(&house.log).await.unwrap();
    assert_eq!(head, Some(LogHead { generation: 2, lines: 3 }));
}

#[tokio::test]
async fn an_idle_host_deletes_a_session_that_another_host_removed() {
    let Some(house) = House::new().await else { return };
    house.plant();
    let lease = house.lease().await;
    house.store.remove(&lease, &house.log).await.unwrap();
    house.store.release(&lease).await.unwrap();
    let done = house.folder.path().join("agents/main/erasures");
    house.keep_until(|| done.exists()).await;
    assert_eq!(house.holding("secret"), Vec::<String>::new());
    assert!(!house.file("s1.jsonl").exists());
    let index = SessionStore::at(house.home.sessions_file(&FileId::main())).load().unwrap();
    assert!(index.get(&house.key).is_none());
    // The entry that the store still has does not bring it back.
    house.sessions.fetch(&house.key).await.unwrap().release().await;
    let name = SessionName { agent: "main".into(), key: house.key.to_string() };
    assert_eq!(house.store.get(&name).await.unwrap(), None);
    assert_eq!(std::fs::read_to_string(house.file("s1.jsonl.generation")).unwrap(), "2");
}

#[tokio::test]
async fn an_idle_host_forgets_what_another_host_forgot() {
    let Some(house) = House::new().await else { return };
    let (folder, config) = (house.home.memory_dir(&FileId::main()), Config::default());
    let settings = MemorySettings::of(&Config { eviction_days: 0, ..config }, None);
    let facts = FactStore::open(folder.join("knowledge.jsonl"), Scope::default()).unwrap();
    let facts = Some(Arc::new(Mutex::new(facts)));
    let memory = HostMemory { memory: Memory::open(&folder, settings), facts, folder };
    let mut segments = Vec::new();
    for (text, id) in [("a secret", "00000001"), ("another", "00000002")] {
        let fact = serde_json::json!({
            "id": format!("{id}-0000-8000-8000-000000000000"), "type": "decision", "content": text,
            "timestamp": 1, "validFrom": 1, "sessionId": "s1",
        });
        let segment = Segment {
            id: SegmentId::of("s1", &Role::User, text),
            agent_id: "main".into(),
            session_id: "s1".into(),
            timestamp: Timestamp(1),
            archived_at: None,
            role: Role::User,
            name: None,
            content: text.into(),
            tokens: 2,
            metadata: Default::default(),
            entry_id: None,
        };
        segments.push(segment.id.to_string());
        let segment = serde_json::to_vec(&segment).unwrap();
        let segment = Record { id: segments[segments.len() - 1].clone(), bytes: segment };
        let fact =
            Record { id: fact["id"].as_str().unwrap().into(), bytes: fact.to_string().into() };
        house.store.put("main", RecordKind::Segment, &[segment]).await.unwrap();
        house.store.put("main", RecordKind::Fact, &[fact]).await.unwrap();
    }
    let agent = FileId::main();
    house.sessions.fetch_memory(&agent, &memory).await.unwrap();
    memory.memory.settle().unwrap();
    let files = house.holding("a secret");
    assert!(files.iter().any(|file| file.ends_with("knowledge.jsonl")), "{files:?}");
    assert!(files.iter().any(|file| file.ends_with("segments.jsonl")), "{files:?}");

    let fact = ["00000001-0000-8000-8000-000000000000".to_owned()];
    assert_eq!(house.store.forget("main", RecordKind::Segment, &segments[..1]).await.unwrap(), 1);
    assert_eq!(house.store.forget("main", RecordKind::Fact, &fact).await.unwrap(), 1);
    house.keep_until(|| house.holding("a secret").is_empty()).await;
    let mut kept = house.holding("another");
    kept.retain(|file| file.ends_with(".jsonl"));
    assert_eq!(kept.len(), 2, "{kept:?}");
    let query = &Query { text: "secret", session: None, limit: 9, now: Timestamp(1) };
    let found = memory.memory.search(query, None).unwrap();
    assert!(found.is_empty(), "{found:?}");
    // It cannot come back from this host.
    house.sessions.send_memory(&agent, &memory).await.unwrap();
    let all = house.store.since("main", RecordKind::Segment, 0, 9).await.unwrap();
    assert_eq!((all.records.len(), all.forgotten.len()), (1, 1));
}
