//! The C ABI: an engine as a dynamic library. `include/ctx_engine.h` declares the same in C; a test
//! checks that the two agree.
//!
//! The rules:
//!
//! - A library has one entry point, [`ctx_engine_v1`](ENTRY). It returns a table that is valid
//!   until the process ends. A library is never unloaded.
//! - Tables begin with their size, and fields are only ever appended. A reader checks the size
//!   before it accesses a field, so either side may be older.
//! - Input and output are bytes: the messages of [`protocol`](crate::protocol), as JSON unless
//!   the engine chooses another encoding in its answer to `hello`. [`Bytes`] are borrowed for the
//!   duration of the call. A [`Buffer`] is freed by the side that allocated it, through the `release`
//!   function next to the function that returned it.
//! - Calls on one engine come one at a time, from any thread. Only `cancel` may be called from
//!   another thread while a call is running.
//! - Host services may be called only from inside a call, on its thread.
//! - Nothing may unwind across the boundary: a panic is returned as an answer. A library built with
//!   `panic = "abort"` ends the host as well.

#![allow(unsafe_code)] // this module defines tables of pointers

mod export;

use std::ffi::c_void;

pub use export::{Exported, Instance};

/// The one exported symbol of a library: an [`EntryFn`].
pub const ENTRY: &str = "ctx_engine_v1";

/// The value of [`EngineTable::abi`].
pub const ABI: u32 = 1;

/// The function returned an answer, which may be an error.
pub const OK: i32 = 0;

/// The engine panicked, and could not return the panic as an answer. It must not be used again.
pub const PANICKED: i32 = 1;

/// The caller broke a rule: a null pointer, or a call during another call.
pub const MISUSED: i32 = 2;

/// Borrowed bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// Pointer to the bytes; may be null if `len` is 0.
    pub data: *const u8,
    /// Number of bytes.
    pub len: usize,
}

/// Bytes allocated for the other side.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Pointer to the bytes.
    pub data: *mut u8,
    /// Number of bytes.
    pub len: usize,
    /// What the owner needs to free them; the other side ignores it.
    pub capacity: usize,
}

impl Buffer {
    /// No bytes. Does not have to be released.
    pub const EMPTY: Self = Self { data: std::ptr::null_mut(), len: 0, capacity: 0 };
}

/// The function table that a host passes to an engine.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostTable {
    /// `sizeof(ctx_host_v1)` of the host.
    pub size: usize,
    /// Opaque value of the host; passed back to it.
    pub context: *mut c_void,
    /// Answers a [`HostCall`](crate::protocol::HostCall) with a [`Reply`](crate::protocol::Reply).
    pub call: Option<
        unsafe extern "C" fn(context: *mut c_void, request: Bytes, reply: *mut Buffer) -> i32,
    >,
    /// Frees a reply.
    pub release: Option<unsafe extern "C" fn(context: *mut c_void, reply: Buffer)>,
}

/// The function table that a library returns to its host.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EngineTable {
    /// `sizeof(ctx_engine_table_v1)` of the library.
    pub size: usize,
    /// [`ABI`].
    pub abi: u32,
    /// Creates an engine. The host table is valid as long as the engine.
    pub create:
        Option<unsafe extern "C" fn(host: *const HostTable, engine: *mut *mut c_void) -> i32>,
    /// Answers a [`Call`](crate::protocol::Call) with an [`Answer`](crate::protocol::Answer).
    pub call:
        Option<unsafe extern "C" fn(engine: *mut c_void, call: Bytes, answer: *mut Buffer) -> i32>,
    /// Frees an answer.
    pub release: Option<unsafe extern "C" fn(answer: Buffer)>,
    /// Signals that the answer to the running call is not needed any more.
    pub cancel: Option<unsafe extern "C" fn(engine: *mut c_void)>,
    /// Frees an engine.
    pub destroy: Option<unsafe extern "C" fn(engine: *mut c_void)>,
}

/// The entry point of a library.
pub type EntryFn = unsafe extern "C" fn() -> *const EngineTable;

// SAFETY: a table contains only constants and function pointers.
unsafe impl Sync for EngineTable {}
