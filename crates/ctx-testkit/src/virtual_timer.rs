//! A clock that skips waiting times.

use std::collections::BTreeMap;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::Timer;

use crate::locked;

/// A clock that stops while futures make progress, and advances to the next sleeper when they all
/// wait. A deadline of five minutes takes no time, and every run is the same.
///
/// Its sleepers are woken only by [`run`](Self::run).
///
/// # Example
///
/// ```
/// use std::time::Duration;
/// use ctx_core::Timer;
/// use ctx_testkit::VirtualTimer;
///
/// let timer = VirtualTimer::default();
/// timer.run(timer.sleep(Duration::from_secs(300)));
/// assert_eq!(timer.elapsed(), Duration::from_secs(300));
/// ```
#[derive(Clone, Debug, Default)]
pub struct VirtualTimer(Arc<Mutex<Clock>>);

#[derive(Debug, Default)]
struct Clock {
    now: Duration,
    /// Number of sleeps started: two that end at the same time wake in the order they started.
    begun: u64,
    sleepers: BTreeMap<(Duration, u64), Waker>,
}

impl VirtualTimer {
    /// Runs a future to its end, advancing the time whenever it waits.
    ///
    /// # Panics
    ///
    /// If the future waits for anything except this clock: it would wait for ever.
    pub fn run<F: Future>(&self, future: F) -> F::Output {
        let woken = Arc::new(Flag::default());
        let waker = Waker::from(woken.clone());
        let mut context = Context::from_waker(&waker);
        let mut future = pin!(future);
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            let progress = woken.0.swap(false, Ordering::SeqCst) || self.jump();
            assert!(progress, "the future waits for something other than this clock");
            woken.0.store(false, Ordering::SeqCst);
        }
    }

    /// Advances the time to the next sleeper. Returns whether there was one.
    fn jump(&self) -> bool {
        let mut clock = locked(&self.0);
        let Some(((until, _), waker)) = clock.sleepers.pop_first() else { return false };
        clock.now = clock.now.max(until);
        drop(clock);
        waker.wake();
        true
    }
}

#[async_trait]
impl Timer for VirtualTimer {
    fn elapsed(&self) -> Duration {
        locked(&self.0).now
    }

    async fn sleep(&self, duration: Duration) {
        let key = {
            let mut clock = locked(&self.0);
            clock.begun += 1;
            (clock.now.saturating_add(duration), clock.begun)
        };
        Sleep { timer: self.clone(), key }.await;
    }
}

struct Sleep {
    timer: VirtualTimer,
    key: (Duration, u64),
}

impl Future for Sleep {
    type Output = ();
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let mut clock = locked(&self.timer.0);
        if clock.now >= self.key.0 {
            return Poll::Ready(());
        }
        clock.sleepers.insert(self.key, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    /// A dropped sleep must not advance the time.
    fn drop(&mut self) {
        locked(&self.timer.0).sleepers.remove(&self.key);
    }
}

#[derive(Default)]
struct Flag(AtomicBool);

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_sleeper_wakes_first_and_a_dropped_one_never() {
        let timer = VirtualTimer::default();
        let order = Mutex::new(Vec::new());
        let nap = |seconds| {
            let (timer, order) = (timer.clone(), &order);
            async move {
                timer.sleep(Duration::from_secs(seconds)).await;
                order.lock().unwrap().push((seconds, timer.elapsed().as_secs()));
            }
        };
        timer.run(async {
            let (mut five, mut two) = (Box::pin(nap(5)), Box::pin(nap(2)));
            let mut ninety = Box::pin(nap(90));
            let mut done = (false, false);
            std::future::poll_fn(|context| {
                let _ = ninety.as_mut().poll(context);
                done.0 = done.0 || five.as_mut().poll(context).is_ready();
                done.1 = done.1 || two.as_mut().poll(context).is_ready();
                if done == (true, true) { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
        });
        assert_eq!(*order.lock().unwrap(), [(2, 2), (5, 5)]);
        timer.run(timer.sleep(Duration::from_secs(1)));
        assert_eq!(timer.elapsed(), Duration::from_secs(6), "the nap of 90 was dropped");
    }
}
