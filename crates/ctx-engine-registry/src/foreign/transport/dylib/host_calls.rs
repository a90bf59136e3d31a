//! The host calls of an engine in a library: the host's function table, and the services behind it.

#![allow(unsafe_code)] // the library calls these functions by pointer

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

use ctx_engine_sdk::abi::{Buffer, Bytes, HostTable, MISUSED, OK, PANICKED};

use crate::foreign::transport::HostCallHandler;

/// Answers host calls while a call is running, and only on its thread.
#[derive(Default)]
pub(super) struct HostCalls {
    active: Mutex<Option<ActiveCall>>,
}

struct ActiveCall {
    thread: ThreadId,
    /// The [`CallServices`] of the call, on the stack of [`HostCalls::open`].
    services: *mut c_void,
}

// SAFETY: the pointer is dereferenced only on the thread that set it.
unsafe impl Send for ActiveCall {}

struct CallServices<'a, 'b>(&'a mut HostCallHandler<'b>);

impl HostCalls {
    pub(super) fn table(&'static self) -> HostTable {
        HostTable {
            size: size_of::<HostTable>(),
            context: ptr::from_ref(self).cast_mut().cast(),
            call: Some(call),
            release: Some(release),
        }
    }

    /// Runs `work`, during which the engine may call services.
    pub(super) fn open<T>(
        &self,
        services: &mut HostCallHandler<'_>,
        work: impl FnOnce() -> T,
    ) -> T {
        let mut services = CallServices(services);
        let services = (&raw mut services).cast();
        self.set(Some(ActiveCall { thread: thread::current().id(), services }));
        let _active = Deactivate(self);
        work()
    }

    fn set(&self, active: Option<ActiveCall>) {
        *self.active.lock().unwrap_or_else(PoisonError::into_inner) = active;
    }

    fn answer(&self, request: &[u8]) -> Option<Vec<u8>> {
        // Taken out, so that a service that re-enters this function finds nothing.
        let mut slot = self.active.lock().unwrap_or_else(PoisonError::into_inner);
        let active = slot.take_if(|active| active.thread == thread::current().id())?;
        drop(slot);
        // SAFETY: `open` is on this thread's stack below this frame, as this thread set the
        // pointer, and no other code has the pointer now.
        let services = unsafe { &mut *active.services.cast::<CallServices<'_, '_>>() };
        let reply = catch_unwind(AssertUnwindSafe(|| (services.0)(request))).ok();
        self.set(Some(active));
        reply
    }
}

/// Deactivates the host calls when dropped, also on a panic.
struct Deactivate<'a>(&'a HostCalls);

impl Drop for Deactivate<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

unsafe extern "C" fn call(context: *mut c_void, request: Bytes, reply: *mut Buffer) -> i32 {
    if context.is_null() || reply.is_null() || (request.data.is_null() && request.len > 0) {
        return MISUSED;
    }
    let worked = AssertUnwindSafe(|| {
        // SAFETY: the context is a `HostCalls`, which is never freed.
        let host_calls = unsafe { &*context.cast::<HostCalls>() };
        let bytes: &[u8] = if request.len == 0 {
            &[]
        } else {
            // SAFETY: the library guarantees this length for the duration of the call.
            unsafe { std::slice::from_raw_parts(request.data, request.len) }
        };
        // SAFETY: checked not to be null; the library reads it whatever status is returned.
        unsafe { reply.write(Buffer::EMPTY) };
        let Some(replied) = host_calls.answer(bytes) else { return MISUSED };
        let mut replied = ManuallyDrop::new(replied);
        let (data, len, capacity) = (replied.as_mut_ptr(), replied.len(), replied.capacity());
        // SAFETY: as above.
        unsafe { reply.write(Buffer { data, len, capacity }) };
        OK
    });
    catch_unwind(worked).unwrap_or(PANICKED)
}

unsafe extern "C" fn release(_: *mut c_void, reply: Buffer) {
    if !reply.data.is_null() {
        // SAFETY: `call` created it from a vector.
        drop(unsafe { Vec::from_raw_parts(reply.data, reply.len, reply.capacity) });
    }
}
