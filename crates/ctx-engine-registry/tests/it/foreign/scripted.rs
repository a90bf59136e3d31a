//! Engines in memory: one gives scripted answers, one is driven by the SDK.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::{
    AssembleRequest, Assembled, CompactRequest, CompactResult, Compacted, ContextEngine,
    EngineInfo, IngestRequest, IngestResult, Result,
};
use ctx_engine_registry::foreign::transport::{Fault, RawAnswer};
use ctx_engine_registry::foreign::{Channel, EngineSpec, Launcher, SupervisedEngine};
use ctx_engine_sdk::protocol::{self, Assemble, Call, Encoding, ErrorKind, Ingest, decode, verb};
use ctx_engine_sdk::{Driver, Engine, HostTransport};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

/// What an engine does when it is called.
pub(crate) enum Does {
    Answers(Value),
    Fails(Fault),
    /// It fails and is gone.
    Dies(Fault),
    /// It still works after the deadline.
    Works,
}

type Behaviour = dyn FnMut(&str, &Value) -> Does + Send;

/// The state that a test shares with the engines that it starts.
pub(crate) struct Stage {
    behaviour: Mutex<Box<Behaviour>>,
    pub(crate) calls: Mutex<Vec<(String, Value)>>,
    pub(crate) clock: Mutex<Duration>,
    carrier: &'static str,
}

impl Stage {
    pub(crate) fn new(
        carrier: &'static str,
        behaviour: impl FnMut(&str, &Value) -> Does + Send + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            behaviour: Mutex::new(Box::new(behaviour)),
            calls: Mutex::default(),
            clock: Mutex::default(),
            carrier,
        })
    }

    pub(crate) fn verbs(&self) -> Vec<String> {
        self.calls.lock().unwrap().iter().map(|(verb, _)| verb.clone()).collect()
    }

    pub(crate) fn last(&self, verb: &str) -> Value {
        let calls = self.calls.lock().unwrap();
        calls.iter().rev().find(|(v, _)| v == verb).expect("it was called").1.clone()
    }

    pub(crate) fn tick(&self, seconds: u64) {
        *self.clock.lock().unwrap() += Duration::from_secs(seconds);
    }

    /// Returns the supervised engine, with a [`Fallback`].
    pub(crate) fn supervised(self: &Arc<Self>, terms: EngineSpec) -> SupervisedEngine {
        let terms = EngineSpec { id: "scripted".into(), version: "0.9.0".into(), ..terms };
        let stage = self.clone();
        SupervisedEngine::new(terms, Box::new(Opened(self.clone())), Arc::new(Fallback::default()))
            .with_clock(move || *stage.clock.lock().unwrap())
    }
}

struct Opened(Arc<Stage>);

impl Launcher for Opened {
    fn open(&self) -> std::result::Result<Box<dyn Channel>, Fault> {
        Ok(Box::new(Scripted { stage: self.0.clone(), lost: AtomicBool::new(false) }))
    }
    fn transport(&self) -> &'static str {
        self.0.carrier
    }
    fn can_restart(&self) -> bool {
        self.0.carrier == "process"
    }
    fn features(&self) -> Vec<String> {
        vec!["log".into()]
    }
}

struct Scripted {
    stage: Arc<Stage>,
    lost: AtomicBool,
}

#[async_trait]
impl Channel for Scripted {
    async fn call(
        &self,
        verb: &str,
        params: Vec<u8>,
        _: Duration,
    ) -> std::result::Result<RawAnswer, Fault> {
        assert!(!self.is_lost(), "a lost engine was called");
        let params: Value = serde_json::from_slice(&params).expect("JSON");
        let does = (self.stage.behaviour.lock().unwrap())(verb, &params);
        self.stage.calls.lock().unwrap().push((verb.to_owned(), params));
        match does {
            Does::Answers(answer) => Ok(answer.to_string().into_bytes().into()),
            Does::Fails(fault) => Err(fault),
            Does::Works => std::future::pending().await,
            Does::Dies(fault) => {
                self.lost.store(true, Ordering::Relaxed);
                Err(fault)
            }
        }
    }
    fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }
}

/// Returns the scripted engine's answer to `hello`.
pub(crate) fn info(more: Value) -> Does {
    let mut info = json!({
        "protocol": "1.0", "id": "scripted", "name": "Scripted", "version": "1.2.3",
        "contents": true, "remembers": true,
    });
    if let (Some(info), Value::Object(more)) = (info.as_object_mut(), more) {
        info.extend(more);
    }
    Does::Answers(info)
}

pub(crate) fn refused(kind: ErrorKind) -> Fault {
    Fault::Refused(protocol::Error::new(kind, "no"))
}

pub(crate) fn crashed() -> Fault {
    Fault::Crashed { status: "exit status: 1".into(), stderr: Vec::new() }
}

pub(crate) fn late(verb: &str) -> Fault {
    Fault::Deadline { verb: verb.into(), after: Duration::from_secs(1), stderr: Vec::new() }
}

/// An engine that drops nothing, and compacts to the newest message.
pub(crate) struct Fallback(EngineInfo);

impl Default for Fallback {
    fn default() -> Self {
        Self(EngineInfo {
            id: "legacy".into(),
            name: "Fallback".into(),
            version: "0".into(),
            owns_compaction: false,
        })
    }
}

#[async_trait]
impl ContextEngine for Fallback {
    fn info(&self) -> &EngineInfo {
        &self.0
    }
    async fn ingest(&self, _: IngestRequest) -> Result<IngestResult> {
        Ok(IngestResult::default())
    }
    async fn assemble(&self, mut request: AssembleRequest) -> Result<Assembled> {
        let newest = request.view.len() - 1;
        request.view.pin(newest, "fallback", "served");
        Ok(Assembled { view: request.view, system_prompt_addition: None })
    }
    async fn compact(&self, request: CompactRequest) -> Result<CompactResult> {
        let newest = request.view.nodes().last().expect("not empty").entry().id().clone();
        let result = Some(Compacted {
            summary: "by the fallback".into(),
            first_kept_entry_id: newest,
            tokens_before: request.view.used(),
            tokens_after: None,
            details: None,
            staying: Vec::new(),
            projections: Vec::new(),
        });
        Ok(CompactResult { ok: true, compacted: true, reason: None, result })
    }
}

/// An engine of the SDK, driven in memory.
pub(crate) struct Driven<E> {
    driver: Mutex<Driver<E>>,
    pub(crate) seen: Arc<Seen>,
}

/// The bytes sent in both directions.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) bytes: Mutex<Vec<usize>>,
    /// The encoding of the last call.
    pub(crate) encoding: Mutex<Encoding>,
    pub(crate) last_answer: Mutex<Value>,
    pub(crate) last_params: Mutex<Value>,
}

impl<E: Engine> Default for Driven<E> {
    fn default() -> Self {
        Self { driver: Mutex::new(Driver::default()), seen: Arc::default() }
    }
}

/// Returns parameters as JSON, and the bytes of a call with them.
fn call<P: Serialize + DeserializeOwned>(verb: &str, params: &[u8]) -> (Value, Vec<u8>) {
    let encoding = Encoding::of(params);
    let params: P = decode(params).expect("parameters");
    let json = serde_json::to_value(&params).expect("JSON");
    let call = encoding.encode(&Call { id: 1, verb: verb.to_owned(), params });
    (json, call.expect("it is encoded"))
}

struct NoServices;

impl HostTransport for NoServices {
    fn call(&mut self, _: &[u8]) -> protocol::Result<Vec<u8>> {
        Err(protocol::Error::failed("no service is offered"))
    }
}

#[async_trait]
impl<E: Engine> Channel for Driven<E> {
    async fn call(
        &self,
        verb: &str,
        params: Vec<u8>,
        _: Duration,
    ) -> std::result::Result<RawAnswer, Fault> {
        self.seen.bytes.lock().unwrap().push(params.len());
        *self.seen.encoding.lock().unwrap() = Encoding::of(&params);
        let (params, call) = match verb {
            verb::ASSEMBLE => call::<Assemble>(verb, &params),
            verb::INGEST => call::<Ingest>(verb, &params),
            _ => call::<Value>(verb, &params),
        };
        *self.seen.last_params.lock().unwrap() = params;
        let mut driver = self.driver.lock().unwrap();
        let answer = driver.answer(&call, &mut NoServices, &AtomicBool::new(false));
        let encoding = Encoding::of(&answer);
        let answer: protocol::Answer<Value> = decode(&answer).expect("an answer");
        match (answer.ok, answer.error) {
            (Some(ok), _) => {
                let bytes = encoding.encode(&ok).expect("it is encoded");
                *self.seen.last_answer.lock().unwrap() = ok;
                Ok(bytes.into())
            }
            (None, error) => Err(Fault::Refused(error.expect("a value or an error"))),
        }
    }
    fn is_lost(&self) -> bool {
        false
    }
}
