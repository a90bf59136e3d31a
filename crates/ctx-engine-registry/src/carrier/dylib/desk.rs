//! Where an engine in a library asks its host: the host's table, and the services behind it.

#![allow(unsafe_code)] // the library calls a pointer to a function here

use std::ffi::c_void;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::{Mutex, PoisonError};
use std::thread::{self, ThreadId};

use ctx_engine_sdk::abi::{Buffer, Bytes, HostTable, MISUSED, OK, PANICKED};

use crate::carrier::Answering;

/// Answers while a call is at work, and only on its thread.
#[derive(Default)]
pub(super) struct Desk {
    at_work: Mutex<Option<AtWork>>,
}

struct AtWork {
    thread: ThreadId,
    /// The [`Services`] of the call, on the stack of [`Desk::open`].
    services: *mut c_void,
}

// SAFETY: the pointer is only followed on the thread that set it.
unsafe impl Send for AtWork {}

struct Services<'a, 'b>(&'a mut Answering<'b>);

impl Desk {
    pub(super) fn table(&'static self) -> HostTable {
        HostTable {
            size: size_of::<HostTable>(),
            context: ptr::from_ref(self).cast_mut().cast(),
            call: Some(call),
            release: Some(release),
        }
    }

    /// Does `work`, during which the engine may ask for services.
    pub(super) fn open<T>(&self, services: &mut Answering<'_>, work: impl FnOnce() -> T) -> T {
        let mut services = Services(services);
        let services = (&raw mut services).cast();
        self.set(Some(AtWork { thread: thread::current().id(), services }));
        let _closed = Close(self);
        work()
    }

    fn set(&self, at_work: Option<AtWork>) {
        *self.at_work.lock().unwrap_or_else(PoisonError::into_inner) = at_work;
    }

    fn answer(&self, request: &[u8]) -> Option<Vec<u8>> {
        // Taken out, so that a service that comes here again finds nothing.
        let mut slot = self.at_work.lock().unwrap_or_else(PoisonError::into_inner);
        let at_work = slot.take_if(|at_work| at_work.thread == thread::current().id())?;
        drop(slot);
        // SAFETY: `open` is on this thread's stack below this frame, as the thread is the one that
        // set it, and nobody else has the pointer now.
        let services = unsafe { &mut *at_work.services.cast::<Services<'_, '_>>() };
        let reply = catch_unwind(AssertUnwindSafe(|| (services.0)(request))).ok();
        self.set(Some(at_work));
        reply
    }
}

/// Closes the desk, however the work ends.
struct Close<'a>(&'a Desk);

impl Drop for Close<'_> {
    fn drop(&mut self) {
        self.0.set(None);
    }
}

unsafe extern "C" fn call(context: *mut c_void, request: Bytes, reply: *mut Buffer) -> i32 {
    if context.is_null() || reply.is_null() || (request.data.is_null() && request.len > 0) {
        return MISUSED;
    }
    let worked = AssertUnwindSafe(|| {
        // SAFETY: the context is a desk, which lives for ever.
        let desk = unsafe { &*context.cast::<Desk>() };
        let bytes: &[u8] = if request.len == 0 {
            &[]
        } else {
            // SAFETY: the library lends so many bytes for this call.
            unsafe { std::slice::from_raw_parts(request.data, request.len) }
        };
        // SAFETY: checked not to be null; the library reads it whatever is returned.
        unsafe { reply.write(Buffer::EMPTY) };
        let Some(replied) = desk.answer(bytes) else { return MISUSED };
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
        // SAFETY: `call` made it of a vector.
        drop(unsafe { Vec::from_raw_parts(reply.data, reply.len, reply.capacity) });
    }
}
