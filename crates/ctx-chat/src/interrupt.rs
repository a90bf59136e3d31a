//! Ctrl-C: stops an answer, not the program.

use std::sync::Arc;

use tokio::sync::watch;

/// Signals that the current work should stop.
#[derive(Clone)]
pub(crate) struct Interrupt {
    count: Arc<watch::Sender<u64>>,
}

impl Interrupt {
    /// Creates an interrupt that was not triggered yet.
    pub(crate) fn new() -> Self {
        Self { count: Arc::new(watch::Sender::new(0)) }
    }

    /// Stops the current work.
    pub(crate) fn trigger(&self) {
        self.count.send_modify(|count| *count += 1);
    }

    /// Waits for the next signal; earlier signals are ignored.
    pub(crate) fn wait(&self) -> impl Future<Output = ()> + Send + 'static {
        let mut count = self.count.subscribe();
        async move {
            // All senders are dropped, so no signal can come.
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
    fn an_interrupt_does_not_stop_later_work() {
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
