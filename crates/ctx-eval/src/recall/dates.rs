//! Parses the dates of conversations.

use ctx_core::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;

/// An unknown time.
pub(super) const UNKNOWN: Timestamp = Timestamp(0);

/// Parses `1:56 pm on 8 May, 2023`, `March-15-2024`, or an ISO date with or without a time.
pub(super) fn time(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    let at = DateTime::strptime("%I:%M %p on %d %B, %Y", text)
        .ok()
        .or_else(|| Date::strptime("%B-%d-%Y", text).ok().map(Date::into))
        .or_else(|| text.parse::<DateTime>().ok());
    let instant = at.and_then(|at| at.to_zoned(TimeZone::UTC).ok()).map(|at| at.timestamp());
    let instant = instant.or_else(|| text.parse::<jiff::Timestamp>().ok())?;
    Some(Timestamp(instant.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_date_formats_are_parsed() {
        assert_eq!(time("1:56 pm on 8 May, 2023"), Some(Timestamp(1_683_554_160_000)));
        assert_eq!(time("12:05 AM on 31 December, 2022"), Some(Timestamp(1_672_445_100_000)));
        assert_eq!(time("March-15-2024"), Some(Timestamp(1_710_460_800_000)));
        assert_eq!(time("2024-03-15"), Some(Timestamp(1_710_460_800_000)));
        assert_eq!(time("2024-03-15T00:00:00Z"), Some(Timestamp(1_710_460_800_000)));
        for text in ["", "yesterday", "31 February, 2023", "99:99 pm on 8 May, 2023"] {
            assert_eq!(time(text), None, "{text}");
        }
    }
}
