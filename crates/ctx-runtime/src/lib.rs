//! The outer loop: a host hands over a user's message and gets an answer back.
//!
//! Lanes, overflow recovery, failover between models, the memory flush and the life of a session
//! belong here and are not here yet. A host that runs its own loop uses `ctx-engine-registry` and
//! the layers it links; the pieces it needs from [`ctx_core`] are [`ctx_core::ContextView`],
//! [`ctx_core::ContextEngine`] and [`ctx_core::ToolHooks`].

#![forbid(unsafe_code)]
