//! One life of a runtime: concurrent turns of several users, until it ends.

use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use ctx_config::Config;
use ctx_core::{Error, ErrorKind, SummaryModels, Timestamp};
use ctx_model::TokioTimer;
use ctx_runtime::{NoListener, Runtime};
use ctx_session::Home;
use ctx_session::key::SessionKey;
use ctx_testkit::{Random, ScriptedSummarizer};
use tokio::sync::Notify;

use super::model::{Files, Mood, Moody};

const USERS: usize = 8;

/// An event of a turn, as its user sees it.
#[derive(Clone, Debug)]
pub(crate) enum TurnEvent {
    /// A message was sent.
    Sent(String),
    /// It was answered.
    Answered { message: String, answer: String },
    /// It failed in an acceptable way.
    Failed,
    /// It failed in an unacceptable way.
    Wrong(String),
}

/// The parameters of a life.
pub(crate) struct Life<'a> {
    pub(crate) home: &'a Path,
    pub(crate) number: usize,
    pub(crate) seed: u64,
    pub(crate) turns: usize,
    /// Number of sessions.
    pub(crate) sessions: usize,
    pub(crate) mood: Mood,
    /// Whether it ends in the middle of its turns.
    pub(crate) cut: bool,
}

pub(crate) fn key(n: usize) -> SessionKey {
    format!("agent:main:chat-{n}").parse().expect("a key")
}

/// A future that is dropped after a number of polls.
struct Cut<F> {
    inner: Pin<Box<F>>,
    polls: usize,
}

impl<F: Future> Future for Cut<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        if self.polls == 0 {
            return Poll::Ready(None);
        }
        self.polls -= 1;
        self.inner.as_mut().poll(context).map(Some)
    }
}

impl Life<'_> {
    /// Runs a life on a paused clock, so that waiting takes no time, and reports each turn. Returns
    /// the problems that the models found in their requests.
    pub(crate) fn live(&self, on_event: &(dyn Fn(TurnEvent) + Sync)) -> Vec<String> {
        let tokio = tokio::runtime::Builder::new_current_thread();
        let tokio = { tokio }.enable_all().start_paused(true).build().expect("a runtime");
        tokio.block_on(self.lived(on_event))
    }

    async fn lived(&self, on_event: &(dyn Fn(TurnEvent) + Sync)) -> Vec<String> {
        let life = self.number.to_string();
        let first = Moody::new("large", 48_000, &life, self.seed, self.mood);
        let second = Moody::new("small", 32_000, &life, self.seed ^ 1, Mood::Calm);
        let runtime = self.runtime(&first, &second);
        let left = AtomicUsize::new(self.turns);
        let enough = Notify::new();
        let users = (0..USERS).map(|user| self.user(user, &runtime, (&left, &enough), on_event));
        let users = futures_util::future::join_all(users);
        let over = async {
            match self.cut {
                // When this few turns remain, all running turns are dropped.
                true => enough.notified().await,
                false => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = users => {}
            () = over => {}
        }
        drop(runtime);
        let found = [&first, &second].map(|model| {
            std::mem::take(&mut *model.too_large.lock().unwrap_or_else(PoisonError::into_inner))
        });
        found.concat()
    }

    fn runtime(&self, first: &Arc<Moody>, second: &Arc<Moody>) -> Runtime {
        let random = Mutex::new(Random::seeded(self.seed ^ 2));
        let day = 24 * 60 * 60 * 1_000;
        let clock = AtomicI64::new(1_765_000_000_000);
        let clock = move || {
            let mut random = random.lock().unwrap_or_else(PoisonError::into_inner);
            let step = match random.below(500) {
                0 => -day / 24,
                1 => day / 48,
                _ => 1_000,
            };
            Timestamp(clock.fetch_add(step, Ordering::Relaxed))
        };
        let work = self.home.join("work");
        std::fs::create_dir_all(&work).expect("a folder");
        let config = serde_json::json!({ "agents": { "defaults": { "workspace": work } } });
        let config = Config::parse(&config.to_string()).expect("a configuration");
        let timer = Arc::new(TokioTimer::default());
        let writer = Arc::new(ScriptedSummarizer::faulty(self.seed));
        Runtime::builder(Home::at(self.home), config)
            .model(first.clone())
            .fallback(second.clone())
            .clock(clock)
            .timer(timer.clone())
            .summary_models(SummaryModels { chain: vec![writer], timer })
            .background(self.number.is_multiple_of(2))
            .limit(USERS - 2)
            .build()
            .expect("a runtime")
    }

    async fn user(
        &self,
        user: usize,
        runtime: &Runtime,
        (left, enough): (&AtomicUsize, &Notify),
        on_event: &(dyn Fn(TurnEvent) + Sync),
    ) {
        let mut random = Random::seeded(self.seed ^ (user as u64 + 3));
        let tools = Files::new();
        let mut n = 0;
        loop {
            let taken =
                left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| n.checked_sub(1));
            let Ok(at) = taken else { return };
            if at == self.turns / 8 {
                enough.notify_one();
            }
            let key = match self.mood {
                Mood::Wild => key(random.below(self.sessions)),
                // Each session once.
                Mood::Calm => key(at % self.sessions),
            };
            n += 1;
            if self.mood == Mood::Wild && random.once_in(60) {
                if let Err(error) = runtime.compact(&key, Some("the window")).await
                    && !is_expected(&error)
                {
                    on_event(TurnEvent::Wrong(format!("a compaction failed: {error}")));
                }
                continue;
            }
            let message = format!("message {}-{user}-{n}.", self.number);
            let mut text = message.clone();
            (0..random.below(300)).for_each(|_| text.push_str(" and another thing"));
            on_event(TurnEvent::Sent(message.clone()));
            let polls = match self.mood {
                Mood::Wild if random.once_in(20) => random.below(60),
                _ => usize::MAX,
            };
            let mut listener = NoListener;
            let turn = runtime.turn(&key, text, &tools, &mut listener);
            let done = Cut { inner: Box::pin(turn), polls }.await;
            on_event(match done {
                None => TurnEvent::Failed,
                Some(Ok(outcome)) => match outcome.answer {
                    Some(answer) => TurnEvent::Answered { message, answer: beginning(&answer) },
                    None => TurnEvent::Wrong(format!("{message} has no answer")),
                },
                Some(Err(error)) if self.mood == Mood::Wild && is_expected(&error) => {
                    TurnEvent::Failed
                }
                Some(Err(error)) => TurnEvent::Wrong(format!("{message} failed: {error}")),
            });
        }
    }
}

/// Returns the key of an answer: its first words up to the full stop.
pub(crate) fn beginning(text: &str) -> String {
    text.split_inclusive('.').next().unwrap_or_default().to_owned()
}

fn is_expected(error: &Error) -> bool {
    use ErrorKind::{Capability, CompactionFailure, Timeout, Upstream};
    matches!(error.kind(), Capability | CompactionFailure | Timeout | Upstream)
        && error.hint_text().is_some()
}
