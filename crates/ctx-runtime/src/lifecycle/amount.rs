//! Ages and sizes in human-readable form.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ctx_core::amount::{self, SHORT_TIME_UNITS, TIME_UNITS};
use ctx_core::{Error, ErrorKind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const BYTE_UNITS: [(&str, u64); 9] = [
    ("tb", 1 << 40),
    ("gb", 1 << 30),
    ("mb", 1 << 20),
    ("kb", 1 << 10),
    ("t", 1 << 40),
    ("g", 1 << 30),
    ("m", 1 << 20),
    ("k", 1 << 10),
    ("b", 1),
];

/// An age: `30d`, `12h`, `1w`; a bare number is days.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Age(Duration);

impl Age {
    /// Creates an age in days.
    pub const fn days(days: u64) -> Self {
        Self(Duration::from_secs(days * 86_400))
    }

    /// Returns its length in milliseconds.
    pub fn millis(self) -> i64 {
        i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX)
    }
}

/// A number of bytes: `500mb`, `2gb`; a bare number is bytes. A kilobyte is 1,024 bytes, as in
/// OpenClaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

impl FromStr for Age {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let millis = amount::parse(text, &TIME_UNITS, 86_400_000);
        millis.map(|millis| Self(Duration::from_millis(millis))).ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, format!("invalid age '{text}'"))
                .hint("write it like `30d`, `12h` or `1w`; a bare number is days")
        })
    }
}

impl FromStr for Bytes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        amount::parse(text, &BYTE_UNITS, 1).map(Self).ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, format!("invalid size '{text}'"))
                .hint("write it like `500mb` or `2gb`; a bare number is bytes")
        })
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        amount::write(f, millis, SHORT_TIME_UNITS, "ms")
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        amount::write(f, self.0, &BYTE_UNITS[..4], "b")
    }
}

/// A number or a text.
#[derive(Deserialize)]
#[serde(untagged)]
enum AmountForm {
    Number(f64),
    Text(String),
}

fn read<'de, D: Deserializer<'de>, T: FromStr<Err = Error>>(
    deserializer: D,
    what: &str,
) -> Result<T, D::Error> {
    let text = match AmountForm::deserialize(deserializer) {
        Ok(AmountForm::Text(text)) => text,
        Ok(AmountForm::Number(number)) => number.to_string(),
        Err(_) => return Err(de::Error::custom(format!("expected {what} as text or a number"))),
    };
    text.parse().map_err(|error: Error| de::Error::custom(error.told()))
}

macro_rules! amount {
    ($name:ident, $what:literal) => {
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                read(deserializer, $what)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": ["string", "number"] })
            }
        }
    };
}

amount!(Age, "an age");
amount!(Bytes, "a size");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_parsed_and_formatted() {
        for (text, millis, written) in [
            ("30d", 2_592_000_000, "30d"),
            ("30", 2_592_000_000, "30d"),
            ("1w", 604_800_000, "7d"),
            ("1d12h", 129_600_000, "36h"),
            (" 90 S ", 90_000, "90s"),
            ("1500ms", 1_500, "1500ms"),
            ("0", 0, "0ms"),
        ] {
            let age: Age = text.parse().unwrap();
            assert_eq!((age.millis(), age.to_string()), (millis, written.to_owned()), "{text}");
        }
        for text in ["", "d", "3x", "-1", "1e400", "NaN", "3d!", "∞"] {
            assert!(text.parse::<Age>().unwrap_err().hint_text().is_some(), "{text}");
        }
    }

    #[test]
    fn sizes_are_parsed_and_formatted() {
        for (text, bytes, written) in [
            ("500mb", 524_288_000, "500mb"),
            ("2 GB", 2_147_483_648, "2gb"),
            ("1.5k", 1_536, "1536b"),
            ("4096", 4_096, "4kb"),
            ("0", 0, "0b"),
        ] {
            let size: Bytes = text.parse().unwrap();
            assert_eq!((size.0, size.to_string()), (bytes, written.to_owned()), "{text}");
        }
        for text in ["", "mb", "1 parsec", "-5", "1e30"] {
            assert!(text.parse::<Bytes>().unwrap_err().hint_text().is_some(), "{text}");
        }
    }
}
