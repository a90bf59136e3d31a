//! The suite measures the memory of this program and its descendants, so concurrent tests must not
//! use much memory meanwhile.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MEMORY: RwLock<()> = RwLock::new(());

/// For tests that measure, or that need little memory.
pub(crate) fn measured() -> RwLockReadGuard<'static, ()> {
    MEMORY.read().unwrap_or_else(PoisonError::into_inner)
}

/// For work that needs much memory: compilers, and engines that leak on purpose.
pub(crate) fn filled() -> RwLockWriteGuard<'static, ()> {
    MEMORY.write().unwrap_or_else(PoisonError::into_inner)
}
