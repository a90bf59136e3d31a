//! Repetitions of calls, and the circuit breaker that ends them: while the database cannot be
//! reached, one call at a time tries, and the others fail at once.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ctx_core::{ErrorKind, Result};
use tokio::time::{Instant, sleep};

use crate::error::{Failure, unreachable};
use crate::{FIRST_WAIT, Options, locked};

/// The longest wait between two repetitions.
const LONGEST_WAIT: Duration = Duration::from_secs(1);

/// What is known of the database, and what was counted, by all clones of a store.
#[derive(Default)]
pub(crate) struct Breaker {
    state: Mutex<State>,
    failures: AtomicU64,
    retries: AtomicU64,
}

#[derive(Default)]
struct State {
    /// When the database last answered.
    answered: Option<Instant>,
    open: Option<Open>,
    last_error: Option<String>,
}

/// The database cannot be reached.
struct Open {
    since: Instant,
    /// When the next call may try.
    next: Instant,
    is_probed: bool,
}

/// What a breaker has seen.
pub(crate) struct Seen {
    pub(crate) unreachable: Option<Duration>,
    pub(crate) last_error: Option<String>,
    pub(crate) failures: u64,
    pub(crate) retries: u64,
}

impl Breaker {
    /// Begins a call.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Upstream`] while the breaker is open, unless the call is the one that tries.
    pub(crate) fn call<'a>(&'a self, options: &'a Options) -> Result<Retry<'a>> {
        let mut state = locked(&self.state);
        let now = Instant::now();
        let is_probe = match &mut state.open {
            None => false,
            Some(open) if !open.is_probed && now >= open.next => {
                open.is_probed = true;
                true
            }
            Some(open) => {
                let next = open.next.saturating_duration_since(now).as_secs_f64();
                return Err(unreachable("the database of the shared store cannot be reached")
                    .with("for seconds", (now - open.since).as_secs())
                    .with("next attempt in seconds", format_args!("{next:.1}")));
            }
        };
        Ok(Retry { breaker: self, options, begun: now, wait: FIRST_WAIT, is_probe })
    }

    fn answered(&self) {
        let mut state = locked(&self.state);
        (state.answered, state.open) = (Some(Instant::now()), None);
    }

    /// Opens, unless another call was answered since this one began.
    fn open(&self, begun: Instant, pause: Duration) {
        let mut state = locked(&self.state);
        if state.answered.is_none_or(|answered| answered < begun) {
            let (next, is_probed) = (Instant::now() + pause, false);
            let since = state.open.as_ref().map_or(begun, |open| open.since);
            state.open = Some(Open { since, next, is_probed });
        }
    }

    pub(crate) fn seen(&self) -> Seen {
        let state = locked(&self.state);
        Seen {
            unreachable: state.open.as_ref().map(|open| open.since.elapsed()),
            last_error: state.last_error.clone(),
            failures: self.failures.load(Ordering::Relaxed),
            retries: self.retries.load(Ordering::Relaxed),
        }
    }
}

/// A call that is repeated while the database cannot be reached.
pub(crate) struct Retry<'a> {
    breaker: &'a Breaker,
    options: &'a Options,
    begun: Instant,
    wait: Duration,
    is_probe: bool,
}

impl Retry<'_> {
    /// Ends with an answer of the database.
    pub(crate) fn answered<T>(self, answer: T) -> T {
        self.breaker.answered();
        answer
    }

    /// Waits before the call is repeated.
    ///
    /// # Errors
    ///
    /// The failure, if a repetition cannot help, or none is left.
    pub(crate) async fn wait(&mut self, failure: Failure) -> Result<()> {
        let (patience, is_unreachable) = (self.options.patience, failure.is_unreachable());
        let is_last = self.is_probe || self.begun.elapsed() + self.wait >= patience;
        match is_unreachable {
            true if is_last => self.breaker.open(self.begun, self.options.pause),
            true => {}
            false if matches!(failure, Failure::Busy) => {}
            false => self.breaker.answered(),
        }
        if !failure.may_pass() || is_last {
            let error = failure.into_error();
            self.breaker.failures.fetch_add(1, Ordering::Relaxed);
            if matches!(error.kind(), ErrorKind::Upstream | ErrorKind::Timeout) {
                locked(&self.breaker.state).last_error = Some(error.to_string());
            }
            return Err(error);
        }
        self.breaker.retries.fetch_add(1, Ordering::Relaxed);
        sleep(self.wait).await;
        self.wait = (self.wait * 2).min(LONGEST_WAIT);
        Ok(())
    }
}

impl Drop for Retry<'_> {
    fn drop(&mut self) {
        // A call that was broken off leaves the attempt to another one.
        if self.is_probe
            && let Some(open) = &mut locked(&self.breaker.state).open
        {
            open.is_probed = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_call_at_a_time_tries() {
        let (patience, pause) = (Duration::ZERO, Duration::ZERO);
        let options = Options { patience, pause, ..Options::default() };
        let breaker = Breaker::default();
        let silent = || Failure::Silent(Duration::ZERO);
        let (mut one, mut two) = (breaker.call(&options).unwrap(), breaker.call(&options).unwrap());
        one.wait(silent()).await.unwrap_err();
        let probe = breaker.call(&options).unwrap();
        assert!(breaker.call(&options).is_err());
        drop(probe);
        let mut probe = breaker.call(&options).unwrap();
        probe.wait(silent()).await.unwrap_err();
        breaker.call(&options).unwrap().answered(());
        // A call that failed while others were answered does not end them.
        two.wait(silent()).await.unwrap_err();
        assert!(breaker.seen().unreachable.is_none());
        assert_eq!((breaker.seen().failures, breaker.seen().retries), (3, 0));
    }
}
