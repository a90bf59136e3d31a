//! Names each layer crate once, a feature each: linking this crate fills the registry.
//!
//! `inventory` finds only what is linked, and a crate that no code names is not.

#![forbid(unsafe_code)]

/// Layer 3, for those who compact or audit by themselves.
#[cfg(feature = "compaction")]
pub use ctx_compaction as compaction;
/// Long-term memory, for those who archive and search by themselves.
#[cfg(feature = "memory")]
pub use ctx_memory as memory;
#[cfg(feature = "pruning")]
use ctx_pruning as _;
/// Layer 2, for those who bound a result when it is written.
#[cfg(feature = "tool-guard")]
pub use ctx_tool_guard as tool_guard;
/// Layer 1, for those who settle a window by themselves.
#[cfg(feature = "window-guard")]
pub use ctx_window_guard as window_guard;

/// The layers that are linked, by the names they have in manifests and in their order.
pub const LINKED: &[&str] = &[
    #[cfg(feature = "window-guard")]
    "window-guard",
    #[cfg(feature = "tool-guard")]
    "tool-guard",
    #[cfg(feature = "pruning")]
    "pruning",
    #[cfg(feature = "memory")]
    "memory",
    #[cfg(feature = "memory")]
    "workspace",
    #[cfg(feature = "compaction")]
    "compaction",
    #[cfg(feature = "compaction")]
    "hard-prune",
    #[cfg(feature = "memory")]
    "memory-archive",
];
