//! JSON text that is passed through without being parsed.

use crate::text::Slice;
use std::fmt;
use std::sync::Arc;

use memchr::{memchr, memchr2};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use crate::tokens::utf16_units;

/// A JSON value kept as its original text, byte for byte.
///
/// Number formats, key order and unknown fields are kept, and nesting of any depth uses no stack.
/// In a binary format it is a value of that format, not text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct RawJson(Arc<str>);

impl RawJson {
    /// Wraps JSON text without parsing it. The caller guarantees that it is one JSON value.
    #[must_use]
    pub fn from_text(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the length in UTF-16 units of the output of JavaScript's `JSON.stringify` for this
    /// value: without whitespace between tokens, and with only the necessary escapes. Numbers are
    /// counted as written.
    #[must_use]
    pub fn stringified_chars(&self) -> u64 {
        stringified_chars(&self.0)
    }
}

impl From<&RawValue> for RawJson {
    fn from(raw: &RawValue) -> Self {
        Self(raw.get().into())
    }
}

impl fmt::Debug for RawJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for RawJson {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let error = serde::ser::Error::custom;
        if !serializer.is_human_readable() {
            let value: serde_json::Value = serde_json::from_str(&self.0).map_err(error)?;
            return value.serialize(serializer);
        }
        let raw: &RawValue = serde_json::from_str(&self.0).map_err(error)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for RawJson {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            let value = serde_json::Value::deserialize(deserializer)?;
            return Ok(Self(value.to_string().into()));
        }
        Box::<RawValue>::deserialize(deserializer).map(|raw| Self(Box::<str>::from(raw).into()))
    }
}

/// Returns the number of UTF-16 units of a JSON string's text, without decoding it.
pub(crate) fn decoded_chars(string: &str) -> u64 {
    let mut rest = string.as_bytes();
    if let [b'"', inner @ .., b'"'] = rest {
        rest = inner;
    }
    let mut units = 0;
    while let Some(at) = memchr(b'\\', rest) {
        units += utf16_units(rest.slice(..at)) + 1;
        // An escape is one unit, and so is each half of a surrogate pair.
        let length = if rest.get(at + 1) == Some(&b'u') { 6 } else { 2 };
        rest = rest.get(at + length..).unwrap_or_default();
    }
    units + utf16_units(rest)
}

pub(crate) fn stringified_chars(json: &str) -> u64 {
    let bytes = json.as_bytes();
    let mut units = 0u64;
    let mut at = 0;
    let mut in_string = false;
    while let Some(&b) = bytes.get(at) {
        if in_string {
            // Nearly all of the text is inside strings, between escapes: it is counted in runs.
            let rest = bytes.slice(at..);
            let plain = memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            units += utf16_units(rest.slice(..plain));
            at += plain + 1;
            match rest.get(plain) {
                Some(b'"') => {
                    in_string = false;
                    units += 1;
                }
                Some(_) => {
                    let (length, printed) = escape(bytes.slice(at..));
                    at += length;
                    units += printed;
                }
                None => {}
            }
        } else {
            at += 1;
            match b {
                b'"' => {
                    in_string = true;
                    units += 1;
                }
                b' ' | b'\t' | b'\n' | b'\r' => {}
                _ => units += utf16_units(&[b]),
            }
        }
    }
    units
}

/// For the text after a backslash: the number of bytes in the escape, and the number of UTF-16
/// units that `JSON.stringify` prints for the escaped character.
fn escape(rest: &[u8]) -> (usize, u64) {
    match rest.first() {
        Some(b'u') => {
            let code = rest
                .get(1..5)
                .and_then(|hex| std::str::from_utf8(hex).ok())
                .and_then(|hex| u16::from_str_radix(hex, 16).ok());
            match code {
                Some(0x08 | 0x09 | 0x0A | 0x0C | 0x0D | 0x22 | 0x5C) => (5, 2),
                Some(0..0x20) => (5, 6),
                Some(0xD800..=0xDBFF) if low_surrogate(rest.get(5..)) => (11, 2),
                Some(0xD800..=0xDFFF) => (5, 6),
                Some(_) => (5, 1),
                None => (1, 1),
            }
        }
        Some(b'/') => (1, 1),
        Some(_) => (1, 2),
        None => (0, 0),
    }
}

fn low_surrogate(rest: Option<&[u8]>) -> bool {
    let Some([b'\\', b'u', b'd' | b'D', second, ..]) = rest else { return false };
    matches!(second, b'c'..=b'f' | b'C'..=b'F')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoded_length_is_that_of_the_text() {
        for json in [
            r#""""#,
            r#""plain""#,
            r#""a\nb\\""#,
            r#""\u00e9é\u4e2d中\ud83d\ude00😀\/""#,
            r#""\\\"\\u00e9""#,
        ] {
            let text: String = serde_json::from_str(json).unwrap();
            assert_eq!(decoded_chars(json), u64::from(crate::Chars::of(&text).0), "{json}");
        }
    }

    #[test]
    fn stringified_length_matches_json_stringify() {
        let cases = [
            (r#"{"a": 1}"#, r#"{"a":1}"#),
            (r#"{"a":"b\/c"}"#, r#"{"a":"b/c"}"#),
            (r#""\u00e9\u0041""#, r#""éA""#),
            (r#""\ud83d\ude00""#, r#""😀""#),
            (r#""\u000a\u0001""#, r#""\n\u0001""#),
            (r#""a b""#, r#""a b""#),
            (r#"[ 1.50 , "x\"y" ]"#, r#"[1.50,"x\"y"]"#),
        ];
        for (raw, printed) in cases {
            assert_eq!(stringified_chars(raw), printed.encode_utf16().count() as u64, "{raw}");
        }
    }

    #[test]
    fn deep_nesting_costs_no_stack() {
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(RawJson::from_text(deep).stringified_chars(), 200_000);
    }
}
