//! Reusable buffers for searches: allocating a few megabytes per query takes longer than the rest.

use std::sync::{Mutex, PoisonError};

use crate::lexical::Scores;

/// The maximum number of buffers kept; further concurrent searches allocate their own.
const KEPT: usize = 4;

/// The buffers of one search.
#[derive(Debug, Default)]
pub(super) struct SearchBuffers {
    pub(super) pieces: Scores,
    pub(super) bm25: Scores,
    pub(super) lexical: Scores,
    pub(super) cosines: Scores,
}

/// The unused buffers.
#[derive(Debug, Default)]
pub(super) struct BufferPool {
    free: Mutex<Vec<SearchBuffers>>,
}

impl BufferPool {
    pub(super) fn take(&self) -> SearchBuffers {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(super) fn give(&self, room: SearchBuffers) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT {
            free.push(room);
        }
    }
}
