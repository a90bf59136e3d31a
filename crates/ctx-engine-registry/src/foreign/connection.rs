//! The connection of a supervisor to its engine.

use std::time::Duration;

use async_trait::async_trait;
use ctx_core::Counter;

use super::transport::{Fault, RawAnswer};

/// Sends calls to one running engine.
#[async_trait]
pub trait Channel: Send + Sync {
    /// Calls a verb, in the encoding of its parameters, and returns the answer.
    ///
    /// # Errors
    ///
    /// Why an answer is missing.
    async fn call(
        &self,
        verb: &str,
        params: Vec<u8>,
        deadline: Duration,
    ) -> Result<RawAnswer, Fault>;

    /// Whether the engine is permanently lost.
    fn is_lost(&self) -> bool;

    /// Sets the counter that `tokens.count` uses in the next calls. Each session has its own.
    fn count_with(&self, counter: Counter) {
        let _ = counter;
    }
}

/// Starts an engine, and restarts it.
pub trait Launcher: Send + Sync {
    /// Starts an engine and returns a connection to it. `hello` is not called yet.
    ///
    /// # Errors
    ///
    /// Why it cannot be started.
    fn open(&self) -> Result<Box<dyn Channel>, Fault>;

    /// Returns its transport: `dylib` or `process`.
    fn transport(&self) -> &'static str;

    /// Whether it can be started again. A library cannot: it stays in memory.
    fn can_restart(&self) -> bool;

    /// Returns the [services](ctx_engine_sdk::protocol::service) offered to it.
    fn features(&self) -> Vec<String>;
}
