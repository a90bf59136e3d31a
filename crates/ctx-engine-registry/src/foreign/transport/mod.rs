//! Transports carry bytes to an engine that is not linked, and back.
//!
//! A [`Transport`] handles one call at a time, blocking, on a thread that belongs to its engine:
//! [`Dylib`] calls a library across the C ABI, [`Process`] talks to a program over its stdin and
//! stdout. A [`Caller`] owns that thread and enforces the deadline of each call; the rest of the
//! host uses only the caller. Host calls of the engine are answered by [`HostServices`], and every
//! failure is a [`Fault`].
//!
//! A host survives every failure of a process. It survives every failure of a library except the
//! end of the program (an abort, a segfault, `exit`) and corrupted memory: a library is trusted as
//! much as the host itself. A library that is not trusted runs in its own process, with
//! [`host_library`].

mod answer;
mod caller;
mod cancel;
mod dylib;
mod envelope;
mod fault;
mod library_host;
mod process;
mod services;

use std::sync::Arc;

pub use answer::RawAnswer;
pub use caller::Caller;
pub use dylib::Dylib;
pub use fault::Fault;
pub(crate) use library_host::own_engine_host;
pub use library_host::{host_library, hosts_libraries};
pub use process::{Process, Program, end_processes};
pub use services::HostServices;

/// Default maximum size of an answer: 32 MiB. A plan for the longest known sessions takes a
/// thousandth of it.
const MAX_ANSWER_BYTES: usize = 32 << 20;

/// A call to be sent to an engine.
#[derive(Clone, Debug)]
pub struct Request {
    /// The id contained in the bytes. Ids of one engine increase.
    pub id: u64,
    /// The [`Call`](ctx_engine_sdk::protocol::Call).
    pub bytes: Vec<u8>,
}

/// Answers a [`HostCall`](ctx_engine_sdk::protocol::HostCall) with a
/// [`Reply`](ctx_engine_sdk::protocol::Reply) in the same encoding.
pub type HostCallHandler<'a> = dyn FnMut(&[u8]) -> Vec<u8> + 'a;

/// Transports calls to one engine. It blocks, and is used by one thread at a time.
pub trait Transport: Send {
    /// Sends a call, answers the engine's host calls with `services`, and returns the answer.
    ///
    /// # Errors
    ///
    /// Every other outcome. [`Transport::is_usable`] then returns whether the engine is still
    /// usable.
    fn call(
        &mut self,
        request: Request,
        services: &mut HostCallHandler<'_>,
    ) -> Result<RawAnswer, Fault>;

    /// Whether the engine can be called again.
    fn is_usable(&self) -> bool;

    /// Returns the handle that other threads use while a call is running.
    fn canceller(&self) -> Arc<dyn Canceller>;
}

/// Ends a call from another thread. Neither method waits for the engine.
pub trait Canceller: Send + Sync {
    /// Tells the engine that the answer to the call `id` is not needed any more.
    fn cancel(&self, id: u64);

    /// Ends the engine, so that the running call returns, and returns the last lines of its stderr.
    /// `None` if the engine cannot be ended from outside: its thread must then be abandoned.
    fn kill(&self) -> Option<Vec<String>>;
}
