//! Automatic resets of sessions.

use ctx_config::Config;
use ctx_core::{Result, Timestamp};
use ctx_session::key::{AgentScope, SessionKey};
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::{Lifecycle, SessionConfig, SessionTimes};

const MILLIS_PER_MINUTE: i64 = 60_000;

/// Number of days to search back for the last boundary: a day may be missing where a zone moved
/// across the date line.
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
    #[must_use]
    pub fn in_zone(self, zone: TimeZone) -> Self {
        Self { zone: Some(zone), ..self }
    }

    /// Returns the start of the session day that contains `now`. It is never after `now`.
    fn boundary(&self, hour: u8, now: Timestamp) -> Option<Timestamp> {
        // Looked up each time: the machine may have changed its time zone.
        let zone = self.zone.clone().unwrap_or_else(TimeZone::system);
        let at = jiff::Timestamp::from_millisecond(now.0).ok()?;
        let today = zone.to_datetime(at).date();
        // A skipped hour is replaced by the next one, and of a repeated hour the first is used. So
        // each day has exactly one boundary, also when the clock is set back in autumn.
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
    fn a_day_begins_at_four_where_the_user_is() {
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
    fn what_happens_in_a_session_after_the_hour_does_not_keep_it() {
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
    fn an_hour_that_is_skipped_in_spring_comes_once() {
        // In Berlin, 1:59 was followed by 3:00 on 2026-03-29.
        let berlin = resets("reset: { atHour: 2 }", "Europe/Berlin");
        let days = begun(&berlin, "2026-03-28T12:00:00Z", "2026-03-31T12:00:00Z");
        assert_eq!(days, ["2026-03-29T01:00:00Z", "2026-03-30T00:00:00Z", "2026-03-31T00:00:00Z"]);
    }

    #[test]
    fn an_hour_that_is_there_twice_in_autumn_comes_once() {
        // In Berlin, 2:59 was followed by 2:00 on 2026-10-25.
        let berlin = resets("reset: { atHour: 2 }", "Europe/Berlin");
        let days = begun(&berlin, "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
        assert_eq!(days, ["2026-10-25T00:00:00Z", "2026-10-26T01:00:00Z"]);
    }

    #[test]
    fn a_midnight_that_is_set_back_into_the_day_before_comes_once() {
        // In St. John's, 0:00:59 on 2010-11-07 was followed by 23:01 of the day before.
        let newfoundland = resets("reset: { atHour: 0 }", "America/St_Johns");
        let days = begun(&newfoundland, "2010-11-06T12:00:00Z", "2010-11-08T12:00:00Z");
        assert_eq!(days, ["2010-11-07T02:30:00Z", "2010-11-08T03:30:00Z"]);
    }

    #[test]
    fn a_day_that_is_missing_altogether_is_no_trouble() {
        // Samoa went from 2011-12-29 to 2011-12-31.
        let apia = resets("", "Pacific/Apia");
        let days = begun(&apia, "2011-12-29T20:00:00Z", "2012-01-01T20:00:00Z");
        assert_eq!(days, ["2011-12-30T14:00:00Z", "2011-12-31T14:00:00Z", "2012-01-01T14:00:00Z"]);
    }

    #[test]
    fn silence_ends_a_session_and_whichever_comes_first_does() {
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
    fn a_clock_that_is_set_back_or_makes_no_sense_ends_nothing() {
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
    fn a_subagents_session_is_as_long_as_its_task() {
        let key: SessionKey = "agent:main:subagent:7b1d".parse().unwrap();
        let times = SessionTimes { began: Timestamp(0), last: Timestamp(0) };
        assert!(!resets("", "UTC").is_over(&key, times, at("2026-01-10T10:00:00Z")));
    }
}
