//! The suite measures the memory of this program and its descendants, so concurrent tests must not
//! use much memory meanwhile.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MEMORY: RwLock<()> = RwLock::new(());

/// Returns a guard for tests that measure memory. No work that needs much memory runs meanwhile.
pub(crate) fn measured() -> RwLockReadGuard<'static, ()> {
    MEMORY.read().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a guard for work that needs much memory, such as compilers and engines that leak.
pub(crate) fn filled() -> RwLockWriteGuard<'static, ()> {
    MEMORY.write().unwrap_or_else(PoisonError::into_inner)
}
