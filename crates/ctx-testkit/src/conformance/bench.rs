//! The environment in which a case runs an engine.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ctx_core::{
    ContextEngine, Counter, EngineInfo, Result, Services, SummaryModels, TokenLedger, Tokens,
};

use crate::{Reply, ScriptedSummarizer};

use super::Start;
use super::host::{HastyTimer, HeldStore};
use super::run::StartEngine;
use super::sitting::Sitting;
use super::stop::Stop;

/// The progress of a case, for the thread that waits for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Doing(Arc<Mutex<BenchState>>);

#[derive(Debug, Default)]
struct BenchState {
    verb: Option<&'static str>,
    engine: Option<EngineInfo>,
    has_answered: bool,
}

impl Doing {
    pub(super) fn verb(&self) -> &'static str {
        self.state().verb.unwrap_or("start")
    }

    pub(super) fn engine(&self) -> Option<EngineInfo> {
        self.state().engine.clone()
    }

    pub(super) fn has_answered(&self) -> bool {
        self.state().has_answered
    }

    fn state(&self) -> MutexGuard<'_, BenchState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The environment in which a case runs an engine.
pub(super) struct Bench {
    start: Arc<StartEngine>,
    doing: Doing,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    pub(super) fn new(start: Arc<StartEngine>, doing: Doing) -> Result<Self, Stop> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| Stop::skipped(format!("no runtime for this case: {error}")))?;
        Ok(Self { start, doing, runtime })
    }

    /// Returns a host with an empty store and a model that writes faithful summaries.
    pub(super) fn house(&self, window: u32) -> House {
        House::new(window, Reply::Faithful)
    }

    /// Returns a host whose model never answers.
    pub(super) fn house_without_answers(&self, window: u32) -> House {
        House::new(window, Reply::Hang)
    }

    /// Starts an instance of the engine.
    pub(super) fn engine(&self, house: &House) -> Result<Running<'_>, Stop> {
        self.doing.state().verb = Some("start");
        let engine = (self.start)(&house.start);
        let engine = engine.map_err(|error| Stop::error("start", &error).fatal())?;
        self.doing.state().engine.get_or_insert_with(|| engine.info().clone());
        Ok(Running { bench: self, engine, ledger: house.ledger() })
    }
}

/// The services that an engine is started with.
pub(super) struct House {
    start: Start,
    pub(super) store: HeldStore,
}

impl House {
    fn new(window: u32, reply: Reply) -> Self {
        let store = HeldStore::default();
        let model = ScriptedSummarizer::new("conformance/scripted").otherwise(reply);
        let models =
            SummaryModels { chain: vec![Arc::new(model)], timer: Arc::new(HastyTimer::default()) };
        let services = Services {
            store: Some(Arc::new(store.clone())),
            summary_models: Some(models),
            ..Services::default()
        };
        let (counter, window) = (Counter::default(), Tokens(window));
        Self { start: Start { services, counter, window }, store }
    }

    /// A quarter of the window is reserved for the answer.
    pub(super) fn ledger(&self) -> TokenLedger {
        let Start { counter, window, .. } = self.start;
        TokenLedger::new(counter, window, Tokens(window.0 / 4))
    }
}

/// A running instance of the tested engine.
pub(super) struct Running<'b> {
    bench: &'b Bench,
    pub(super) engine: Arc<dyn ContextEngine>,
    ledger: TokenLedger,
}

impl<'b> Running<'b> {
    /// Opens an empty session.
    pub(super) fn session(&'b self, id: &str) -> Sitting<'b> {
        Sitting::new(self, id, self.ledger.clone())
    }

    /// Waits for an answer; an error fails the case.
    pub(super) fn call<T>(
        &self,
        verb: &'static str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T, Stop> {
        self.try_call(verb, work).map_err(|error| Stop::error(verb, &error))
    }

    /// Waits for a call that may fail.
    pub(super) fn try_call<T>(
        &self,
        verb: &'static str,
        work: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        self.bench.doing.state().verb = Some(verb);
        let answer = self.bench.runtime.block_on(work);
        if answer.is_ok() {
            let mut doing = self.bench.doing.state();
            // An engine that is not built in starts at its first call, and has its info only then.
            doing.engine = Some(self.engine.info().clone());
            doing.has_answered = true;
        }
        answer
    }

    /// Polls this number of times and then drops the future. Returns whether it was done before
    /// that.
    pub(super) fn give_up_after(&self, polls: u32, verb: &'static str, work: impl Future) -> bool {
        self.bench.doing.state().verb = Some(verb);
        self.bench.runtime.block_on(async {
            let mut work = std::pin::pin!(work);
            let mut left = polls;
            std::future::poll_fn(|context| {
                if work.as_mut().poll(context).is_ready() {
                    return std::task::Poll::Ready(true);
                }
                left = left.saturating_sub(1);
                if left == 0 {
                    return std::task::Poll::Ready(false);
                }
                context.waker().wake_by_ref();
                std::task::Poll::Pending
            })
            .await
        })
    }

    /// Disposes of the engine.
    pub(super) fn dispose(self) -> Result<(), Stop> {
        self.call("dispose", self.engine.dispose())
    }
}
