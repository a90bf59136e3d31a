//! Automatic resets of sessions.

use ctx_config::Config;
use ctx_core::{Result, Timestamp};
use ctx_session::key::{AgentScope, SessionKey};
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::{Lifecycle, SessionConfig, SessionTimes};

const MILLIS_PER_MINUTE: i64 = 60_000;

/// Number of days to search back for the last boundary: a zone that moved across the date line has
/// a missing day.
const DAYS_BACK: i64 = 3;

/// Resets sessions at an hour of the day and after an idle time, as `session.reset` says. Settings
/// are kept.
#[derive(Clone, Debug)]
pub struct Resets {
    at_hour: Option<u8>,
    idle: Option<i64>,
    zone: Option<TimeZone>,
}

impl Resets {
    /// Creates it from the configuration, in the system's time zone.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Config`](ctx_core::ErrorKind::Config).
    pub fn of(config: &Config) -> Result<Self> {
        let section: SessionConfig = config.section()?;
        Ok(Self {
            at_hour: section.at_hour(),
            idle: section.idle_minutes().map(|minutes| i64::from(minutes) * MILLIS_PER_MINUTE),
            zone: None,
        })
    }

    /// Uses another time zone.
    pub fn in_zone(self, zone: TimeZone) -> Self {
        Self { zone: Some(zone), ..self }
    }

    /// Returns the start of the session day that contains `now`. It is never after `now`.
    fn boundary(&self, hour: u8, now: Timestamp) -> Option<Timestamp> {
        // Looked up each time: the machine may have changed its time zone.
        let zone = self.zone.clone().unwrap_or_else(TimeZone::system);
        let at = jiff::Timestamp::from_millisecond(now.0).ok()?;
        let today = zone.to_datetime(at).date();
        // A skipped hour is replaced by the next hour. A repeated hour counts the first time. So
        // each day has exactly one boundary, also when the clock is set back.
        let of = |date: Date| {
            let hour = date.at(i8::try_from(hour).ok()?, 0, 0, 0);
            let at = zone.to_ambiguous_timestamp(hour).compatible().ok()?;
            Some(Timestamp(at.as_millisecond()))
        };
        let days = (0..=DAYS_BACK).filter_map(|back| of(today.checked_sub(back.days()).ok()?));
        days.into_iter().find(|boundary| *boundary <= now)
    }
}

impl Lifecycle for Resets {
    fn is_over(&self, key: &SessionKey, times: SessionTimes, now: Timestamp) -> bool {
        // A subagent's session lives as long as its task.
        if let SessionKey::Agent { scope: AgentScope::Subagent(_), .. } = key {
            return false;
        }
        // If the clock was set back, no session is idle and no day has ended.
        let silent = now.0.saturating_sub(times.last.0);
        let is_idle = self.idle.is_some_and(|idle| silent > idle);
        let boundary = self.at_hour.and_then(|hour| self.boundary(hour, now));
        is_idle || boundary.is_some_and(|boundary| times.began < boundary)
    }
}

#[cfg(test)]
mod tests {
    use ctx_session::key::FileId;

    use super::*;

    fn resets(keys: &str, zone: &str) -> Resets {
        let config = Config::parse(&format!("{{ session: {{ {keys} }} }}")).unwrap();
        Resets::of(&config).unwrap().in_zone(TimeZone::get(zone).unwrap())
    }

    fn at(time: &str) -> Timestamp {
        Timestamp(time.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    fn main() -> SessionKey {
        SessionKey::main(FileId::main())
    }

    fn is_over(resets: &Resets, began: &str, last: &str, now: &str) -> bool {
        resets.is_over(&main(), SessionTimes { began: at(began), last: at(last) }, at(now))
    }

    #[test]
    fn a_day_begins_at_four_in_the_local_time_zone() {
        let berlin = resets("", "Europe/Berlin");
        let over = |began, now| is_over(&berlin, began, began, now);
        assert!(!over("2026-01-10T02:59:59Z", "2026-01-10T02:59:59.999Z"), "3:59:59 in Berlin");
        assert!(over("2026-01-10T02:59:59Z", "2026-01-10T03:00:00Z"));
        assert!(!over("2026-01-10T03:00:00Z", "2026-01-11T02:59:59Z"));
        assert!(over("2026-01-10T03:00:00Z", "2026-01-11T03:00:00Z"));
        assert!(over("2026-01-10T03:00:00Z", "2026-03-11T12:00:00Z"), "days later");
        let tokyo = resets("reset: { atHour: 0 }", "Asia/Tokyo");
        assert!(is_over(
            &tokyo,
            "2026-01-10T14:59:59Z",
            "2026-01-10T14:59:59Z",
            "2026-01-10T15:00:00Z"
        ));
    }

    #[test]
    fn activity_after_the_hour_does_not_prevent_the_reset() {
        let utc = resets("", "UTC");
        assert!(is_over(
            &utc,
            "2026-01-10T22:00:00Z",
            "2026-01-11T04:10:00Z",
            "2026-01-11T04:20:00Z"
        ));
    }

    /// Checks every minute whether the session is over, and resets it then. Returns the times of
    /// the resets.
    fn begun(resets: &Resets, from: &str, to: &str) -> Vec<String> {
        let (mut now, to) = (at(from), at(to));
        let mut began = now;
        let mut begun = Vec::new();
        while now < to {
            if resets.is_over(&main(), SessionTimes { began, last: now }, now) {
                began = now;
                begun.push(jiff::Timestamp::from_millisecond(now.0).unwrap().to_string());
            }
            now.0 += MILLIS_PER_MINUTE;
        }
        begun
    }

    #[test]
    fn an_hour_skipped_in_spring_resets_once() {
        // In Berlin, 1:59 was followed by 3:00 on 2026-03-29.
        let berlin = resets("reset: { atHour: 2 }", "Europe/Berlin");
        let days = begun(&berlin, "2026-03-28T12:00:00Z", "2026-03-31T12:00:00Z");
        assert_eq!(days, ["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z", "2026-03-31T00:00:00Z"]);
    }

    #[test]
    fn an_hour_repeated_in_autumn_resets_once() {
        // In Berlin, 2:59 was followed by 2:00 on 2026-10-25.
        let berlin = resets("reset: { atHour: 2 }", "Europe/Berlin");
        let days = begun(&berlin, "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
        assert_eq!(days, ["2026-10-25T00:00:00Z", "2026-10-26T01:00:00Z"]);
    }

    #[test]
    fn a_midnight_set_back_into_the_previous_day_resets_once() {
        // In St. John's, 0:00:59 on 2010-11-07 was followed by 23:01 of the day before.
        let newfoundland = resets("reset: { atHour: 0 }", "America/St_Johns");
        let days = begun(&newfoundland, "2010-11-06T12:00:00Z", "2010-11-08T12:00:00Z");
        assert_eq!(days, ["2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"]);
    }

    #[test]
    fn a_day_missing_from_the_calendar_is_handled() {
        // Samoa went from 2011-12-29 to 2011-12-31.
        let apia = resets("", "Pacific/Apia");
        let days = begun(&apia, "2011-12-29T20:00:00Z", "2012-01-01T20:00:00Z");
        assert_eq!(days, ["2011-12-30T14:00:00Z", "2011-12-31T14:00:00Z", "2012-01-01T14:00:00Z"]);
    }

    #[test]
    fn idle_time_or_the_hour_ends_a_session_whichever_comes_first() {
        let both = resets("reset: { idleMinutes: 30 }", "UTC");
        let (began, last) = ("2026-01-10T10:00:00Z", "2026-01-10T12:00:00Z");
        assert!(!is_over(&both, began, last, "2026-01-10T12:30:00Z"));
        assert!(is_over(&both, began, last, "2026-01-10T12:30:00.001Z"));
        let late = "2026-01-11T03:50:00Z";
        assert!(is_over(&both, began, late, "2026-01-11T04:00:00Z"), "the day comes first");
        let older = resets("idleMinutes: 30, reset: { mode: 'idle' }", "UTC");
        assert!(!is_over(&older, began, late, "2026-01-11T04:10:00Z"));
        assert!(is_over(&older, began, late, "2026-01-11T04:21:00Z"));
        let none = resets("idleMinutes: 30, reset: { mode: 'none' }", "UTC");
        assert!(!is_over(&none, began, last, "2027-01-11T04:21:00Z"));
    }

    #[test]
    fn a_clock_set_back_or_invalid_ends_no_session() {
        let both = resets("reset: { idleMinutes: 1 }", "Europe/Berlin");
        assert!(!is_over(
            &both,
            "2026-01-10T10:00:00Z",
            "2026-01-10T12:00:00Z",
            "2024-01-01T00:00:00Z"
        ));
        let times = SessionTimes { began: Timestamp(0), last: Timestamp(i64::MAX) };
        assert!(!both.is_over(&main(), times, Timestamp(i64::MIN)));
        let times = SessionTimes { began: Timestamp(0), last: Timestamp(i64::MAX) };
        assert!(!both.is_over(&main(), times, Timestamp(i64::MAX)));
    }

    #[test]
    fn a_subagent_session_lasts_as_long_as_its_task() {
        let key: SessionKey = "agent:main:subagent:7b1d".parse().unwrap();
        let times = SessionTimes { began: Timestamp(0), last: Timestamp(0) };
        assert!(!resets("", "UTC").is_over(&key, times, at("2026-01-10T10:00:00Z")));
    }
}
