//! A timer over tokio's clock.

use std::time::Duration;

use async_trait::async_trait;
use ctx_core::Timer;
use tokio::time::Instant;

/// Measures time with tokio: real time, or the paused time of a test. `sleep` needs a tokio runtime
/// with time enabled.
#[derive(Clone, Copy, Debug)]
pub struct TokioTimer {
    began: Instant,
}

impl Default for TokioTimer {
    /// Creates a timer that starts now.
    fn default() -> Self {
        Self { began: Instant::now() }
    }
}

#[async_trait]
impl Timer for TokioTimer {
    fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_timer_measures_its_own_sleep() {
        let timer = TokioTimer::default();
        timer.sleep(Duration::from_secs(90)).await;
        assert!(timer.elapsed() >= Duration::from_secs(90));
        assert!(timer.elapsed() < Duration::from_secs(91));
    }
}
