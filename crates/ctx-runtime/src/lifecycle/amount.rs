//! Ages and sizes, as people write them.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use ctx_core::{Error, ErrorKind};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

const AGE_UNITS: [(&str, u64); 6] = [
    ("w", 7 * 86_400_000),
    ("d", 86_400_000),
    ("h", 3_600_000),
    ("ms", 1),
    ("m", 60_000),
    ("s", 1_000),
];

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
    /// So many days.
    #[must_use]
    pub const fn days(days: u64) -> Self {
        Self(Duration::from_secs(days * 86_400))
    }

    /// Its length in milliseconds.
    #[must_use]
    pub fn millis(self) -> i64 {
        i64::try_from(self.0.as_millis()).unwrap_or(i64::MAX)
    }
}

/// How many bytes: `500mb`, `2gb`; a bare number is bytes. A kilobyte has 1,024 of them, as OpenClaw
/// counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub u64);

/// `12.5 mb` with these units: the sum of the parts, in the smallest of them. A bare number is in
/// `plain`.
fn parse(text: &str, units: &[(&str, u64)], plain: u64) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let whole = |amount: f64| {
        let fits = amount.is_finite() && (0.0..u64::MAX as f64).contains(&amount);
        fits.then_some(amount as u64)
    };
    if let Ok(number) = text.parse::<f64>() {
        return whole(number * plain as f64);
    }
    let mut sum = 0.0;
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let number: f64 = rest[..end].parse().ok()?;
        rest = rest[end..].trim_start();
        let (unit, each) = units.iter().find(|(unit, _)| rest.starts_with(unit))?;
        rest = rest[unit.len()..].trim_start();
        sum += number * *each as f64;
    }
    if text.is_empty() { None } else { whole(sum) }
}

fn written(
    f: &mut fmt::Formatter<'_>,
    amount: u64,
    units: &[(&str, u64)],
    least: &str,
) -> fmt::Result {
    let unit = units.iter().find(|(_, each)| amount >= *each && amount.is_multiple_of(*each));
    match unit {
        Some((unit, each)) => write!(f, "{}{unit}", amount / each),
        None => write!(f, "{amount}{least}"),
    }
}

impl FromStr for Age {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let millis = parse(text, &AGE_UNITS, 86_400_000);
        millis.map(|millis| Self(Duration::from_millis(millis))).ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, format!("'{text}' is no age"))
                .hint("write it like `30d`, `12h` or `1w`; a bare number is days")
        })
    }
}

impl FromStr for Bytes {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text, &BYTE_UNITS, 1).map(Self).ok_or_else(|| {
            Error::new(ErrorKind::InvalidInput, format!("'{text}' is no size"))
                .hint("write it like `500mb` or `2gb`; a bare number is bytes")
        })
    }
}

impl fmt::Display for Age {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let longest = [AGE_UNITS[1], AGE_UNITS[2], AGE_UNITS[4], AGE_UNITS[5]];
        written(f, millis, &longest, "ms")
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        written(f, self.0, &BYTE_UNITS[..4], "b")
    }
}

/// A number or a text, whichever stands there.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(f64),
    Text(String),
}

fn read<'de, D: Deserializer<'de>, T: FromStr<Err = Error>>(
    deserializer: D,
    what: &str,
) -> Result<T, D::Error> {
    let text = match Written::deserialize(deserializer) {
        Ok(Written::Text(text)) => text,
        Ok(Written::Number(number)) => number.to_string(),
        Err(_) => return Err(de::Error::custom(format!("{what} is text or a number"))),
    };
    text.parse().map_err(|error: Error| de::Error::custom(error.told()))
}

impl<'de> Deserialize<'de> for Age {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, "an age")
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer, "a size")
    }
}

impl Serialize for Age {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl JsonSchema for Age {
    fn schema_name() -> Cow<'static, str> {
        "Age".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number"] })
    }
}

impl JsonSchema for Bytes {
    fn schema_name() -> Cow<'static, str> {
        "Bytes".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["string", "number"] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_read_and_written() {
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
    fn sizes_are_read_and_written() {
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
