//! What the author of a context engine depends on.
//!
//! An engine fills the slot `plugins.slots.contextEngine` from outside: as a dynamic library or as
//! a process. This crate will hold the wire protocol and the C ABI that carry it; it depends on no
//! other crate of ctx, so that an engine builds against it alone. Until then engines are built in:
//! see `ContextEngine` in `ctx-core`.
