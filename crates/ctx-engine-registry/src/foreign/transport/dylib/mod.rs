//! An engine in a library, called across the C ABI.

mod host_calls;
mod library;

use std::path::Path;
use std::sync::Arc;

use ctx_core::Result;

use super::{Canceller, Fault, HostCallHandler, MAX_ANSWER_BYTES, RawAnswer, Request, Transport};
use library::{CallFault, Instance};

/// An engine in a library that runs inside the host's process.
///
/// The library stays loaded until the process ends, as unloading is not safe once a library has
/// started threads or keeps thread-local values.
pub struct Dylib {
    instance: Arc<Instance>,
    is_usable: bool,
}

impl Dylib {
    /// Loads a library and creates an engine. Its code runs from here on: check the file before, as
    /// far as possible.
    ///
    /// # Errors
    ///
    /// If the file is not a library of this platform, has no entry point `ctx_engine_v1`, or has
    /// another ABI; if the engine cannot be created.
    pub fn open(path: &Path) -> Result<Self> {
        let instance = Arc::new(Instance::create(path)?);
        Ok(Self { instance, is_usable: true })
    }

    /// Calls the engine. Returns the bytes of the answer unchanged.
    pub(super) fn answer(
        &mut self,
        request: &Request,
        services: &mut HostCallHandler<'_>,
    ) -> Result<Vec<u8>, Fault> {
        let answer = self.instance.call(request.id, &request.bytes, services, MAX_ANSWER_BYTES);
        answer.map_err(|CallFault { fault, is_fatal }| {
            self.is_usable &= !is_fatal;
            fault
        })
    }
}

impl Transport for Dylib {
    fn call(
        &mut self,
        request: Request,
        services: &mut HostCallHandler<'_>,
    ) -> Result<RawAnswer, Fault> {
        let answer = self.answer(&request, services)?;
        RawAnswer::to(request.id, answer)
    }

    fn is_usable(&self) -> bool {
        self.is_usable
    }

    fn canceller(&self) -> Arc<dyn Canceller> {
        self.instance.clone()
    }
}

impl Canceller for Instance {
    fn cancel(&self, id: u64) {
        Self::cancel(self, id);
    }

    fn kill(&self) -> Option<Vec<String>> {
        None
    }
}

impl Drop for Dylib {
    fn drop(&mut self) {
        // An engine that panicked may be in an inconsistent state; leaking it is safe.
        if self.is_usable {
            self.instance.destroy();
        }
    }
}

ctx_core::partial_debug!(Dylib, it, is_usable = it.is_usable);
