//! A time to live in human-readable form.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ctx_core::amount::{self, SHORT_TIME_UNITS};
use ctx_core::{Error, ErrorKind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A time to live: `5m`, `1h30m`, `90s`; a bare number is minutes. Default: five minutes, the
/// lifetime of Anthropic's prompt cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ttl(Duration);

impl Ttl {
    /// Returns the length.
    #[must_use]
    pub fn duration(self) -> Duration {
        self.0
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
        let millis = amount::parse(text, SHORT_TIME_UNITS, 60_000);
        millis.map(|millis| Self(Duration::from_millis(millis))).ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, format!("invalid duration '{text}'"))
                .hint("write it like `5m`, `1h30m` or `90s`; a bare number is minutes")
        })
    }
}

impl fmt::Display for Ttl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        amount::write(f, millis, SHORT_TIME_UNITS, "ms")
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
        enum TtlValue {
            Minutes(f64),
            Text(String),
        }
        let written = TtlValue::deserialize(deserializer).map_err(|_| {
            de::Error::custom("expected a duration like `5m`, or a number of minutes")
        })?;
        match written {
            // `Config::check` rejects durations over a year.
            TtlValue::Minutes(minutes) if (0.0..f64::MAX / 60_000.0).contains(&minutes) => {
                Ok(Self(Duration::from_millis((minutes * 60_000.0) as u64)))
            }
            TtlValue::Minutes(minutes) => {
                Err(de::Error::custom(format!("invalid duration: {minutes} minutes")))
            }
            TtlValue::Text(text) => text.parse().map_err(|e: Error| de::Error::custom(e.told())),
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
