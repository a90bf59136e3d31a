//! The table of a library, for an [`Engine`].

use std::ffi::c_void;
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::Engine;
use crate::driver::Driver;
use crate::host::Carry;
use crate::protocol::{Error, Result};

use super::{ABI, Buffer, Bytes, EngineTable, HostTable, MISUSED, OK, PANICKED};

/// An engine behind the C ABI. Hosts see only its address.
#[derive(Debug)]
pub struct Instance<E> {
    driver: Mutex<Driver<E>>,
    cancelled: AtomicBool,
    host: *const HostTable,
}

/// The table that [`export_engine!`](crate::export_engine) hands out.
#[derive(Debug)]
pub struct Exported<E>(PhantomData<E>);

impl<E: Engine> Exported<E> {
    /// The table.
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
        // SAFETY: checked not to be null, and the host lends it for this call.
        unsafe { *engine = Box::into_raw(Box::new(instance)).cast() };
        OK
    })
}

unsafe extern "C" fn call<E: Engine>(engine: *mut c_void, call: Bytes, answer: *mut Buffer) -> i32 {
    if engine.is_null() || answer.is_null() || (call.data.is_null() && call.len > 0) {
        return MISUSED;
    }
    guarded(|| {
        // SAFETY: `create` made it, and the host has not destroyed it.
        let instance = unsafe { &*engine.cast::<Instance<E>>() };
        // A poisoned lock cannot be: the driver catches what the engine panics with.
        let Ok(mut driver) = instance.driver.try_lock() else { return MISUSED };
        // SAFETY: the host lends the bytes for this call.
        let bytes = unsafe { lent(call) };
        let mut carry = AcrossAbi(instance.host);
        let made = driver.answer(bytes, &mut carry, &instance.cancelled);
        // SAFETY: checked not to be null.
        unsafe { *answer = given(made) };
        OK
    })
}

unsafe extern "C" fn release(answer: Buffer) {
    guarded(|| {
        if !answer.data.is_null() {
            // SAFETY: `given` made it of a vector.
            drop(unsafe { Vec::from_raw_parts(answer.data, answer.len, answer.capacity) });
        }
        OK
    });
}

unsafe extern "C" fn cancel<E: Engine>(engine: *mut c_void) {
    if !engine.is_null() {
        // SAFETY: `create` made it, and a flag may be set while a call is at work.
        unsafe { &*engine.cast::<Instance<E>>() }.cancelled.store(true, Ordering::Relaxed);
    }
}

unsafe extern "C" fn destroy<E: Engine>(engine: *mut c_void) {
    if !engine.is_null() {
        guarded(|| {
            // SAFETY: `create` made it, and the host gives it back.
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
/// The bytes must be there for the lifetime.
unsafe fn lent<'b>(bytes: Bytes) -> &'b [u8] {
    if bytes.len == 0 {
        return &[];
    }
    // SAFETY: the caller says so.
    unsafe { std::slice::from_raw_parts(bytes.data, bytes.len) }
}

fn given(bytes: Vec<u8>) -> Buffer {
    let mut bytes = std::mem::ManuallyDrop::new(bytes);
    Buffer { data: bytes.as_mut_ptr(), len: bytes.len(), capacity: bytes.capacity() }
}

/// Host calls through the host's table.
struct AcrossAbi(*const HostTable);

impl Carry for AcrossAbi {
    fn carry(&mut self, host_call: &[u8]) -> Result<Vec<u8>> {
        let short = || Error::failed("the host's table holds no services");
        // SAFETY: the table lives as long as the engine, and its first field is its size.
        let size = unsafe { std::ptr::addr_of!((*self.0).size).read() };
        if size < size_of::<HostTable>() {
            return Err(short());
        }
        // SAFETY: it is as large as the table that is known here.
        let host = unsafe { *self.0 };
        let (Some(call), Some(release)) = (host.call, host.release) else { return Err(short()) };
        let request = Bytes { data: host_call.as_ptr(), len: host_call.len() };
        let mut reply = Buffer::EMPTY;
        // SAFETY: the request is lent for this call, and the reply is ours to be written.
        let status = unsafe { call(host.context, request, &raw mut reply) };
        // SAFETY: the host owns the reply until it is released.
        let bytes = unsafe { lent(Bytes { data: reply.data, len: reply.len }) }.to_vec();
        // SAFETY: it is the host's own.
        unsafe { release(host.context, reply) };
        match status {
            OK => Ok(bytes),
            status => Err(Error::failed(format!("the host refused a service: status {status}"))),
        }
    }
}

/// Makes a `cdylib` of an [`Engine`](crate::Engine): defines the library's one entry.
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
        /// The entry of this library: see `ctx_engine.h`.
        #[unsafe(no_mangle)]
        pub extern "C" fn ctx_engine_v1() -> *const $crate::abi::EngineTable {
            static TABLE: $crate::abi::EngineTable = $crate::abi::Exported::<$engine>::TABLE;
            &raw const TABLE
        }
    };
}
