//! Retries of a call.

use std::time::Duration;

use crate::fnv1a::fnv1a;

/// The maximum number of attempts per call (PonyBunny).
pub(super) const MAX_ATTEMPTS: u32 = 3;

/// The wait after the first failure; it doubles with each one (PonyBunny).
const FIRST_WAIT: Duration = Duration::from_millis(500);

/// The maximum wait, unless the provider asks for more (OpenClaw).
const LONGEST_WAIT: Duration = Duration::from_secs(5);

/// Returns the wait after failed attempt number `attempt` (from 1).
///
/// The wait doubles with each attempt and varies by a fifth either way, so that sessions that
/// failed together do not retry together. The variation depends on `seed`: the same job waits the
/// same each time. `asked`, the wait the provider requested, is the minimum.
pub(super) fn wait(attempt: u32, seed: u64, asked: Option<Duration>) -> Duration {
    let doublings = attempt.saturating_sub(1).min(16);
    let base = FIRST_WAIT.saturating_mul(1 << doublings).min(LONGEST_WAIT);
    let dice = fnv1a(&[&seed.to_le_bytes(), &attempt.to_le_bytes()]) % 401;
    let millis = base.as_millis() as u64 * (800 + dice) / 1_000;
    Duration::from_millis(millis).max(asked.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_within_a_fifth_and_honour_what_was_asked() {
        let asked = Some(Duration::from_secs(30));
        for seed in 0..200 {
            for (attempt, base) in [(1, 500), (2, 1_000), (3, 2_000), (9, 5_000), (u32::MAX, 5_000)]
            {
                let wait = wait(attempt, seed, None).as_millis();
                assert!((base * 4 / 5..=base * 6 / 5).contains(&wait), "{attempt}: {wait}");
                assert_eq!(super::wait(attempt, seed, asked), Duration::from_secs(30));
                assert_eq!(super::wait(attempt, seed, Some(Duration::ZERO)).as_millis(), wait);
            }
        }
    }

    #[test]
    fn the_jitter_is_the_same_for_the_same_job_and_differs_between_jobs() {
        let waits: Vec<_> = (0..20).map(|seed| wait(1, seed, None)).collect();
        assert_eq!(waits, (0..20).map(|seed| wait(1, seed, None)).collect::<Vec<_>>());
        let mut different = waits;
        different.sort();
        different.dedup();
        assert!(different.len() > 10, "{different:?}");
    }
}
