//! The C ABI: an engine as a dynamic library. `include/ctx_engine.h` says the same in C, and a test
//! holds the two together.
//!
//! The rules:
//!
//! - A library has one entry, [`ctx_engine_v1`](ENTRY). It returns a table that lives as long as
//!   the process. A library is never unloaded.
//! - Tables begin with their size, and are only ever appended to. Who reads a table looks at its
//!   size before it touches a field, so that either side may be older.
//! - Bytes go in and bytes come out: the JSON of [`protocol`](crate::protocol). [`Bytes`] are lent
//!   for the time of the call. A [`Buffer`] is freed by who allocated it, through the `release`
//!   beside the function that gave it.
//! - Calls on one engine come one at a time, from any thread. `cancel` alone may come from another
//!   thread while a call is at work.
//! - Host services may be asked for only from inside a call, on its thread.
//! - Nothing may unwind across the boundary: a panic is an answer. A library built with
//!   `panic = "abort"` takes its host along.

#![allow(unsafe_code)] // tables of pointers are what this module is about

mod export;

use std::ffi::c_void;

pub use export::{Exported, Instance};

/// The one symbol of a library: an [`EntryFn`].
pub const ENTRY: &str = "ctx_engine_v1";

/// The version in [`EngineTable::abi`].
pub const ABI: u32 = 1;

/// A function answered.
pub const OK: i32 = 0;

/// The engine panicked outside of a call that could be answered. The engine is not to be used again.
pub const PANICKED: i32 = 1;

/// The caller broke a rule: a null pointer, or a call during another one.
pub const MISUSED: i32 = 2;

/// Lent bytes.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Bytes {
    /// Where they are; may be null if there are none.
    pub data: *const u8,
    /// How many.
    pub len: usize,
}

/// Bytes that were allocated for the other side.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Buffer {
    /// Where they are.
    pub data: *mut u8,
    /// How many.
    pub len: usize,
    /// What their owner needs to know to free them; nobody else looks at it.
    pub capacity: usize,
}

impl Buffer {
    /// No bytes. Needs not be released.
    pub const EMPTY: Self = Self { data: std::ptr::null_mut(), len: 0, capacity: 0 };
}

/// What a host gives to an engine.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostTable {
    /// `sizeof(ctx_host_v1)` of the host.
    pub size: usize,
    /// The host's own; passed back to it.
    pub context: *mut c_void,
    /// Answers a [`HostCall`](crate::protocol::HostCall) with a [`Reply`](crate::protocol::Reply).
    pub call: Option<
        unsafe extern "C" fn(context: *mut c_void, request: Bytes, reply: *mut Buffer) -> i32,
    >,
    /// Frees a reply.
    pub release: Option<unsafe extern "C" fn(context: *mut c_void, reply: Buffer)>,
}

/// What a library gives to its host.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct EngineTable {
    /// `sizeof(ctx_engine_table_v1)` of the library.
    pub size: usize,
    /// [`ABI`].
    pub abi: u32,
    /// Makes an engine. The host table lives as long as the engine.
    pub create:
        Option<unsafe extern "C" fn(host: *const HostTable, engine: *mut *mut c_void) -> i32>,
    /// Answers a [`Call`](crate::protocol::Call) with an [`Answer`](crate::protocol::Answer).
    pub call:
        Option<unsafe extern "C" fn(engine: *mut c_void, call: Bytes, answer: *mut Buffer) -> i32>,
    /// Frees an answer.
    pub release: Option<unsafe extern "C" fn(answer: Buffer)>,
    /// The answer to the call at work is not needed any more.
    pub cancel: Option<unsafe extern "C" fn(engine: *mut c_void)>,
    /// Frees an engine.
    pub destroy: Option<unsafe extern "C" fn(engine: *mut c_void)>,
}

/// The entry of a library.
pub type EntryFn = unsafe extern "C" fn() -> *const EngineTable;

// SAFETY: a table is constants and pointers to functions.
unsafe impl Sync for EngineTable {}
