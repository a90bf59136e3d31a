//! The environment in which a case runs an engine.

use std::sync::{Arc, Mutex, MutexGuard};

use ctx_core::{
    ContextEngine, Counter, EngineInfo, Result, Services, SummaryModels, TokenLedger, Tokens,
};

use crate::{Reply, ScriptedSummarizer, locked};

use super::Start;
use super::host::{HastyTimer, HeldStore};
use super::run::StartEngine;
use super::sitting::TestSession;
use super::stop::Stop;

/// The progress of a case, for the thread that waits for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress(Arc<Mutex<BenchState>>);

#[derive(Debug, Default)]
pub(super) struct BenchState {
    verb: Option<&'static str>,
    pub(super) engine: Option<EngineInfo>,
    pub(super) has_answered: bool,
}

impl Progress {
    pub(super) fn verb(&self) -> &'static str {
        self.state().verb.unwrap_or("start")
    }

    pub(super) fn state(&self) -> MutexGuard<'_, BenchState> {
        locked(&self.0)
    }
}

/// The environment in which a case runs an engine.
pub(super) struct Bench {
    start: Arc<StartEngine>,
    progress: Progress,
    runtime: tokio::runtime::Runtime,
}

impl Bench {
    pub(super) fn new(start: Arc<StartEngine>, progress: Progress) -> Result<Self, Stop> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| Stop::skipped(format!("no runtime for this case: {error}")))?;
        Ok(Self { start, progress, runtime })
    }

    /// Returns a host with an empty store and a model that writes faithful summaries.
    pub(super) fn host(&self, window: u32) -> TestHost {
        TestHost::new(window, Reply::Faithful)
    }

    /// Returns a host whose model never answers.
    pub(super) fn host_without_answers(&self, window: u32) -> TestHost {
        TestHost::new(window, Reply::Hang)
    }

    /// Starts an instance of the engine.
    pub(super) fn engine(&self, host: &TestHost) -> Result<Running<'_>, Stop> {
        self.progress.state().verb = Some("start");
        let engine = (self.start)(&host.start);
        let engine = engine.map_err(|error| Stop::error("start", &error).fatal())?;
        self.progress.state().engine.get_or_insert_with(|| engine.info().clone());
        Ok(Running { bench: self, engine, ledger: host.ledger() })
    }
}

/// The services that an engine is started with.
pub(super) struct TestHost {
    start: Start,
    pub(super) store: HeldStore,
}

impl TestHost {
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
    pub(super) fn session(&'b self, id: &str) -> TestSession<'b> {
        TestSession::new(self, id, self.ledger.clone())
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
        self.bench.progress.state().verb = Some(verb);
        let answer = self.bench.runtime.block_on(work);
        if answer.is_ok() {
            let mut progress = self.bench.progress.state();
            // An engine that is not built in starts at its first call, and has its info only then.
            progress.engine = Some(self.engine.info().clone());
            progress.has_answered = true;
        }
        answer
    }

    /// Polls a future this number of times and then drops it. Returns whether it was ready before
    /// that.
    pub(super) fn give_up_after(&self, polls: u32, verb: &'static str, work: impl Future) -> bool {
        self.bench.progress.state().verb = Some(verb);
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
