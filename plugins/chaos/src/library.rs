//! The engine behind the C ABI. It wraps the SDK's table to corrupt bytes, because the SDK's own
//! table returns only valid bytes.

#![allow(unsafe_code)] // a table of the C ABI, and a fault that safe Rust cannot commit

use std::ffi::c_void;
use std::sync::Mutex;

use ctx_engine_sdk::abi::{Buffer, Bytes, EngineTable, Exported, HostTable, MISUSED, OK};

use crate::bytes::Spoiler;
use crate::engine::Chaos;

const INNER: EngineTable = Exported::<Chaos>::TABLE;

static TABLE: EngineTable = EngineTable {
    create: Some(create),
    call: Some(call),
    cancel: Some(cancel),
    destroy: Some(destroy),
    ..INNER
};

struct Instance {
    inner: *mut c_void,
    spoiler: Mutex<Spoiler>,
}

/// The entry point of this library: see `ctx_engine.h`.
#[unsafe(no_mangle)]
pub extern "C" fn ctx_engine_v1() -> *const EngineTable {
    &raw const TABLE
}

unsafe extern "C" fn create(host: *const HostTable, engine: *mut *mut c_void) -> i32 {
    let (Some(create), false) = (INNER.create, engine.is_null()) else { return MISUSED };
    let mut inner = std::ptr::null_mut();
    // SAFETY: the host's table is passed on unchanged.
    let status = unsafe { create(host, &raw mut inner) };
    if status == OK {
        let instance = Instance { inner, spoiler: Mutex::default() };
        // SAFETY: checked not to be null, and valid for this call.
        unsafe { *engine = Box::into_raw(Box::new(instance)).cast() };
    }
    status
}

unsafe extern "C" fn call(engine: *mut c_void, call: Bytes, answer: *mut Buffer) -> i32 {
    let (Some(inner_call), Some(release), false) = (INNER.call, INNER.release, engine.is_null())
    else {
        return MISUSED;
    };
    // SAFETY: `create` returned it, and the host has not destroyed it.
    let instance = unsafe { &*engine.cast::<Instance>() };
    // SAFETY: the arguments are passed on unchanged.
    let status = unsafe { inner_call(instance.inner, call, answer) };
    let Ok(mut spoiler) = instance.spoiler.lock() else { return status };
    if status != OK {
        return status;
    }
    // SAFETY: the call succeeded, so its bytes are valid and the answer was written.
    let (asked, answered) = unsafe {
        let answered = *answer;
        (lent(call.data, call.len), lent(answered.data, answered.len))
    };
    if let Some(spoiled) = spoiler.spoil(asked, answered) {
        let mut spoiled = std::mem::ManuallyDrop::new(spoiled);
        let (data, len, capacity) = (spoiled.as_mut_ptr(), spoiled.len(), spoiled.capacity());
        // SAFETY: the answer belongs to the inner table. Its `release` frees vectors, and the
        // corrupted answer is a vector.
        unsafe {
            release(*answer);
            *answer = Buffer { data, len, capacity };
        }
    }
    status
}

unsafe extern "C" fn cancel(engine: *mut c_void) {
    if let (Some(cancel), false) = (INNER.cancel, engine.is_null()) {
        // SAFETY: `create` returned it, and the inner table allows this at any time.
        unsafe { cancel((*engine.cast::<Instance>()).inner) };
    }
}

unsafe extern "C" fn destroy(engine: *mut c_void) {
    if let (Some(destroy), false) = (INNER.destroy, engine.is_null()) {
        // SAFETY: `create` returned both, and the host gives up ownership.
        unsafe { destroy(Box::from_raw(engine.cast::<Instance>()).inner) };
    }
}

/// Returns bytes lent by the host.
///
/// # Safety
///
/// The bytes must be valid for the lifetime `'b`.
unsafe fn lent<'b>(data: *const u8, len: usize) -> &'b [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(data, len) }
}

/// Writes to unmapped memory.
pub(crate) fn segfault() {
    // SAFETY: this is unsound on purpose. The first page is never mapped, so the program ends here.
    // The host must survive this.
    unsafe { std::ptr::without_provenance_mut::<u8>(8).write_volatile(1) };
}
