//! The library itself: the one place where foreign code is loaded and called.

#![allow(unsafe_code)] // calling a library is what this module is about

use std::ffi::c_void;
use std::mem::{MaybeUninit, offset_of};
use std::path::Path;
use std::ptr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

use ctx_core::{Error, ErrorKind, Result};
use ctx_engine_sdk::abi::{
    ABI, Buffer, Bytes, ENTRY, EngineTable, EntryFn, HostTable, MISUSED, OK, PANICKED,
};
use libloading::Library;

use super::desk::Desk;
use crate::carrier::Answering;

/// An engine that a library made.
pub(super) struct Instance {
    table: EngineTable,
    /// As the library gave it; nobody looks into it.
    engine: *mut c_void,
    /// Held while the library's `cancel` or `destroy` runs.
    gate: Arc<Mutex<Gate>>,
    /// Lives at one address as long as the engine may ask for it, so: for ever.
    desk: &'static Desk,
}

// SAFETY: an engine may be called from any thread, one call at a time, and `cancel` from any other.
// `call` is reached through `&mut Dylib` alone, `destroy` in its drop.
unsafe impl Send for Instance {}
// SAFETY: as above.
unsafe impl Sync for Instance {}

/// What `cancel` may be called for.
#[derive(Default)]
struct Gate {
    at_work: Option<u64>,
    is_destroyed: bool,
}

/// What came of a call.
pub(super) enum Outcome {
    Answer(Vec<u8>),
    TooLarge,
    Nowhere,
    Misused,
    Panicked,
    Unknown(i32),
}

impl Instance {
    pub(super) fn create(path: &Path) -> Result<Self> {
        let refused = |why: String| {
            Error::new(ErrorKind::Contract, why)
                .with("library", path.display())
                .hint("what a library must do is at the head of ctx_engine.h: tell its author")
        };
        // A bare name would be looked for in the system's folders.
        let whole = std::path::absolute(path).map_err(|error| refused(error.to_string()))?;
        let table = load(&whole).map_err(refused)?;
        let Some(create) = table.create else { return Err(refused("no function 'create'".into())) };
        let desk: &'static Desk = Box::leak(Box::default());
        let host: &'static HostTable = Box::leak(Box::new(desk.table()));
        let mut engine = ptr::null_mut();
        // SAFETY: the table came from the library's entry, and the host's lives for ever.
        match unsafe { create(host, &raw mut engine) } {
            OK if engine.is_null() => Err(refused("the library made no engine".into())),
            OK => Ok(Self { table, engine, gate: Arc::default(), desk }),
            status => {
                Err(refused(format!("the library could not make its engine: status {status}")))
            }
        }
    }

    pub(super) fn call(
        &self,
        id: u64,
        call: &[u8],
        services: &mut Answering<'_>,
        limit: usize,
    ) -> Outcome {
        // Both were checked when the table was read.
        let (Some(entry), Some(release)) = (self.table.call, self.table.release) else {
            return Outcome::Misused;
        };
        let mut answer = Buffer::EMPTY;
        self.gate().at_work = Some(id);
        let status = self.desk.open(services, || {
            let call = Bytes { data: call.as_ptr(), len: call.len() };
            // SAFETY: the engine is there, no other call is at work (see `Send`), the bytes are lent
            // for this call, and the answer is ours to be written.
            unsafe { entry(self.engine, call, &raw mut answer) }
        });
        // A `cancel` that is under way ends first, or the next call would be cancelled by it.
        self.gate().at_work = None;
        let outcome = match status {
            OK if answer.len == 0 => Outcome::Answer(Vec::new()),
            OK if answer.data.is_null() => return Outcome::Nowhere,
            OK if answer.len > limit => Outcome::TooLarge,
            // SAFETY: the library says that there are so many bytes, until they are released.
            OK => Outcome::Answer(unsafe {
                std::slice::from_raw_parts(answer.data, answer.len).to_vec()
            }),
            // What it wrote then means nothing and is not looked at.
            PANICKED => return Outcome::Panicked,
            MISUSED => return Outcome::Misused,
            status => return Outcome::Unknown(status),
        };
        if !answer.data.is_null() {
            // SAFETY: it is the library's own, given back once.
            unsafe { release(answer) };
        }
        outcome
    }

    /// Tells the engine, from a thread of its own: the engine may never return from it.
    pub(super) fn cancel(&self, id: u64) {
        let Some(cancel) = self.table.cancel else { return };
        let engine = Address(self.engine);
        let gate = self.gate.clone();
        let tell = move || {
            let engine = engine;
            let gate = gate.lock().unwrap_or_else(PoisonError::into_inner);
            if gate.at_work == Some(id) && !gate.is_destroyed {
                // SAFETY: the engine is there as long as the lock is held.
                unsafe { cancel(engine.0) };
            }
        };
        // Without a thread it is not told, and is late.
        let _ = thread::Builder::new().name("ctx-engine-cancel".into()).spawn(tell);
    }

    pub(super) fn destroy(&self) {
        let Some(destroy) = self.table.destroy else { return };
        let mut gate = self.gate();
        if !std::mem::replace(&mut gate.is_destroyed, true) {
            // SAFETY: it was there, no call is at work, and it is given back once.
            unsafe { destroy(self.engine) };
        }
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An engine on its way to another thread.
struct Address(*mut c_void);

// SAFETY: `cancel` may be called from any thread.
unsafe impl Send for Address {}

/// Loads a library for good, and reads its table.
fn load(path: &Path) -> Result<EngineTable, String> {
    let library = open(path).map_err(|error| format!("it cannot be loaded: {error}"))?;
    // Threads and thread-local values of a library outlive its unloading, and then crash.
    let library: &'static Library = Box::leak(Box::new(library));
    // SAFETY: the ABI says what stands behind this name; the symbol lives as long as the library.
    let entry = unsafe { library.get::<EntryFn>(ENTRY.as_bytes()) }
        .map_err(|error| format!("it has no entry {ENTRY}: {error}"))?;
    // SAFETY: it was just found, and takes nothing.
    let table = unsafe { entry() };
    if table.is_null() || !table.is_aligned() {
        return Err(format!("{ENTRY} returned no table"));
    }
    // SAFETY: each table begins with its size.
    let size = unsafe { (&raw const (*table).size).read() };
    // What every version 1 has. Functions after that may be missing.
    let least = offset_of!(EngineTable, cancel);
    if size < least {
        return Err(format!("its table has {size} bytes, and {least} are needed"));
    }
    let mut known = MaybeUninit::<EngineTable>::zeroed();
    // SAFETY: the library's table is `size` bytes, ours is as many as its type has, and they are
    // different memory. Zeroes are a table too: without functions.
    let known = unsafe {
        let len = size.min(size_of::<EngineTable>());
        ptr::copy_nonoverlapping(table.cast::<u8>(), known.as_mut_ptr().cast::<u8>(), len);
        known.assume_init()
    };
    if known.abi != ABI {
        return Err(format!("it has version {} of the ABI, and the host {ABI}", known.abi));
    }
    if known.create.is_none() || known.call.is_none() || known.release.is_none() {
        return Err("its table lacks one of 'create', 'call' and 'release'".into());
    }
    Ok(known)
}

#[cfg(unix)]
fn open(path: &Path) -> Result<Library, libloading::Error> {
    use libloading::os::unix::{Library, RTLD_LOCAL, RTLD_NOW};
    // SAFETY: initialisers of the library run: the caller trusts it.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_LOCAL) }.map(Into::into)
}

#[cfg(not(unix))]
fn open(path: &Path) -> Result<Library, libloading::Error> {
    // SAFETY: initialisers of the library run: the caller trusts it.
    unsafe { Library::new(path) }
}
