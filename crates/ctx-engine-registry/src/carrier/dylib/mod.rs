//! An engine in a library, across the C ABI.

mod desk;
mod library;

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use ctx_core::Result;

use super::{Answered, Answering, Canceller, Carrier, Fault, MAX_ANSWER_BYTES, Request};
use library::{Instance, Outcome};

/// An engine in a library that runs within the host's own process.
///
/// The library stays loaded until the process ends, as unloading is not safe once a library has
/// started threads or keeps thread-local values.
pub struct Dylib {
    instance: Arc<Instance>,
    max_answer_bytes: usize,
    is_usable: bool,
}

impl Dylib {
    /// Loads a library and makes an engine. Its code runs from here on: whatever can be checked of
    /// a file is to be checked before.
    ///
    /// # Errors
    ///
    /// If the file is no library of this platform, has no entry `ctx_engine_v1`, or has another ABI;
    /// if the engine cannot be made.
    pub fn open(path: &Path) -> Result<Self> {
        let instance = Arc::new(Instance::create(path)?);
        Ok(Self { instance, max_answer_bytes: MAX_ANSWER_BYTES, is_usable: true })
    }

    /// Refuses answers that are larger.
    #[must_use]
    pub fn with_max_answer_bytes(mut self, bytes: usize) -> Self {
        self.max_answer_bytes = bytes;
        self
    }

    /// Calls the engine. The answer's bytes are as it gave them.
    pub(super) fn answer(
        &mut self,
        request: &Request,
        services: &mut Answering<'_>,
    ) -> Result<Vec<u8>, Fault> {
        match self.instance.call(request.id, &request.json, services, self.max_answer_bytes) {
            Outcome::Answer(answer) => Ok(answer),
            Outcome::TooLarge => Err(Fault::TooLarge { limit: self.max_answer_bytes }),
            Outcome::Misused => Err(Fault::garbage("the library says that it was misused", &[])),
            Outcome::Panicked => {
                self.is_usable = false;
                let message = "and could not answer: it is not to be used again".into();
                Err(Fault::Panicked { message })
            }
            Outcome::Unknown(status) => {
                self.is_usable = false;
                Err(Fault::garbage(
                    format!("the library returned an unknown status, {status}"),
                    &[],
                ))
            }
            Outcome::Nowhere => {
                self.is_usable = false;
                Err(Fault::garbage("the answer has a length and no address", &[]))
            }
        }
    }
}

impl Carrier for Dylib {
    fn call(&mut self, request: Request, services: &mut Answering<'_>) -> Result<Answered, Fault> {
        let answer = self.answer(&request, services)?;
        Answered::to(request.id, answer)
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
        // Who panicked halfway may trip over what it left, and leaking is safe.
        if self.is_usable {
            self.instance.destroy();
        }
    }
}

impl fmt::Debug for Dylib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dylib").field("is_usable", &self.is_usable).finish_non_exhaustive()
    }
}
