//! The time of day, as the queue sees it.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since the Unix epoch.
///
/// The system clock may step backwards (NTP, a laptop that slept). The queue bears that: a lease
/// then simply lasts longer.
pub fn now_ms() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map(|d| d.as_millis() as u64)
        .unwrap_or(0)
}

/// How long from now until `deadline`, for a timer. Zero if it has passed.
pub fn until(deadline: u64) -> std::time::Duration {
    std::time::Duration::from_millis(deadline.saturating_sub(now_ms()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_after_2020() {
        assert!(now_ms() > 1_577_836_800_000);
    }

    #[test]
    fn a_deadline_in_the_past_is_zero_away() {
        assert_eq!(until(5), std::time::Duration::ZERO);
    }
}
