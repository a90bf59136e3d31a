//! Notifications of changes, for those who would otherwise ask again.

use std::pin::Pin;

use crate::SessionName;

/// Something that a host waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change<'a> {
    /// The lease of this session was given back, and another host waited for it.
    Released(&'a SessionName),
    /// Another host waits for a session of this holder.
    Wanted(&'a str),
    /// Records of this agent were added or forgotten.
    Records(&'a str),
}

/// Ends when something may have changed.
pub type ChangeFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Tells of changes. It may miss any of them and tell of some that did not happen: a host that waits
/// asks again after a time, too.
pub trait Changes: Send + Sync {
    /// Returns a future that ends after a change that follows this call. By default it never ends.
    fn changed(&self, change: Change<'_>) -> ChangeFuture {
        let _ = change;
        Box::pin(std::future::pending())
    }
}
