//! A time to live, as people write it.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ctx_core::{Error, ErrorKind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// Units and their milliseconds, longest first; `ms` before `m`.
const UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("ms", 1), ("m", 60_000), ("s", 1_000)];

const MILLIS_PER_MINUTE: f64 = 60_000.0;

/// A time to live: `5m`, `1h30m`, `90s`; a bare number is minutes. Default: five minutes, as long
/// as Anthropic keeps a cached prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl(Duration);

impl Ttl {
    /// A time to live of that length.
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        Self(duration)
    }

    /// Its length.
    #[must_use]
    pub fn duration(self) -> Duration {
        self.0
    }

    fn from_minutes(minutes: f64) -> Option<Self> {
        let millis = minutes * MILLIS_PER_MINUTE;
        (millis.is_finite() && millis >= 0.0).then(|| Self(Duration::from_millis(millis as u64)))
    }
}

impl Default for Ttl {
    fn default() -> Self {
        Self(Duration::from_secs(5 * 60))
    }
}

impl FromStr for Ttl {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text.trim()).ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, format!("'{text}' is no duration"))
                .hint("write it like `5m`, `1h30m` or `90s`; a bare number is minutes")
        })
    }
}

fn parse(text: &str) -> Option<Ttl> {
    if let Ok(minutes) = text.parse::<f64>() {
        return Ttl::from_minutes(minutes);
    }
    let mut millis = 0.0f64;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..digits].parse().ok()?;
        rest = &rest[digits..];
        let (unit, per_unit) = UNITS.into_iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = rest[unit.len()..].trim_start();
        millis += number * per_unit as f64;
    }
    (!text.is_empty() && millis.is_finite()).then(|| Ttl(Duration::from_millis(millis as u64)))
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let longest = [UNITS[0], UNITS[1], UNITS[3], UNITS[4]]
            .into_iter()
            .find(|(_, per_unit)| millis >= *per_unit && millis % per_unit == 0);
        match longest {
            Some((unit, per_unit)) => write!(f, "{}{unit}", millis / per_unit),
            None => write!(f, "{millis}ms"),
        }
    }
}

impl Serialize for Ttl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Ttl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Minutes(f64),
            Text(String),
        }
        let written = Written::deserialize(deserializer).map_err(|_| {
            de::Error::custom("a duration is text like `5m`, or a number of minutes")
        })?;
        match written {
            Written::Minutes(minutes) => Self::from_minutes(minutes)
                .ok_or_else(|| de::Error::custom(format!("{minutes} minutes is no duration"))),
            Written::Text(text) => text.parse().map_err(|e: Error| de::Error::custom(e.told())),
        }
    }
}

impl JsonSchema for Ttl {
    fn schema_name() -> Cow<'static, str> {
        "Ttl".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        let cases = [
            ("5m", "5m", 300),
            ("5", "5m", 300),
            ("1h", "1h", 3_600),
            ("1h30m", "90m", 5_400),
            (" 90s ", "90s", 90),
            ("0.5", "30s", 30),
            ("1d", "1d", 86_400),
            ("0", "0ms", 0),
        ];
        for (text, written, seconds) in cases {
            let ttl: Ttl = text.parse().unwrap();
            assert_eq!(ttl.duration().as_secs(), seconds, "{text}");
            assert_eq!(ttl.to_string(), written);
            assert_eq!(serde_json::from_str::<Ttl>(&format!("\"{ttl}\"")).unwrap(), ttl);
        }
        assert_eq!("1500ms".parse::<Ttl>().unwrap().to_string(), "1500ms");
        assert_eq!(serde_json::from_str::<Ttl>("2").unwrap().to_string(), "2m");
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["", "m", "5x", "-5m", "-5", "5m5", "1..2h", "NaN", "inf", "五m"] {
            assert!(text.parse::<Ttl>().is_err(), "{text}");
        }
        assert!(serde_json::from_str::<Ttl>("-1").is_err());
        assert!(serde_json::from_str::<Ttl>("true").is_err());
    }
}
