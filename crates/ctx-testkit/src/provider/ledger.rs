//! The record of requests.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use ctx_core::Usage;
use tokio::sync::Notify;

use super::request::{Outcome, Request};
use crate::locked;

/// All requests so far, and the tasks that wait for more.
#[derive(Default)]
pub(super) struct Ledger {
    state: Mutex<LedgerState>,
    changed: Condvar,
    notify: Notify,
    observer: Option<Observer>,
}

/// A function called with each finished request.
pub(super) type Observer = Arc<dyn Fn(&Request) + Send + Sync>;

#[derive(Debug, Default)]
struct LedgerState {
    requests: Vec<Request>,
    last: Option<Instant>,
}

impl Ledger {
    /// Creates a ledger that calls `observer` with each finished request.
    pub(super) fn new(observer: Option<Observer>) -> Self {
        Self { observer, ..Self::default() }
    }

    /// Records a request and sets its number.
    pub(super) fn enter(self: &Arc<Self>, mut request: Request) -> (Request, Ticket) {
        let mut state = locked(&self.state);
        let at = state.requests.len();
        request.number = at + 1;
        state.requests.push(request.clone());
        state.last = Some(Instant::now());
        drop(state);
        self.wake();
        (request, Ticket { ledger: Arc::clone(self), at })
    }

    /// Returns all requests.
    pub(super) fn requests(&self) -> Vec<Request> {
        locked(&self.state).requests.clone()
    }

    /// Returns the number of requests.
    pub(super) fn len(&self) -> usize {
        locked(&self.state).requests.len()
    }

    /// Waits until `done` returns true for the requests, at most `limit`. Returns whether it did.
    pub(super) fn wait_until(&self, limit: Duration, done: impl Fn(&[Request]) -> bool) -> bool {
        let state = locked(&self.state);
        let waiting = self.changed.wait_timeout_while(state, limit, |state| !done(&state.requests));
        let (state, _) = waiting.unwrap_or_else(PoisonError::into_inner);
        done(&state.requests)
    }

    /// Waits until `done` returns true for the requests.
    pub(super) async fn until(&self, done: impl Fn(&[Request]) -> bool) {
        loop {
            let mut changed = std::pin::pin!(self.notify.notified());
            changed.as_mut().enable();
            if done(&locked(&self.state).requests) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no request has arrived for this time, starting now.
    pub(super) fn wait_idle(&self, idle: Duration) {
        let start = Instant::now();
        let mut state = locked(&self.state);
        loop {
            let quiet = state.last.unwrap_or(start).max(start).elapsed();
            let Some(left) = idle.checked_sub(quiet).filter(|left| !left.is_zero()) else { return };
            let woken = self.changed.wait_timeout(state, left);
            state = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn wake(&self) {
        self.changed.notify_all();
        self.notify.notify_waiters();
    }
}

/// Completes the record of one request. If it is dropped first, the client disconnected.
pub(super) struct Ticket {
    ledger: Arc<Ledger>,
    at: usize,
}

impl Ticket {
    /// Records status, refusal and usage of the answer.
    pub(super) fn answered(&self, status: u16, refusal: Option<String>, usage: Usage) {
        if let Some(request) = locked(&self.ledger.state).requests.get_mut(self.at) {
            request.status = status;
            request.refusal = refusal;
            if usage != Usage::default() {
                request.usage = usage;
            }
        }
    }

    /// Records the outcome; the first one counts.
    pub(super) fn set(&self, outcome: Outcome) {
        let mut state = locked(&self.ledger.state);
        let open = state.requests.get_mut(self.at).filter(|r| r.outcome == Outcome::Open);
        let ended = open.map(|request| {
            request.outcome = outcome;
            self.ledger.observer.is_some().then(|| request.clone())
        });
        drop(state);
        if let (Some(Some(request)), Some(observer)) = (ended, &self.ledger.observer) {
            observer(&request);
        }
        self.ledger.wake();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.set(Outcome::Abandoned);
    }
}
