//! Ctrl-C: it stops an answer, not the program.

use std::sync::Arc;

use tokio::sync::watch;

/// Tells that somebody wants what is going on to stop.
#[derive(Clone)]
pub(crate) struct Interrupt {
    count: Arc<watch::Sender<u64>>,
}

impl Interrupt {
    /// Nobody wants anything to stop so far.
    pub(crate) fn new() -> Self {
        Self { count: Arc::new(watch::Sender::new(0)) }
    }

    /// Stops what is going on.
    pub(crate) fn trigger(&self) {
        self.count.send_modify(|count| *count += 1);
    }

    /// Waits for what is wanted from now on: what stopped something else is over.
    pub(crate) fn wait(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut count = self.count.subscribe();
        async move {
            // The sender is held by whoever is waited for.
            if count.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_what_goes_on_is_stopped() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let interrupt = Interrupt::new();
            interrupt.trigger();
            let waiting = interrupt.wait();
            let passed = tokio::time::timeout(Duration::ZERO, interrupt.wait()).await;
            assert!(passed.is_err(), "what came before is over");
            interrupt.trigger();
            waiting.await;
        });
    }
}
