use std::collections::BTreeMap;
use std::sync::Mutex;

use ctx_core::{
    Error, ErrorKind, Store, Summarizer, Summary, SummaryModels, SummaryRequest, Timer, Tokens,
};
use ctx_engine_registry::foreign::transport::{Canceller, HostCallHandler, RawAnswer, Request};
use ctx_engine_sdk::protocol::decode;

use super::*;

/// An engine that makes the host call in the parameters of a call.
struct Asks;

impl Transport for Asks {
    fn call(
        &mut self,
        request: Request,
        services: &mut HostCallHandler<'_>,
    ) -> Result<RawAnswer, Fault> {
        let call: Value = decode(&request.bytes).unwrap();
        Ok(services(&serde_json::to_vec(&call["params"]).unwrap()).into())
    }

    fn is_usable(&self) -> bool {
        true
    }

    fn canceller(&self) -> Arc<dyn Canceller> {
        Arc::new(Self)
    }
}

impl Canceller for Asks {
    fn cancel(&self, _: u64) {}

    fn kill(&self) -> Option<Vec<String>> {
        None
    }
}

#[derive(Default)]
struct InMemory(Mutex<BTreeMap<String, Vec<u8>>>);

#[async_trait::async_trait]
impl Store for InMemory {
    async fn get(&self, key: &str) -> Result<Option<Vec<u8>>> {
        Ok(self.0.lock().unwrap().get(key).cloned())
    }
    async fn put(&self, key: &str, value: &[u8]) -> Result<()> {
        self.0.lock().unwrap().insert(key.to_owned(), value.to_owned());
        Ok(())
    }
    async fn list(&self, prefix: &str) -> Result<Vec<String>> {
        let keys = self.0.lock().unwrap();
        Ok(keys.keys().filter(|key| key.starts_with(prefix)).cloned().collect())
    }
}

enum Model {
    NeedsTokio,
    Hangs,
    Panics,
    Refuses,
}

#[async_trait::async_trait]
impl Summarizer for Model {
    fn name(&self) -> &'static str {
        "scripted"
    }
    fn window(&self) -> Tokens {
        Tokens(1_000)
    }
    async fn summarize(&self, request: SummaryRequest) -> Result<Summary> {
        match self {
            Self::NeedsTokio => tokio::time::sleep(Duration::from_millis(1)).await,
            Self::Hangs => std::future::pending().await,
            Self::Panics => panic!("on purpose"),
            Self::Refuses => return Err(Error::new(ErrorKind::Upstream, "no").hint("later")),
        }
        let text = format!("{}|{}|{}", request.system, request.prompt, request.max_tokens.0);
        Ok(Summary { text, cut_off: true, usage: None })
    }
}

struct NoClock;

#[async_trait::async_trait]
impl Timer for NoClock {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
    async fn sleep(&self, _: Duration) {
        std::future::pending::<()>().await;
    }
}

/// A clock on which every timeout has expired.
struct LateClock;

#[async_trait::async_trait]
impl Timer for LateClock {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
    async fn sleep(&self, _: Duration) {}
}

fn engine(offer: HostServices) -> Engine {
    let engine = Engine::open(|| Ok(Box::new(Asks)));
    Engine { services: Arc::new(offer), ..engine }
}

fn with_model(model: Model) -> Engine {
    let models = SummaryModels { chain: vec![Arc::new(model)], timer: Arc::new(NoClock) };
    engine(HostServices::new("e").with_models(models))
}

fn ask(engine: &Engine, host: &str, params: Value) -> Value {
    let call = json!({"id": 9, "host": host, "params": params});
    let reply = block_on(engine.ask("ask", call, LONG)).unwrap();
    assert_eq!(reply["id"], 9);
    reply
}

#[test]
fn an_engine_can_continue_after_a_model_times_out() {
    let chain: Vec<Arc<dyn Summarizer>> = vec![Arc::new(Model::Hangs)];
    let models = SummaryModels { chain, timer: Arc::new(LateClock) };
    let engine = engine(HostServices::new("e").with_models(models));
    let reply = ask(&engine, "llm.complete", json!({"prompt": "sum up", "maxTokens": 10}));
    assert_eq!(reply["error"]["message"], "the model did not answer within 60 s");
}

#[test]
fn only_available_services_are_offered_and_others_are_refused() {
    assert_eq!(HostServices::new("e").features(), ["log"]);
    let all = HostServices::new("e")
        .with_models(SummaryModels {
            chain: vec![Arc::new(Model::Hangs)],
            timer: Arc::new(NoClock),
        })
        .with_counter(Counter::default())
        .with_store(Arc::new(InMemory::default()));
    assert_eq!(all.features(), ctx_engine_sdk::protocol::service::ALL);
    let engine = engine(HostServices::new("e"));
    for host in ["llm.complete", "tokens.count", "store.get", "store.put", "store.list", "x"] {
        assert_eq!(ask(&engine, host, json!({"key": "k"}))["error"]["kind"], "unsupported");
    }
    let line = json!({"level": "warn", "message": "something"});
    assert_eq!(ask(&engine, "log", line)["reply"], json!({}));
    assert_eq!(ask(&engine, "log", json!(7))["error"]["kind"], "badRequest");
    let reply = block_on(engine.ask("ask", json!("no host call"), LONG)).unwrap();
    assert_eq!(reply["error"]["kind"], "badRequest");
}

#[test]
fn engines_that_share_a_store_have_separate_keys() {
    let store = Arc::new(InMemory::default());
    let one = engine(HostServices::new("one").with_store(store.clone()));
    let two = engine(HostServices::new("two").with_store(store.clone()));
    let put = json!({"key": "tree/a", "value": {"n": 1}});
    assert_eq!(ask(&one, "store.put", put)["reply"], json!({}));
    let got = |engine: &Engine, key: &str| ask(engine, "store.get", json!({"key": key}));
    assert_eq!(got(&one, "tree/a")["reply"], json!({"value": {"n": 1}}));
    assert_eq!(got(&two, "tree/a")["reply"], json!({"value": null}));
    assert_eq!(got(&two, "../one/tree/a")["reply"], json!({"value": null}));
    let keys = |engine: &Engine| ask(engine, "store.list", json!({"prefix": "tr"}));
    assert_eq!(keys(&one)["reply"], json!({"keys": ["tree/a"]}));
    assert_eq!(keys(&two)["reply"], json!({"keys": []}));
    for key in ["a\nb".to_owned(), "k".repeat(600)] {
        assert_eq!(got(&one, &key)["error"]["kind"], "badRequest");
    }
    assert_eq!(store.0.lock().unwrap().keys().collect::<Vec<_>>(), ["engines/one/tree/a"]);
}

#[test]
fn a_model_runs_in_the_runtime_of_the_caller() {
    let engine = with_model(Model::NeedsTokio);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let params = json!({"system": "be brief", "prompt": "what?", "maxTokens": 7});
    let call = json!({"id": 9, "host": "llm.complete", "params": params});
    let reply = runtime.block_on(engine.ask("ask", call, LONG)).unwrap();
    assert_eq!(reply["reply"], json!({"text": "be brief|what?|7", "cutOff": true}));
}

#[test]
fn a_failing_model_is_an_error_of_the_service() {
    let asked = |model| {
        let reply = ask(&with_model(model), "llm.complete", json!({"prompt": "x", "maxTokens": 9}));
        reply["error"].clone()
    };
    let refused = json!({"kind": "failed", "message": "no", "hint": "later"});
    assert_eq!(asked(Model::Refuses), refused);
    assert_eq!(asked(Model::Panics)["message"], "the host's service panicked");
    let large = json!({"prompt": "x".repeat(4_000), "maxTokens": 9});
    let refused = ask(&with_model(Model::Hangs), "llm.complete", large);
    assert_eq!(refused["error"]["kind"], "badRequest");
}

#[test]
fn a_fallback_answers_if_the_first_model_cannot() {
    struct Answers;
    #[async_trait::async_trait]
    impl Summarizer for Answers {
        fn name(&self) -> &'static str {
            "fallback"
        }
        fn window(&self) -> Tokens {
            Tokens(10_000)
        }
        async fn summarize(&self, _: SummaryRequest) -> Result<Summary> {
            Ok(Summary { text: "by the fallback".into(), ..Summary::default() })
        }
    }
    let asked = |chain: Vec<Arc<dyn Summarizer>>, characters| {
        let models = SummaryModels { chain, timer: Arc::new(NoClock) };
        let engine = engine(HostServices::new("e").with_models(models));
        let params = json!({"prompt": "x".repeat(characters), "maxTokens": 9});
        ask(&engine, "llm.complete", params)
    };
    let refused = asked(vec![Arc::new(Model::Refuses), Arc::new(Answers)], 1);
    assert_eq!(refused["reply"]["text"], "by the fallback");
    let too_small = asked(vec![Arc::new(Model::Hangs), Arc::new(Answers)], 6_000);
    assert_eq!(too_small["reply"]["text"], "by the fallback");
    let too_large = asked(vec![Arc::new(Model::Refuses), Arc::new(Answers)], 60_000);
    assert_eq!(too_large["error"]["kind"], "badRequest");
    let none = asked(vec![Arc::new(Model::Refuses), Arc::new(Model::Hangs)], 6_000);
    assert!(none["error"]["message"].as_str().is_some_and(|said| said.contains("1000")), "{none}");
}

#[test]
fn a_hanging_model_call_ends_with_the_engine_call() {
    let engine = with_model(Model::Hangs);
    let call = json!({"host": "llm.complete", "params": {"prompt": "x", "maxTokens": 9}});
    let late = block_on(engine.ask("ask", call, SHORT)).unwrap_err();
    assert_eq!(late.name(), "deadline");
    assert_eq!(ask(&engine, "log", json!({}))["reply"], json!({}));
}
