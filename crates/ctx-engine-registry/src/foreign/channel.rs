//! The way to an engine, as far as its supervisor cares.

use std::time::Duration;

use async_trait::async_trait;
use ctx_core::Counter;

use crate::carrier::{Answered, Fault};

/// Carries calls to one engine that is up.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Calls a verb with parameters that are JSON, and returns what was answered.
    ///
    /// # Errors
    ///
    /// Why there is no answer.
    async fn call(
        &self,
        verb: &str,
        params: Vec<u8>,
        deadline: Duration,
    ) -> Result<Answered, Fault>;

    /// Whether the engine is gone for good.
    fn is_lost(&self) -> bool;

    /// Has further calls answer `tokens.count` by this counter: that of the session they are about.
    fn count_with(&self, counter: Counter) {
        let _ = counter;
    }
}

/// Starts an engine, as often as it is needed.
pub trait Open: Send + Sync {
    /// A way to an engine that was just started. It has not said hello yet.
    ///
    /// # Errors
    ///
    /// Why it cannot be started.
    fn open(&self) -> Result<Box<dyn Channel>, Fault>;

    /// How it is carried: `dylib` or `process`.
    fn carrier(&self) -> &'static str;

    /// Whether it can be started again. A library cannot: what is left of it is still in memory.
    fn can_reopen(&self) -> bool;

    /// The [services](ctx_engine_sdk::protocol::service) it may ask for.
    fn features(&self) -> Vec<String>;
}
