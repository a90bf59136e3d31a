//! Several proxies that share a store.

use ctx_store_postgres::{Options, PostgresStore, migrate};
use ctx_testkit::postgres::PostgresServer;
use ctx_testkit::provider::{FakeProvider, Step};
use tokio::runtime::{Builder, Runtime};

use super::*;

/// A database, and the runtime of the calls to it.
struct Database {
    server: PostgresServer,
    runtime: Option<Runtime>,
    store: ReplicaStore,
}

impl Database {
    /// Starts it; `None` if PostgreSQL is not installed.
    fn start() -> Option<Self> {
        let server = PostgresServer::start()?;
        let (owner, program) = (server.url("postgres"), server.url("ctx"));
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let handle = runtime.handle().clone();
        let opening = runtime.spawn(async move { migrate(&owner).await });
        let migrated = std::thread::spawn(move || handle.block_on(opening)).join().unwrap();
        migrated.unwrap().unwrap();
        server.sql("create role ctx login in role ctx_app");
        let handle = runtime.handle().clone();
        let opened = std::thread::spawn(move || {
            let patience = std::time::Duration::from_secs(1);
            let options = Options { patience, ..Options::default() };
            handle.block_on(PostgresStore::open(&program, options))
        });
        let store = Arc::new(opened.join().unwrap().unwrap());
        let store = ReplicaStore::new(store, runtime.handle().clone());
        Some(Self { server, runtime: Some(runtime), store })
    }

    fn set(&self) -> Set {
        Set { replicas: Some(self.store.clone()), ..Set::default() }
    }

    async fn rig(&self) -> Rig {
        Rig::new(provider(), self.set()).await
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn provider() -> FakeProvider {
    FakeProvider::builder().respond(|_| Step::text("done")).start().unwrap()
}

fn sent(rig: &Rig) -> Vec<Value> {
    rig.last().json["messages"].as_array().cloned().unwrap_or_default()
}

/// Returns the warnings of the store.
fn warnings(rig: &Rig) -> Vec<String> {
    let all = rig.warnings.lock().unwrap().clone();
    all.into_iter().filter(|warning| warning.contains("replicas")).collect()
}

#[tokio::test]
async fn any_replica_goes_on_with_the_same_beginning() {
    let Some(database) = Database::start() else { return };
    let rigs = [database.rig().await, database.rig().await, database.rig().await];
    let mut all = session(24, 1_500);
    let (mut before, mut cuts): (Vec<Value>, usize) = (Vec::new(), 0);
    for n in 24..40 {
        let rig = &rigs[n % 3];
        rig.chat(&all).await;
        let now = sent(rig);
        let sessions = rig.proxy.trace().sessions();
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        let record = sessions[0].requests.last().unwrap();
        if record.compaction.is_some() || !record.actions.is_empty() {
            cuts += 1;
        } else {
            assert_eq!(now[..before.len()], before[..], "request {n} changed its beginning");
        }
        before = now;
        all.extend(work(n, 300));
    }
    assert!((1..8).contains(&cuts), "{cuts} of 16 requests were cut again");
    for rig in &rigs {
        assert_eq!(warnings(rig), Vec::<String>::new());
        rig.chat(&all).await;
        assert_eq!(sent(rig), sent(&rigs[0]));
    }
}

#[tokio::test]
async fn a_compaction_item_of_one_replica_is_restored_by_another() {
    use super::client_compaction::{body, history, kept, message};
    let Some(database) = Database::start() else { return };
    let set = Set { window: Some(64_000), ..database.set() };
    let rigs = [
        Rig::new(provider(), set.clone()).await,
        Rig::new(provider(), set.clone()).await,
        Rig::new(provider(), set).await,
    ];
    let mut items = history(3);
    for (rig, question) in [(0, "And now?"), (1, "And then?"), (2, "Why?")] {
        items = kept(&items, rigs[rig].compact(&items).await);
        items.push(message("user", question));
        let next = &rigs[(rig + 1) % 3];
        let received = next.received(&items).await;
        let text = json!(received).to_string();
        assert!(text.contains("Never push to main") && text.contains("src/file0.rs"), "{text}");
        assert!(text.contains("<summary>") && !text.contains("not available any more"), "{text}");
        assert_eq!(next.post("/v1/responses", &body(&items)).await.status, 200);
        items.push(message("assistant", "done"));
    }
}

#[tokio::test]
async fn a_history_at_the_provider_is_known_to_all_replicas() {
    use super::continued::{RESPONSES, turn};
    let Some(database) = Database::start() else { return };
    let refused = |request: &ctx_testkit::provider::Request| {
        let refers = request.json.to_string().contains("item_reference")
            || !request.json["previous_response_id"].is_null();
        if refers { Step::overflow() } else { Step::text("done") }
    };
    for by_item in [false, true] {
        let first = database.rig().await.post(RESPONSES, &turn(0, None)).await.json();
        let provider = FakeProvider::builder().respond(refused).start().unwrap();
        let rig = Rig::new(provider, database.set()).await;
        let mut body = turn(1, None);
        if by_item {
            let item = json!({ "type": "item_reference", "id": first["output"][0]["id"] });
            body["input"] = json!([turn(0, None)["input"][0], item, body["input"][0]]);
        } else {
            body["previous_response_id"] = first["id"].clone();
        }
        assert_eq!(rig.post(RESPONSES, &body).await.status, 200);
        let sent = rig.last().json["input"].to_string();
        assert!(sent.contains("file0.txt") && sent.contains("Rule 1"), "{sent}");
    }
}

#[tokio::test]
async fn what_a_clients_summary_lost_is_put_back_by_all_replicas() {
    use super::client_summaries::*;
    let Some(database) = Database::start() else { return };
    let mut rigs = Vec::new();
    for _ in 0..3 {
        rigs.push(Rig::new(super::client_summaries::provider(), database.set()).await);
    }
    rigs[0].post(MESSAGES, &anthropic(&with(conversation(), user(CLAUDE)))).await;
    let mut all = continued(SUMMARY);
    let mut first = None;
    for n in [1, 2, 0, 1] {
        rigs[n].post(MESSAGES, &anthropic(&all)).await;
        let sent = rigs[n].last().json["messages"][0].to_string();
        assert!(sent.contains(RULE), "{n}: {sent}");
        assert_eq!(first.get_or_insert_with(|| sent.clone()), &sent, "replica {n}");
        all = with(all, user("Go on."));
    }
}

#[tokio::test]
async fn results_of_ctx_stay_with_those_of_the_client_at_all_replicas() {
    use super::retrieval::{APIS, calls_both, calls_stay};
    let Some(database) = Database::start() else { return };
    for api in APIS {
        let rigs = [
            Rig::new(calls_both(), database.set()).await,
            Rig::new(calls_both(), database.set()).await,
        ];
        calls_stay(&[&rigs[0], &rigs[1]], api, false).await;
    }
}

#[tokio::test]
async fn equal_requests_at_once_are_cut_once() {
    let Some(database) = Database::start() else { return };
    let rigs = [database.rig().await, database.rig().await];
    let all = talk(40, 600);
    let answered = tokio::join!(rigs[0].chat(&all), rigs[1].chat(&all));
    assert_eq!((answered.0.status, answered.1.status), (StatusCode::OK, StatusCode::OK));
    assert_eq!(sent(&rigs[0]), sent(&rigs[1]));
    let heads = database.server.sql("select count(*) from ctx.conversation");
    assert_eq!(heads.trim(), "1");
}

#[tokio::test]
async fn requests_pass_while_the_store_is_away_and_are_shared_again_later() {
    let Some(mut database) = Database::start() else { return };
    let rigs = [database.rig().await, database.rig().await];
    let mut all = session(30, 1_500);
    rigs[0].chat(&all).await;
    let first = sent(&rigs[0]);
    database.server.crash();
    all.extend(work(30, 20));
    let got = rigs[0].chat(&all).await;
    assert_eq!((got.status, &sent(&rigs[0])[..first.len()]), (StatusCode::OK, &first[..]));
    assert!(warnings(&rigs[0])[0].contains("cannot be reached"), "{:?}", warnings(&rigs[0]));
    let health = rigs[0].send(Method::GET, "/healthz", &[], "").await;
    assert!(health.status == 200 && health.body.contains("cannot be reached"), "{health:?}");
    let metrics = rigs[0].send(Method::GET, "/metrics", &[], "").await.body;
    assert!(metrics.contains("ctx_store_reachable 0\n"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n") && metrics.matches("# EOF").count() == 1, "{metrics}");
    database.server.restart();
    all.extend(work(31, 20));
    for rig in &rigs {
        rig.chat(&all).await;
        assert_eq!(sent(rig)[..first.len()], first[..]);
    }
    assert_eq!(sent(&rigs[0]), sent(&rigs[1]));
}
