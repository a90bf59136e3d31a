//! The library itself: the only place where foreign code is loaded and called.

#![allow(unsafe_code)] // this module loads and calls libraries

use std::ffi::c_void;
use std::mem::{MaybeUninit, offset_of};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{ptr, thread};

use ctx_core::{Error, ErrorKind, Result};
use ctx_engine_sdk::abi::{
    ABI, Buffer, Bytes, ENTRY, EngineTable, EntryFn, HostTable, MISUSED, OK, PANICKED,
};
use libloading::Library;

use super::host_calls::HostCalls;
use crate::foreign::transport::{Fault, HostCallHandler};

/// An engine that a library created.
pub(super) struct Instance {
    table: EngineTable,
    /// Opaque pointer returned by the library.
    engine: *mut c_void,
    /// Held while the library's `cancel` or `destroy` runs.
    cancel_state: Arc<Mutex<CancelState>>,
    /// Never freed, as the engine may use it at any time.
    host_calls: &'static HostCalls,
}

// SAFETY: an engine may be called from any thread, one call at a time, and `cancel` from any other.
// `call` is reached through `&mut Dylib` alone, `destroy` in its drop.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

/// The call that `cancel` may end.
#[derive(Default)]
struct CancelState {
    active: Option<u64>,
    is_destroyed: bool,
}

/// Why a call has no answer.
pub(super) struct CallFault {
    pub(super) fault: Fault,
    /// Whether the engine must not be called again.
    pub(super) is_fatal: bool,
}

impl Instance {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let refused = |why: String| {
            Error::new(ErrorKind::Contract, why)
                .with("library", path.display())
                .hint("the rules for libraries are at the top of ctx_engine.h: report this to the engine's author")
        };
        // A bare name would be searched for in the system's library folders.
        let whole = std::path::absolute(path).map_err(|error| refused(error.to_string()))?;
        let table = load(&whole).map_err(refused)?;
        let Some(create) = table.create else {
            return Err(refused("missing function 'create'".into()));
        };
        let host_calls: &'static HostCalls = Box::leak(Box::default());
        let host: &'static HostTable = Box::leak(Box::new(host_calls.table()));
        let mut engine = ptr::null_mut();
        // SAFETY: the table came from the library's entry point, and the host's is never freed.
        match unsafe { create(host, &raw mut engine) } {
            OK if engine.is_null() => Err(refused("the library did not create an engine".into())),
            OK => Ok(Self { table, engine, cancel_state: Arc::default(), host_calls }),
            status => {
                Err(refused(format!("the library could not create its engine: status {status}")))
            }
        }
    }

    pub(super) fn call(
        &self,
        id: u64,
        call: &[u8],
        services: &mut HostCallHandler<'_>,
        limit: usize,
    ) -> Result<Vec<u8>, CallFault> {
        let harmless = |fault| Err(CallFault { fault, is_fatal: false });
        let fatal = |fault| Err(CallFault { fault, is_fatal: true });
        let misused = || harmless(Fault::garbage("the library reported a misuse of its API", &[]));
        // Both were checked when the table was read.
        let (Some(entry), Some(release)) = (self.table.call, self.table.release) else {
            return misused();
        };
        let mut answer = Buffer::EMPTY;
        self.cancel_state().active = Some(id);
        let status = self.host_calls.open(services, || {
            let call = Bytes { data: call.as_ptr(), len: call.len() };
            // SAFETY: the engine exists, no other call is running (see `Send`), the bytes are valid
            // for this call, and `answer` is a local variable to be written.
            unsafe { entry(self.engine, call, &raw mut answer) }
        });
        // A running `cancel` finishes first, or it would cancel the next call.
        self.cancel_state().active = None;
        let outcome = match status {
            OK if answer.len == 0 => Ok(Vec::new()),
            OK if answer.data.is_null() => {
                let why = "the answer has a length but a null pointer";
                return fatal(Fault::garbage(why, &[]));
            }
            OK if answer.len > limit => harmless(Fault::TooLarge { limit }),
            // SAFETY: the library guarantees this length until the bytes are released.
            OK => Ok(unsafe { std::slice::from_raw_parts(answer.data, answer.len).to_vec() }),
            // The buffer is then undefined and is not read.
            PANICKED => {
                let message = "it gave no answer, and cannot be used again".into();
                return fatal(Fault::Panicked { message });
            }
            MISUSED => return misused(),
            status => {
                let why = format!("the library returned an unknown status, {status}");
                return fatal(Fault::garbage(why, &[]));
            }
        };
        if !answer.data.is_null() {
            // SAFETY: the library allocated it, and it is released once.
            unsafe { release(answer) };
        }
        outcome
    }

    /// Cancels a call, from a separate thread: the engine may never return from `cancel`.
    pub(super) fn cancel(&self, id: u64) {
        let Some(cancel) = self.table.cancel else { return };
        let engine = Address(self.engine);
        let cancel_state = self.cancel_state.clone();
        let tell = move || {
            let engine = engine;
            let cancel_state = cancel_state.lock().unwrap_or_else(PoisonError::into_inner);
            if cancel_state.active == Some(id) && !cancel_state.is_destroyed {
                // SAFETY: the engine exists as long as the lock is held.
                unsafe { cancel(engine.0) };
            }
        };
        // If no thread can be started, the call is not cancelled and becomes overdue.
        let _ = thread::Builder::new().name("ctx-engine-cancel".into()).spawn(tell);
    }

    pub(super) fn destroy(&self) {
        let Some(destroy) = self.table.destroy else { return };
        let mut cancel_state = self.cancel_state();
        if !std::mem::replace(&mut cancel_state.is_destroyed, true) {
            // SAFETY: the engine exists, no call is running, and it is destroyed once.
            unsafe { destroy(self.engine) };
        }
    }

    fn cancel_state(&self) -> MutexGuard<'_, CancelState> {
        self.cancel_state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The address of an engine, to be sent to another thread.
struct Address(*mut c_void);

// SAFETY: `cancel` may be called from any thread.
unsafe impl Send for Address {}

/// Loads a library permanently, and reads its table.
fn load(path: &Path) -> Result<EngineTable, String> {
    let library = open(path).map_err(|error| format!("cannot load the library: {error}"))?;
    // Threads and thread-local values of a library would outlive its unloading and crash.
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: the ABI defines the type of this symbol, which is valid as long as the library.
    let entry = unsafe { library.get::<EntryFn>(ENTRY.as_bytes()) }
        .map_err(|error| format!("missing entry point {ENTRY}: {error}"))?;
    // SAFETY: the symbol was just found, and takes no arguments.
    let table = unsafe { entry() };
    if table.is_null() || !table.is_aligned() {
        return Err(format!("{ENTRY} returned no table"));
    }
    // SAFETY: each table begins with its size.
    let size = unsafe { (&raw const (*table).size).read() };
    // The fields that every version 1 has. Later functions may be missing.
    let least = offset_of!(EngineTable, cancel);
    if size < least {
        return Err(format!("invalid table: {size} bytes, at least {least} are required"));
    }
    let mut known = MaybeUninit::<EngineTable>::zeroed();
    // SAFETY: the library's table has `size` bytes, ours has the size of its type, and they do not
    // overlap. All zeroes is a valid table, without functions.
    let known = unsafe {
        let len = size.min(size_of::<EngineTable>());
        ptr::copy_nonoverlapping(table.cast::<u8>(), known.as_mut_ptr().cast::<u8>(), len);
        known.assume_init()
    };
    if known.abi != ABI {
        return Err(format!("unsupported ABI version {}, the host's is {ABI}", known.abi));
    }
    if known.create.is_none() || known.call.is_none() || known.release.is_none() {
        return Err("invalid table: 'create', 'call' or 'release' is missing".into());
    }
    Ok(known)
}

#[cfg(unix)]
fn open(path: &Path) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: runs initialisers of the library, which the caller trusts.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

#[cfg(not(unix))]
fn open(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: runs initialisers of the library, which the caller trusts.
    unsafe { Library::new(path) }
}
