//! Links every layer crate, one Cargo feature per layer, so that each registers itself.
//!
//! `inventory` only finds crates that are linked, and a crate that no code names is not linked.

#![forbid(unsafe_code)]

/// Layer 3, for direct use of compaction and audit.
#[cfg(feature = "compaction")]
pub use ctx_compaction as compaction;
#[cfg(feature = "dedup")]
use ctx_dedup as _;
#[cfg(feature = "memory")]
use ctx_memory as _;
#[cfg(feature = "pruning")]
use ctx_pruning as _;
/// Layer 2, for bounding a result when it is written.
#[cfg(feature = "tool-guard")]
pub use ctx_tool_guard as tool_guard;
/// Layer 1, for resolving a context window.
#[cfg(feature = "window-guard")]
pub use ctx_window_guard as window_guard;

#[cfg(feature = "workspace")]
use ctx_workspace as _;

/// The linked layers, by the names they have in manifests, in the order they run.
pub const LINKED: &[&str] = &[
    #[cfg(feature = "window-guard")]
    "window-guard",
    #[cfg(feature = "tool-guard")]
    "tool-guard",
    #[cfg(feature = "pruning")]
    "pruning",
    #[cfg(feature = "workspace")]
    "workspace",
    #[cfg(feature = "compaction")]
    "compaction",
    #[cfg(feature = "memory")]
    "memory-trim",
    #[cfg(feature = "memory")]
    "memory-archive",
    #[cfg(feature = "memory")]
    "memory",
    #[cfg(feature = "compaction")]
    "hard-prune",
    #[cfg(feature = "dedup")]
    "dedup",
];
