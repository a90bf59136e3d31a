//! Long-term memory: what leaves the window is archived word for word, and comes back when a later
//! message needs it.
//!
//! The contract is [`ctx_core::MemoryStore`]; the archive, the search behind it and the recall layer
//! are not here yet.

#![forbid(unsafe_code)]
