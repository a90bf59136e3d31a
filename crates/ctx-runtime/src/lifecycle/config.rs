//! `session`: when a session is reset, and how long it is kept.

use ctx_config::{ConfigSection, Section, invalid_value};
use ctx_core::Result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Age, Bytes};

/// When a session is reset automatically, and how long sessions are kept.
///
/// # Notes
///
/// Names and numbers are those of OpenClaw 2026.4. `/new` and `/reset` start a new session
/// regardless of these settings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct SessionConfig {
    /// When a session is reset.
    pub reset: Reset,
    /// The older name of `reset.idleMinutes`, which takes precedence. Default: none.
    #[schemars(range(min = 1))]
    pub idle_minutes: Option<u32>,
    /// How long sessions are kept.
    pub maintenance: Maintenance,
    /// How long to wait for a session that another process writes, in milliseconds. Default: 500.
    pub lock_wait_ms: u32,
}

impl Default for SessionConfig {
    fn default() -> Self {
        let (reset, maintenance) = Default::default();
        Self { reset, idle_minutes: None, maintenance, lock_wait_ms: 500 }
    }
}

/// When a session is reset: with the first message after an hour of the day, or after an idle time.
/// If both are set, whichever comes first. The transcript of the old session stays on disk;
/// settings are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Reset {
    /// What resets the session. Default: `daily`; `none` under profile `pi`.
    pub mode: ResetMode,
    /// For `daily`: the hour, in local time. Default: 4.
    #[schemars(range(min = 0, max = 23))]
    pub at_hour: u8,
    /// Idle time in minutes. Default: none; 60 for `idle`.
    #[schemars(range(min = 1))]
    pub idle_minutes: Option<u32>,
}

/// What resets a session automatically.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ResetMode {
    /// The hour of the day, and the idle time if `idleMinutes` is set.
    #[default]
    Daily,
    /// The idle time.
    Idle,
    /// Nothing.
    None,
}

/// Default idle time of `idle`. (OpenClaw.)
const IDLE_MINUTES: u32 = 60;

/// How long sessions are kept. A removed session is archived first: in memory, if that is enabled,
/// and its transcript as `<file>.deleted.<time>` beside it. Open sessions are never removed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
pub struct Maintenance {
    /// Whether maintenance runs after a turn, at most once an hour, or is only logged. Default:
    /// `enforce`.
    pub mode: MaintenanceMode,
    /// Sessions that are idle for longer are removed. `30d`, `12h`; a bare number is days. Default:
    /// 30d.
    pub prune_after: Age,
    /// Maximum number of sessions of an agent; the oldest beyond that are removed. Default: 500.
    #[schemars(range(min = 1))]
    pub max_entries: usize,
    /// Maximum disk space of an agent's sessions. `500mb`, `2gb`; a bare number is bytes. Archived
    /// transcripts are removed first, oldest first, then sessions. Default: none (unlimited).
    pub max_disk_bytes: Option<Bytes>,
    /// The disk space to reach once `maxDiskBytes` is exceeded. Default: 80 % of that.
    pub high_water_bytes: Option<Bytes>,
    /// How long archived transcripts are kept; `false` is for ever. Default: false.
    pub reset_archive_retention: Retention,
}

/// Whether sessions are maintained, or planned changes are only logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MaintenanceMode {
    /// Maintenance is done.
    #[default]
    Enforce,
    /// Planned changes are logged.
    Warn,
}

/// How long something is kept: an age, or `false` for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Retention {
    /// For this age.
    For(Age),
    /// For ever, as `false`. (`true` is invalid.)
    Forever(bool),
}

impl Default for Reset {
    fn default() -> Self {
        Self { mode: ResetMode::Daily, at_hour: 4, idle_minutes: None }
    }
}

impl Default for Maintenance {
    fn default() -> Self {
        Self {
            mode: MaintenanceMode::Enforce,
            prune_after: Age::days(30),
            max_entries: 500,
            max_disk_bytes: None,
            high_water_bytes: None,
            reset_archive_retention: Retention::Forever(false),
        }
    }
}

impl SessionConfig {
    /// Returns the idle time in minutes after which a session is over, if any.
    pub fn idle_minutes(&self) -> Option<u32> {
        let given = self.reset.idle_minutes.or(self.idle_minutes);
        match self.reset.mode {
            ResetMode::None => None,
            ResetMode::Idle => Some(given.unwrap_or(IDLE_MINUTES)),
            ResetMode::Daily => given,
        }
    }

    /// Returns the hour of the day at which a session is over, if any.
    pub fn at_hour(&self) -> Option<u8> {
        (self.reset.mode == ResetMode::Daily).then_some(self.reset.at_hour)
    }
}

impl Maintenance {
    /// Returns the maximum disk space of sessions, and the size to reach once it is exceeded.
    pub fn disk(&self) -> Option<(u64, u64)> {
        let most = self.max_disk_bytes?.0;
        let left = self.high_water_bytes.map_or(most / 5 * 4, |left| left.0);
        Some((most, left.min(most)))
    }
}

impl Section for SessionConfig {
    const PATH: &'static str = "session";

    fn check(&self) -> Result<()> {
        let maintenance = &self.maintenance;
        if maintenance.prune_after.millis() == 0 {
            let expected = "an age greater than 0";
            return Err(invalid_value::<Self>("maintenance.pruneAfter", "0", expected));
        }
        if maintenance.reset_archive_retention == Retention::Forever(true) {
            let key = "maintenance.resetArchiveRetention";
            return Err(invalid_value::<Self>(
                key,
                true,
                "an age, or false to keep what is archived",
            ));
        }
        if maintenance.max_disk_bytes == Some(Bytes(0)) {
            let expected = "a size greater than 0";
            return Err(invalid_value::<Self>("maintenance.maxDiskBytes", "0", expected));
        }
        if let (Some(most), Some(left)) = (maintenance.max_disk_bytes, maintenance.high_water_bytes)
            && left > most
        {
            let expected = format!("no more than maxDiskBytes, which is {most}");
            return Err(invalid_value::<Self>("maintenance.highWaterBytes", left, &expected));
        }
        Ok(())
    }
}

ctx_config::inventory::submit! { ConfigSection::of::<SessionConfig>(env!("CARGO_PKG_NAME")) }

#[cfg(test)]
mod tests {
    use ctx_config::Config;

    use super::*;

    fn section(keys: &str) -> Result<SessionConfig> {
        Config::parse(&format!("{{ session: {{ {keys} }} }}"))?.section()
    }

    #[test]
    fn defaults_match_the_documentation() {
        let section = section("").unwrap();
        assert_eq!((section.at_hour(), section.idle_minutes()), (Some(4), None));
        let maintenance = serde_json::to_value(&section.maintenance).unwrap();
        let expected = serde_json::json!({
            "mode": "enforce", "pruneAfter": "30d", "maxEntries": 500, "maxDiskBytes": null,
            "highWaterBytes": null, "resetArchiveRetention": false,
        });
        assert_eq!(maintenance, expected);
        let pi = Config::parse("{ profile: 'pi' }").unwrap();
        assert_eq!(pi.section::<SessionConfig>().unwrap().at_hour(), None);
    }

    #[test]
    fn the_newer_idle_key_takes_precedence_and_mode_none_ignores_both() {
        let idle = |keys: &str| section(keys).unwrap().idle_minutes();
        assert_eq!(idle("idleMinutes: 30"), Some(30));
        assert_eq!(idle("idleMinutes: 30, reset: { idleMinutes: 20 }"), Some(20));
        assert_eq!(idle("reset: { mode: 'idle' }"), Some(60));
        assert_eq!(idle("reset: { mode: 'none', idleMinutes: 20 }"), None);
        assert_eq!(section("reset: { mode: 'idle' }").unwrap().at_hour(), None);
    }

    #[test]
    fn the_default_high_water_mark_is_four_fifths_of_the_limit() {
        let disk = |keys: &str| section(&format!("maintenance: {{ {keys} }}")).unwrap();
        assert_eq!(disk("maxDiskBytes: '10kb'").maintenance.disk(), Some((10_240, 8_192)));
        let both = disk("maxDiskBytes: 1000, highWaterBytes: 400");
        assert_eq!(both.maintenance.disk(), Some((1_000, 400)));
        assert_eq!(disk("highWaterBytes: 400").maintenance.disk(), None);
        let kept = disk("resetArchiveRetention: '7d'").maintenance.reset_archive_retention;
        assert_eq!(kept, Retention::For(Age::days(7)));
    }

    #[test]
    fn invalid_values_are_refused_with_their_key() {
        for (keys, named) in [
            ("reset: { atHour: 24 }", "session.reset.atHour"),
            ("reset: { mode: 'weekly' }", "session.reset.mode"),
            ("reset: { idleMinutes: 0 }", "session.reset.idleMinutes"),
            ("idleMinutes: -3", "session.idleMinutes"),
            ("maintenance: { pruneAfter: 'soon' }", "session.maintenance.pruneAfter"),
            ("maintenance: { pruneAfter: 0 }", "session.maintenance.pruneAfter"),
            ("maintenance: { maxEntries: 0 }", "session.maintenance.maxEntries"),
            ("maintenance: { maxDiskBytes: 0 }", "session.maintenance.maxDiskBytes"),
            (
                "maintenance: { maxDiskBytes: '1mb', highWaterBytes: '2mb' }",
                "session.maintenance.highWaterBytes",
            ),
            (
                "maintenance: { resetArchiveRetention: true }",
                "session.maintenance.resetArchiveRetention",
            ),
            ("maintenance: { rotateBytes: 5 }", "rotateBytes"),
        ] {
            let error = section(keys).unwrap_err();
            assert!(error.to_string().contains(named), "{keys}: {error}");
            assert!(error.hint_text().is_some(), "{keys}");
        }
    }
}
