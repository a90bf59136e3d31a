//! A job: what a producer wants done.

use std::fmt;

use bytes::Bytes;

/// Identifies a job. Given by the queue, never used twice, increasing in the order of `PUSH`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u64);

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "j{:08x}", self.0)
    }
}

/// 0 is the most urgent, 9 the least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Priority(u8);

impl Priority {
    /// Where `PUSH` does not say.
    pub const DEFAULT: Self = Self(5);

    /// A priority, if it is one.
    pub fn new(value: u8) -> Option<Self> {
        (value <= 9).then_some(Self(value))
    }

    /// 0 to 9.
    pub fn get(self) -> u8 {
        self.0
    }
}

/// A job with its payload and its history.
#[derive(Clone, Debug)]
pub struct Job {
    /// Its id.
    pub id: JobId,
    /// The topic it was pushed to.
    pub topic: Box<str>,
    /// How urgent it is.
    pub priority: Priority,
    /// The producer's bytes. The queue does not look inside.
    pub payload: Bytes,
    /// How often it was handed to a worker.
    pub deliveries: u32,
    /// After how many deliveries it is dead. Zero: never.
    pub max_deliveries: u32,
    /// When it was pushed, in milliseconds since the epoch.
    pub pushed_at: u64,
}

impl Job {
    /// Whether one more delivery is one too many.
    pub fn is_exhausted(&self) -> bool {
        self.max_deliveries != 0 && self.deliveries >= self.max_deliveries
    }

    /// How long it has been waiting at `now`, in milliseconds.
    pub fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.pushed_at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_end_at_nine() {
        assert_eq!(Priority::new(9).map(Priority::get), Some(9));
        assert_eq!(Priority::new(10), None);
    }

    #[test]
    fn ids_print_with_eight_digits() {
        assert_eq!(JobId(48879).to_string(), "j0000beef");
    }
}
