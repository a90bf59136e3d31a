//! Room to search in, used again: to get a few megabytes anew for each query takes longer than the rest.

use std::sync::{Mutex, PoisonError};

use crate::lexical::Scores;

/// As many searches at once find room that is there; one more gets its own.
const KEPT: usize = 4;

/// What one search writes to.
#[derive(Debug, Default)]
pub(super) struct Room {
    pub(super) pieces: Scores,
    pub(super) bm25: Scores,
    pub(super) lexical: Scores,
    pub(super) cosines: Scores,
}

/// Room that nobody uses now.
#[derive(Debug, Default)]
pub(super) struct Rooms {
    free: Mutex<Vec<Room>>,
}

impl Rooms {
    pub(super) fn take(&self) -> Room {
        self.free.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    pub(super) fn give(&self, room: Room) {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        if free.len() < KEPT {
            free.push(room);
        }
    }
}
