//! The suite measures the memory of this program and all that it started, so tests that run side by
//! side must not fill it meanwhile.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

static MEMORY: RwLock<()> = RwLock::new(());

/// For a test that measures, or needs little.
pub(crate) fn measured() -> RwLockReadGuard<'static, ()> {
    MEMORY.read().unwrap_or_else(PoisonError::into_inner)
}

/// For what takes much: compilers, and engines that leak on purpose.
pub(crate) fn filled() -> RwLockWriteGuard<'static, ()> {
    MEMORY.write().unwrap_or_else(PoisonError::into_inner)
}
