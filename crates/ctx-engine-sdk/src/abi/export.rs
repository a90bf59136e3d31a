//! The exported function table of a library, generated for an [`Engine`].

use std::ffi::c_void;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Engine;
use crate::driver::Driver;
use crate::host::HostTransport;
use crate::protocol::{Error, Result};

use super::{ABI, Buffer, Bytes, EngineTable, HostTable, MISUSED, OK, PANICKED};

/// An engine behind the C ABI. The host knows only its address.
#[derive(Debug)]
pub struct Instance<E> {
    driver: Mutex<Driver<E>>,
    cancelled: AtomicBool,
    host: *const HostTable,
}

/// The type of the table that [`export_engine!`](crate::export_engine) returns.
#[derive(Debug)]
pub struct Exported<E>(PhantomData<E>);

impl<E: Engine> Exported<E> {
    /// The function table.
    pub const TABLE: EngineTable = EngineTable {
        size: size_of::<EngineTable>(),
        abi: ABI,
        create: Some(create::<E>),
        call: Some(call::<E>),
        release: Some(release),
        cancel: Some(cancel::<E>),
        destroy: Some(destroy::<E>),
    };
}

unsafe extern "C" fn create<E: Engine>(host: *const HostTable, engine: *mut *mut c_void) -> i32 {
    if host.is_null() || engine.is_null() {
        return MISUSED;
    }
    guarded(|| {
        let instance =
            Instance::<E> { driver: Mutex::default(), cancelled: AtomicBool::new(false), host };
        // SAFETY: checked not to be null, and valid for this call.
        unsafe { *engine = Box::into_raw(Box::new(instance)).cast() };
        OK
    })
}

unsafe extern "C" fn call<E: Engine>(engine: *mut c_void, call: Bytes, answer: *mut Buffer) -> i32 {
    if engine.is_null() || answer.is_null() || (call.data.is_null() && call.len > 0) {
        return MISUSED;
    }
    guarded(|| {
        // SAFETY: `create` returned it, and the host has not destroyed it.
        let instance = unsafe { &*engine.cast::<Instance<E>>() };
        // The lock cannot be poisoned: the driver catches panics of the engine.
        let Ok(mut driver) = instance.driver.try_lock() else { return MISUSED };
        // SAFETY: the bytes are valid for this call.
        let bytes = unsafe { borrowed(call) };
        let mut transport = AbiTransport(instance.host);
        let made = driver.answer(bytes, &mut transport, &instance.cancelled);
        // SAFETY: checked not to be null.
        unsafe { *answer = into_buffer(made) };
        OK
    })
}

unsafe extern "C" fn release(answer: Buffer) {
    guarded(|| {
        if !answer.data.is_null() {
            // SAFETY: `into_buffer` created it from a vector.
            drop(unsafe { Vec::from_raw_parts(answer.data, answer.len, answer.capacity) });
        }
        OK
    });
}

unsafe extern "C" fn cancel<E: Engine>(engine: *mut c_void) {
    if !engine.is_null() {
        // SAFETY: `create` returned it; setting the flag while a call is running is allowed.
        unsafe { &*engine.cast::<Instance<E>>() }.cancelled.store(true, Ordering::Relaxed);
    }
}

unsafe extern "C" fn destroy<E: Engine>(engine: *mut c_void) {
    if !engine.is_null() {
        guarded(|| {
            // SAFETY: `create` returned it, and the host gives up ownership.
            drop(unsafe { Box::from_raw(engine.cast::<Instance<E>>()) });
            OK
        });
    }
}

fn guarded(work: impl FnOnce() -> i32) -> i32 {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(PANICKED)
}

/// # Safety
///
/// The bytes must be valid for the lifetime `'b`.
unsafe fn borrowed<'b>(bytes: Bytes) -> &'b [u8] {
    if bytes.len == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(bytes.data, bytes.len) }
}

fn into_buffer(bytes: Vec<u8>) -> Buffer {
    let mut bytes = std::mem::ManuallyDrop::new(bytes);
    Buffer { data: bytes.as_mut_ptr(), len: bytes.len(), capacity: bytes.capacity() }
}

/// Sends host calls through the function table of the host.
struct AbiTransport(*const HostTable);

impl HostTransport for AbiTransport {
    fn call(&mut self, host_call: &[u8]) -> Result<Vec<u8>> {
        let short = || Error::failed("the host's table has no services");
        // SAFETY: the table lives as long as the engine, and its first field is its size.
        let size = unsafe { std::ptr::addr_of!((*self.0).size).read() };
        if size < size_of::<HostTable>() {
            return Err(short());
        }
        // SAFETY: the table has at least the size of `HostTable`.
        let host = unsafe { *self.0 };
        let (Some(call), Some(release)) = (host.call, host.release) else { return Err(short()) };
        let request = Bytes { data: host_call.as_ptr(), len: host_call.len() };
        let mut reply = Buffer::EMPTY;
        // SAFETY: the request is valid for this call, and `reply` is a local variable to be
        // written.
        let status = unsafe { call(host.context, request, &raw mut reply) };
        // SAFETY: the reply is valid until it is released.
        let bytes = unsafe { borrowed(Bytes { data: reply.data, len: reply.len }) }.to_vec();
        // SAFETY: the host allocated it.
        unsafe { release(host.context, reply) };
        match status {
            OK => Ok(bytes),
            status => Err(Error::failed(format!("the host refused a service: status {status}"))),
        }
    }
}

/// Turns a crate into a `cdylib` of an [`Engine`](crate::Engine): defines the library's entry
/// point.
///
/// ```
/// use ctx_engine_sdk::{Assembled, Engine, Hello, Host, Info, Plan, Result, Session};
///
/// struct LastTen;
///
/// impl Engine for LastTen {
///     fn hello(_: &Hello, _: &mut Host<'_>) -> Result<(Self, Info)> {
///         Ok((Self, Info::new("last-ten", "0.1.0")))
///     }
///     fn assemble(&mut self, _: &Session, _: &mut Host<'_>) -> Result<Assembled> {
///         Ok(Plan::keep_last(10).into())
///     }
/// }
///
/// ctx_engine_sdk::export_engine!(LastTen);
/// ```
#[macro_export]
macro_rules! export_engine {
    ($engine:ty) => {
        /// The entry point of this library: see `ctx_engine.h`.
        #[unsafe(no_mangle)]
        pub extern "C" fn ctx_engine_v1() -> *const $crate::abi::EngineTable {
            static TABLE: $crate::abi::EngineTable = $crate::abi::Exported::<$engine>::TABLE;
            &raw const TABLE
        }
    };
}
