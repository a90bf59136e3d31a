//! Launches installed engines.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use ctx_core::Counter;

use super::transport::{
    Caller, Dylib, Fault, HostServices, Process, Program, RawAnswer, Transport,
};
use super::{Channel, Launcher};
use crate::find::{EngineFile, FoundEngine, TransportKind};

/// An installed engine and its transport.
pub(crate) struct InstalledEngine {
    pub(crate) id: String,
    pub(crate) found: Arc<FoundEngine>,
    pub(crate) transport: TransportKind,
    pub(crate) services: HostServices,
    pub(crate) memory: u64,
    pub(crate) host: Option<PathBuf>,
}

impl InstalledEngine {
    /// Returns the program that runs it in its own process.
    fn program(&self) -> Program {
        let program = match &self.found.file {
            EngineFile::Command { program, args } => Program::new(program).with_args(args),
            EngineFile::Library(path) => {
                // `host` is set: without one, `build_installed` rejects a library.
                Program::new(self.host.clone().unwrap_or_default())
                    .with_args(["engine-host".as_ref(), path.as_os_str()])
            }
        };
        let program = program.with_memory_limit(Some(self.memory));
        match self.found.path().parent() {
            Some(folder) => program.in_folder(folder),
            None => program,
        }
    }
}

impl Launcher for InstalledEngine {
    fn open(&self) -> Result<Box<dyn Channel>, Fault> {
        let found = self.found.clone();
        let program = match self.transport {
            TransportKind::Dylib => None,
            TransportKind::Builtin | TransportKind::Process => Some(self.program()),
        };
        let caller = Caller::start(&self.id, move || {
            found.check_unchanged()?;
            let transport: Box<dyn Transport> = match &program {
                Some(program) => Box::new(Process::open(program)?),
                None => Box::new(Dylib::open(found.path())?),
            };
            // If the file was replaced meanwhile, other code may have been loaded.
            found.check_unchanged()?;
            Ok(transport)
        })?;
        let services = Mutex::new((None, Arc::new(self.services.clone())));
        Ok(Box::new(EngineChannel { caller, services }))
    }

    fn transport(&self) -> &'static str {
        self.transport.name()
    }

    fn can_restart(&self) -> bool {
        self.transport == TransportKind::Process
    }

    fn features(&self) -> Vec<String> {
        self.services.features()
    }
}

/// An engine on its own thread, with the services offered to it.
struct EngineChannel {
    caller: Caller,
    services: Mutex<(Option<Counter>, Arc<HostServices>)>,
}

#[async_trait]
impl Channel for EngineChannel {
    async fn call(
        &self,
        verb: &str,
        params: Vec<u8>,
        deadline: Duration,
    ) -> Result<RawAnswer, Fault> {
        let services = self.services.lock().unwrap_or_else(PoisonError::into_inner).1.clone();
        self.caller.call(verb, &params, deadline, services).await
    }

    fn is_lost(&self) -> bool {
        self.caller.is_lost()
    }

    fn count_with(&self, counter: Counter) {
        let mut services = self.services.lock().unwrap_or_else(PoisonError::into_inner);
        if services.0 != Some(counter) {
            let counting = HostServices::clone(&services.1).with_counter(counter);
            *services = (Some(counter), Arc::new(counting));
        }
    }
}
