//! Entries that count how often they are read.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ctx_core::{Entry, LoadMessage, Message, Result};

/// Counts how often messages were read.
#[derive(Clone, Debug, Default)]
pub(super) struct Reads(Arc<AtomicU64>);

impl Reads {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Returns the messages as entries that are read on demand.
    pub(super) fn entries(&self, messages: Vec<Message>) -> Vec<Arc<Entry>> {
        let of = |(n, message): (usize, Message)| {
            let timestamp = message.meta.timestamp;
            let loader = Box::new(Counted { message, reads: self.clone() });
            Arc::new(Entry::lazy(format!("{n:08x}"), timestamp, loader))
        };
        messages.into_iter().enumerate().map(of).collect()
    }
}

struct Counted {
    message: Message,
    reads: Reads,
}

impl LoadMessage for Counted {
    fn load(&self) -> Result<Message> {
        self.reads.0.fetch_add(1, Ordering::Relaxed);
        Ok(self.message.clone())
    }
}
