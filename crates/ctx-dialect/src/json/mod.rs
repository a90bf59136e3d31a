//! JSON read leniently and written without recursion.
//!
//! A value is a [`RawValue`]: its source text. Objects are read one level at a time. Fields of any
//! type and number are kept, the last of two equal keys wins (as in JavaScript), and deep nesting
//! does not use the stack.

mod arguments;
mod element;
mod relaxed;
mod write;

use ctx_core::text::Slice;
use std::borrow::Cow;
use std::fmt;

use ctx_core::{Error, ErrorKind, Result};
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

pub use arguments::unwrap_arguments;
pub(crate) use arguments::{arguments_object, arguments_text};
pub(crate) use element::{JsonElement, Listing, offset};
pub use relaxed::{relaxed, skip_trivia};
pub use write::{ObjectWriter, array, quote, text_block};

/// The fields of one JSON object, values unparsed.
#[derive(Clone, Debug, Default)]
pub struct Object<'a> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
}

impl<'a> Object<'a> {
    /// Parses an object.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Corrupt`] if the text is not one complete JSON object.
    pub fn parse(text: &'a str) -> Result<Self> {
        let (object, error) = Self::parse_prefix(text);
        match error {
            None => Ok(object),
            Some(error) => Err(Error::new(ErrorKind::Corrupt, "not a JSON object").source(error)),
        }
    }

    /// Parses a possibly truncated object: returns the complete fields, and why parsing stopped.
    #[must_use]
    pub fn parse_prefix(text: &'a str) -> (Self, Option<serde_json::Error>) {
        let mut fields = Vec::new();
        let mut json = serde_json::Deserializer::from_str(text);
        let read = json.deserialize_map(Fields(&mut fields)).and_then(|()| json.end());
        (Self { fields }, read.err())
    }

    /// Parses an object from a valid JSON value; `None` if it is not an object.
    #[must_use]
    pub fn of(raw: &'a RawValue) -> Option<Self> {
        Self::of_text(raw.get())
    }

    /// Like [`of`](Self::of), for the text of a valid value.
    pub(crate) fn of_text(raw: &'a str) -> Option<Self> {
        raw.starts_with('{').then(|| Self::parse(raw).ok()).flatten()
    }

    /// Returns the field's value, unless it is missing or null.
    pub fn get(&self, key: &str) -> Option<&'a RawValue> {
        self.field(key).filter(|raw| raw.get() != "null")
    }

    /// Returns the field's value, including null.
    pub fn field(&self, key: &str) -> Option<&'a RawValue> {
        self.fields.iter().rev().find(|(k, _)| k == key).map(|&(_, raw)| raw)
    }

    /// Returns the value of the first of `keys` that is present and not null.
    pub fn first(&self, keys: &[&str]) -> Option<&'a RawValue> {
        keys.iter().find_map(|key| self.get(key))
    }

    /// Whether the field is present, null or not.
    pub fn has(&self, key: &str) -> bool {
        self.field(key).is_some()
    }

    /// Returns the field as a string; `None` if it is not one.
    pub fn text(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(string)
    }

    /// Returns the field as an owned string; `None` if it is not one.
    pub fn owned(&self, key: &str) -> Option<String> {
        self.text(key).map(Cow::into_owned)
    }

    /// Returns the field as an id: a string, or the text of a number or a boolean.
    pub fn id(&self, key: &str) -> Option<Cow<'a, str>> {
        self.get(key).and_then(identifier)
    }

    /// Returns the field as an integer; fractions are truncated.
    pub fn integer(&self, key: &str) -> Option<i64> {
        self.get(key).and_then(integer)
    }

    /// Returns the field as a non-negative integer.
    pub fn count(&self, key: &str) -> Option<u64> {
        self.integer(key).and_then(|n| u64::try_from(n).ok())
    }

    /// Whether the field is `true`.
    pub fn is_true(&self, key: &str) -> bool {
        self.get(key).is_some_and(|raw| raw.get() == "true")
    }

    /// Whether the field is `false`.
    pub fn is_false(&self, key: &str) -> bool {
        self.get(key).is_some_and(|raw| raw.get() == "false")
    }

    /// Returns the field as an object; `None` if it is not one.
    pub fn object(&self, key: &str) -> Option<Object<'a>> {
        self.get(key).and_then(Object::of)
    }

    /// Returns the field's elements; `None` if it is not an array.
    pub fn array(&self, key: &str) -> Option<Vec<&'a RawValue>> {
        self.get(key).and_then(elements)
    }

    /// Returns all fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a RawValue)> {
        self.fields.iter().map(|(key, raw)| (key.as_ref(), *raw))
    }
}

struct Fields<'v, 'a>(&'v mut Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'a> Visitor<'a> for Fields<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'a>>(self, mut map: A) -> Result<(), A::Error> {
        // Keys are read raw as well: a lone surrogate in a key must not invalidate the object.
        while let Some(key) = map.next_key::<&RawValue>()? {
            let key = string(key).unwrap_or(Cow::Borrowed(key.get()));
            self.0.push((key, map.next_value()?));
        }
        Ok(())
    }
}

/// Parses a text as a JSON value.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`] if the text is not JSON.
pub fn value(text: &str) -> Result<&RawValue> {
    serde_json::from_str(text)
        .map_err(|e| Error::new(ErrorKind::Corrupt, "a message is not valid JSON").source(e))
}

/// Returns the elements of an array; `None` if the value is not an array.
#[must_use]
pub fn elements(raw: &RawValue) -> Option<Vec<&RawValue>> {
    if !raw.get().starts_with('[') {
        return None;
    }
    let (found, error) = elements_prefix(raw.get());
    error.is_none().then_some(found)
}

/// Returns the complete elements of a possibly truncated array, and why parsing stopped.
#[must_use]
pub fn elements_prefix(text: &str) -> (Vec<&RawValue>, Option<serde_json::Error>) {
    let mut found = Vec::new();
    let mut json = serde_json::Deserializer::from_str(text);
    let read = json.deserialize_seq(Elements(&mut found)).and_then(|()| json.end());
    (found, read.err())
}

struct Elements<'v, 'a>(&'v mut Vec<&'a RawValue>);

impl<'a> Visitor<'a> for Elements<'_, 'a> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(element) = seq.next_element()? {
            self.0.push(element);
        }
        Ok(())
    }
}

/// Returns the value as a string; `None` if it is not one. A lone surrogate becomes U+FFFD.
#[must_use]
pub fn string(raw: &RawValue) -> Option<Cow<'_, str>> {
    string_of(raw.get())
}

/// Like [`string`], for the text of a valid value.
pub(crate) fn string_of(raw: &str) -> Option<Cow<'_, str>> {
    let mut rest = raw.strip_prefix('"')?.strip_suffix('"')?;
    let escapes = |text: &str| memchr::memchr(b'\\', text.as_bytes());
    let Some(mut at) = escapes(rest) else { return Some(Cow::Borrowed(rest)) };
    let mut out = String::with_capacity(rest.len());
    loop {
        let (before, escape) = rest.split_at(at);
        let (character, length) = unescaped(escape)?;
        out.push_str(before);
        out.push(character);
        rest = escape.slice(length..);
        match escapes(rest) {
            Some(next) => at = next,
            None => break,
        }
    }
    out.push_str(rest);
    Some(Cow::Owned(out))
}

/// Returns the character of an escape, and the length of the escape.
fn unescaped(escape: &str) -> Option<(char, usize)> {
    let character = match escape.as_bytes().get(1)? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        b'u' => {
            let first = unit(escape)?;
            return Some(match (first, escape.get(6..).and_then(unit)) {
                (0xD800..=0xDBFF, Some(second @ 0xDC00..=0xDFFF)) => {
                    let both = char::decode_utf16([first, second]).next()?;
                    (both.unwrap_or(char::REPLACEMENT_CHARACTER), 12)
                }
                _ => (char::from_u32(first.into()).unwrap_or(char::REPLACEMENT_CHARACTER), 6),
            });
        }
        same => char::from(*same),
    };
    Some((character, 2))
}

/// Returns the value as an id: a string, or the text of a number or a boolean.
#[must_use]
pub fn identifier(raw: &RawValue) -> Option<Cow<'_, str>> {
    match raw.get().as_bytes().first() {
        Some(b'"') => string(raw),
        Some(b'-' | b'0'..=b'9' | b't' | b'f') => Some(Cow::Borrowed(raw.get())),
        _ => None,
    }
}

/// Returns the value as an integer; fractions are truncated, and out-of-range values are clamped.
#[must_use]
pub fn integer(raw: &RawValue) -> Option<i64> {
    let text = raw.get();
    text.parse::<i64>().ok().or_else(|| {
        let starts_as_number = text.starts_with(|c: char| c == '-' || c.is_ascii_digit());
        starts_as_number.then(|| text.parse::<f64>().ok()).flatten().map(|n| n as i64)
    })
}

/// Replaces each lone `\uD800`-`\uDFFF` escape by `\uFFFD`.
#[must_use]
pub fn mend_surrogates(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        out.push_str(before);
        let length = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..=0xDBFF), Some(0xDC00..=0xDFFF)) => 12,
            (Some(0xD800..=0xDFFF), _) => {
                out.push_str("\\uFFFD");
                rest = escape.slice(6..);
                continue;
            }
            (Some(_), _) => 6,
            // A backslash and the character it escapes, which may be a backslash.
            (None, _) => 1 + escape.chars().nth(1).map_or(0, char::len_utf8),
        };
        out.push_str(escape.get(..length).unwrap_or(escape));
        rest = escape.slice(length..);
    }
    out.push_str(rest);
    out
}

/// Whether the text contains a lone `\uD800`-`\uDFFF` escape.
#[must_use]
pub fn has_lone_surrogate(json: &str) -> bool {
    // A fast check first: most texts have no escaped surrogate.
    memchr::memmem::find_iter(json.as_bytes(), b"\\u")
        .any(|at| json.as_bytes().get(at + 2).is_some_and(|b| matches!(b, b'd' | b'D')))
        && mend_surrogates(json) != json
}

/// Returns the code unit of a `\uXXXX` escape at the beginning of `text`.
fn unit(text: &str) -> Option<u16> {
    let hex = text.strip_prefix("\\u")?.get(..4)?;
    if hex.bytes().all(|b| b.is_ascii_hexdigit()) {
        u16::from_str_radix(hex, 16).ok()
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn objects_keep_everything_and_the_last_key_wins() {
        let object = Object::parse(r#" {"a":1,"b":null,"a":"x","\ud800":[]} "#).unwrap();
        assert_eq!(object.text("a").as_deref(), Some("x"));
        assert!(object.get("b").is_none() && object.has("b"));
        assert!(object.array("\u{FFFD}").is_some());
        assert!(Object::parse("[]").is_err());
        assert!(Object::parse(r#"{"a":1} x"#).is_err());
    }

    #[test]
    fn truncated_text_yields_its_complete_parts() {
        let (object, error) = Object::parse_prefix(r#"{"type":"message","message":{"role":"#);
        assert_eq!(object.text("type").as_deref(), Some("message"));
        assert!(error.is_some());
        let (found, error) = elements_prefix(r#"[1,{"a":2},{"b"#);
        assert_eq!(found.len(), 2);
        assert!(error.is_some());
    }

    #[test]
    fn lone_surrogates_become_replacement_characters() {
        assert_eq!(string(raw(r#""a\ud800b""#)).unwrap(), "a\u{FFFD}b");
        assert_eq!(string(raw(r#""\udc00\ud83d\ude00""#)).unwrap(), "\u{FFFD}😀");
        assert_eq!(string(raw(r#""\\ud800\n""#)).unwrap(), "\\ud800\n");
        for (text, lone) in [("\\ud800", true), ("\\ud83d\\ude00", false), ("\\\\ud800", false)] {
            assert_eq!(has_lone_surrogate(text), lone, "{text}");
        }
    }

    #[test]
    fn deep_nesting_costs_no_stack() {
        let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        assert!(Object::parse(&deep).unwrap().has("a"));
    }
}
