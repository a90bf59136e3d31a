//! Carriers: how bytes get to an engine that is not linked, and back.
//!
//! A [`Carrier`] takes one call at a time, blocking, on a thread that belongs to its engine:
//! [`Dylib`] calls a library across the C ABI, [`Process`] speaks with a program over its stdin and
//! stdout. A [`Caller`] owns that thread and bounds each call in time; it is what the rest of the
//! host sees. What an engine asks its host for in between is answered by an [`Offer`], and whatever
//! goes wrong is a [`Fault`].
//!
//! What the host survives: from a process everything. From a library everything but an end of the
//! program (an abort, a segfault, `exit`) and memory that it spoils: a library is as trusted as the
//! host itself. A library that is not trusted runs in a process of its own, by [`host_library`].

mod answered;
mod caller;
mod dylib;
mod envelope;
mod fault;
mod host;
mod process;
mod services;
mod wait;

use std::sync::Arc;

pub use answered::Answered;
pub use caller::Caller;
pub use dylib::Dylib;
pub use fault::Fault;
pub(crate) use host::own_engine_host;
pub use host::{host_library, hosts_libraries};
pub use process::{Process, Program, end_processes};
pub use services::Offer;

/// The largest answer, in bytes, unless the host says otherwise: 32 MiB. A plan for the longest
/// sessions seen takes a thousandth of it.
pub const MAX_ANSWER_BYTES: usize = 32 << 20;

/// A call on its way to an engine.
#[derive(Clone, Debug)]
pub struct Request {
    /// Its id, as in the bytes. Ids of one engine grow.
    pub id: u64,
    /// The [`Call`](ctx_engine_sdk::protocol::Call), as JSON.
    pub json: Vec<u8>,
}

/// Answers a [`HostCall`](ctx_engine_sdk::protocol::HostCall) by a
/// [`Reply`](ctx_engine_sdk::protocol::Reply), both as JSON.
pub type Answering<'a> = dyn FnMut(&[u8]) -> Vec<u8> + 'a;

/// Carries calls to one engine. It blocks, and is used by one thread at a time.
pub trait Carrier: Send {
    /// Carries a call, has what the engine asks for in between answered by `services`, and returns
    /// what the engine answered with.
    ///
    /// # Errors
    ///
    /// Whatever else the engine did. [`Carrier::is_usable`] then says whether it is still there.
    fn call(&mut self, request: Request, services: &mut Answering<'_>) -> Result<Answered, Fault>;

    /// Whether the engine can be called again.
    fn is_usable(&self) -> bool;

    /// What other threads use while a call is at work.
    fn canceller(&self) -> Arc<dyn Canceller>;
}

/// Ends a call from another thread. Neither method waits for the engine.
pub trait Canceller: Send + Sync {
    /// Tells the engine that the answer to the call of this id is not needed any more.
    fn cancel(&self, id: u64);

    /// Ends the engine, so that the call at work returns; and the last that it said on stderr.
    /// `None` where only the engine itself can end: its thread is then to be given up.
    fn kill(&self) -> Option<Vec<String>>;
}
