//! The host, as an engine sees it from inside a call.

use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::protocol::{
    Complete, Completion, Count, Counts, Done, Error, ErrorKind, HostCall, Key, KeyPrefix, Keys,
    LogLevel, LogLine, Reply, Result, StoredValue, Value, service,
};

/// Transports the bytes of a host call to the host, and the bytes of the reply back.
pub trait HostTransport {
    /// Sends a host call and waits for the reply.
    ///
    /// # Errors
    ///
    /// If the host cannot be reached.
    fn call(&mut self, host_call: &[u8]) -> Result<Vec<u8>>;
}

/// The services that an engine can call while it works on a call.
pub struct Host<'a> {
    transport: &'a mut dyn HostTransport,
    cancelled: &'a AtomicBool,
    offered: &'a [String],
    calls: u64,
}

impl std::fmt::Debug for Host<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").field("offered", &self.offered).finish_non_exhaustive()
    }
}

impl<'a> Host<'a> {
    pub(crate) fn new(
        transport: &'a mut dyn HostTransport,
        cancelled: &'a AtomicBool,
        offered: &'a [String],
    ) -> Self {
        Self { transport, cancelled, offered, calls: 0 }
    }

    /// Whether the host no longer needs the answer. Long work should check this from time to time,
    /// and return [`ErrorKind::Cancelled`].
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Whether the host offers one of the [services](service).
    #[must_use]
    pub fn offers(&self, service: &str) -> bool {
        self.offered.iter().any(|offered| offered == service)
    }

    /// Calls the host's summary model.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if the host has no model; otherwise the errors of the model.
    pub fn complete(&mut self, request: &Complete) -> Result<Completion> {
        self.ask(service::COMPLETE, request)
    }

    /// Returns the number of tokens of each text.
    ///
    /// # Errors
    ///
    /// If the host cannot be reached.
    pub fn count(&mut self, texts: Vec<String>) -> Result<Vec<u64>> {
        let counts: Counts = self.ask(service::COUNT, &Count { texts })?;
        Ok(counts.tokens)
    }

    /// Returns a stored value; `null` if there is none.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`] if the host has no store.
    pub fn get(&mut self, key: &str) -> Result<serde_json::Value> {
        let value: Value = self.ask(service::GET, &Key { key: key.to_owned() })?;
        Ok(value.value)
    }

    /// Stores a value. It outlives the engine.
    ///
    /// # Errors
    ///
    /// See [`Host::get`].
    pub fn put(&mut self, key: &str, value: serde_json::Value) -> Result<()> {
        let _: Done = self.ask(service::PUT, &StoredValue { key: key.to_owned(), value })?;
        Ok(())
    }

    /// Returns the keys that begin with `prefix`, sorted.
    ///
    /// # Errors
    ///
    /// See [`Host::get`].
    pub fn list(&mut self, prefix: &str) -> Result<Vec<String>> {
        let keys: Keys = self.ask(service::LIST, &KeyPrefix { prefix: prefix.to_owned() })?;
        Ok(keys.keys)
    }

    /// Writes a line to the host's log, if it has one.
    pub fn log(&mut self, level: LogLevel, message: impl Into<String>) {
        let line = LogLine { level, message: message.into() };
        // Logging is best effort.
        let _: Result<Done> = self.ask(service::LOG, &line);
    }

    fn ask<T: DeserializeOwned>(&mut self, service: &str, params: &impl Serialize) -> Result<T> {
        if !self.offers(service) {
            return Err(Error::new(
                ErrorKind::Unsupported,
                format!("the host does not offer {service}"),
            ));
        }
        self.calls += 1;
        let call = HostCall { id: self.calls, host: service.to_owned(), params };
        let reply = self.transport.call(&serde_json::to_vec(&call)?)?;
        let reply: Reply<T> = serde_json::from_slice(&reply)?;
        match (reply.reply, reply.error) {
            (Some(reply), _) => Ok(reply),
            (None, Some(error)) => Err(error),
            (None, None) => Err(Error::failed(format!("empty reply of the host to {service}"))),
        }
    }
}
