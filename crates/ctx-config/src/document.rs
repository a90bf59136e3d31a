//! Parses JSON5 text, with checks that the parser does not make.

use std::fmt;

use ctx_core::{Error, ErrorKind, Result};
use serde::Deserialize;
use serde::de::{
    DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor,
};
use serde_json::{Map, Value};

/// Maximum nesting; the JSON5 parser is recursive.
const MAX_NESTING: usize = 200;

/// Parses a text. A text of only blanks and comments is an empty object.
pub(crate) fn parse(text: &str) -> Result<Value> {
    let mut fault = None;
    let reader = ValueReader { path: "", depth: 0, fault: &mut fault };
    read(text, reader).or_else(|e| match fault {
        Some(fault) => Err(at(fault, &e)),
        None if is_blank(text) => Ok(Value::Object(Map::new())),
        None if is_cut_off(&e) => {
            let line = text.lines().count().max(1);
            let column = text.lines().last().map_or(0, |line| line.chars().count()) + 1;
            Err(malformed(&e).with("line", line).with("column", column))
        }
        None => Err(at(malformed(&e), &e)),
    })
}

fn read(text: &str, reader: ValueReader<'_>) -> Result<Value, json5::Error> {
    let value = reader.deserialize(&mut json5::Deserializer::from_str(text))?;
    // The deserializer stops after the value; only this detects trailing text. The nesting of the
    // value is already known to be bounded.
    json5::from_str::<IgnoredAny>(text).map(|_| value)
}

/// Whether a text contains only blanks and comments, so that a list around it is empty.
fn is_blank(text: &str) -> bool {
    json5::from_str::<Vec<NoElement>>(&format!("[{text}\n]")).is_ok()
}

/// A list element that is rejected before it is read, at any nesting depth.
struct NoElement;

impl<'de> Deserialize<'de> for NoElement {
    fn deserialize<D: Deserializer<'de>>(_: D) -> Result<Self, D::Error> {
        Err(D::Error::custom("an element"))
    }
}

/// Whether the text is incomplete. The parser reports where the unclosed part began.
fn is_cut_off(error: &json5::Error) -> bool {
    use json5::ErrorCode as Code;
    matches!(
        error.code(),
        Some(
            Code::EofParsingArray
                | Code::EofParsingIdentifier
                | Code::EofParsingObject
                | Code::EofParsingValue
        )
    )
}

fn malformed(error: &json5::Error) -> Error {
    use json5::ErrorCode as Code;
    let what = match error.code() {
        _ if is_cut_off(error) => "it ends too early".to_owned(),
        Some(Code::EofParsingComment) => "a comment is not closed".to_owned(),
        Some(Code::EofParsingString | Code::LineTerminatorInString) => {
            "a string is not closed".to_owned()
        }
        Some(Code::TrailingCharacters) => "unexpected text after its end".to_owned(),
        Some(code) => code.to_string(),
        None => error.to_string(),
    };
    Error::new(ErrorKind::Config, format!("the configuration is not valid JSON5: {what}"))
        .hint("write one object, such as { profile: \"openclaw\" }")
}

/// Adds the position. Positions of the parser count from zero.
fn at(fault: Error, error: &json5::Error) -> Error {
    match error.position() {
        Some(at) => fault.with("line", at.line + 1).with("column", at.column + 1),
        None => fault,
    }
}

/// Reads a value at a path, and stores the first error that is not a syntax error.
struct ValueReader<'a> {
    path: &'a str,
    depth: usize,
    fault: &'a mut Option<Error>,
}

impl ValueReader<'_> {
    /// Returns the nesting depth inside the value, unless it is too deep.
    fn inner_depth<E: serde::de::Error>(&mut self) -> Result<usize, E> {
        if self.depth < MAX_NESTING {
            return Ok(self.depth + 1);
        }
        let fault = Error::new(ErrorKind::Config, "the configuration is nested too deeply")
            .with("most", MAX_NESTING)
            .hint("no key of ctx is nested that deeply; see `ctx config schema`");
        Err(self.fail(fault))
    }

    fn fail<E: serde::de::Error>(&mut self, fault: Error) -> E {
        *self.fault = Some(fault);
        E::custom("see the fault")
    }
}

impl<'de> DeserializeSeed<'de> for ValueReader<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueReader<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E: serde::de::Error>(mut self, value: f64) -> Result<Value, E> {
        if value.is_finite() {
            return Ok(value.into());
        }
        let fault =
            Error::new(ErrorKind::Config, format!("invalid value for '{}': {value}", self.path))
                .hint("infinity and NaN are not allowed");
        Err(self.fail(fault))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let depth = self.inner_depth()?;
        let mut list = Vec::new();
        loop {
            let path = format!("{}[{}]", self.path, list.len());
            let reader = ValueReader { path: &path, depth, fault: &mut *self.fault };
            match items.next_element_seed(reader)? {
                Some(item) => list.push(item),
                None => return Ok(Value::Array(list)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut keys: A) -> Result<Value, A::Error> {
        let depth = self.inner_depth()?;
        let mut map = Map::new();
        loop {
            let reader = ValueReader { path: self.path, depth, fault: &mut *self.fault };
            let Some(key) = keys.next_key_seed(FreshKey { reader, map: &map })? else {
                return Ok(Value::Object(map));
            };
            let path = crate::strict::below(self.path, &key);
            let reader = ValueReader { path: &path, depth, fault: &mut *self.fault };
            let value = keys.next_value_seed(reader)?;
            map.insert(key, value);
        }
    }
}

/// A key that its object does not have yet. It is checked while it is read, so that the parser can
/// report its position.
struct FreshKey<'a> {
    reader: ValueReader<'a>,
    map: &'a Map<String, Value>,
}

impl<'de> DeserializeSeed<'de> for FreshKey<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for FreshKey<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: serde::de::Error>(mut self, key: &str) -> Result<String, E> {
        if !self.map.contains_key(key) {
            return Ok(key.to_owned());
        }
        let path = crate::strict::below(self.reader.path, key);
        let fault = Error::new(ErrorKind::Config, format!("duplicate key '{path}'"))
            .hint("remove one of the two");
        Err(self.reader.fail(fault))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(text: &str) -> String {
        let error = parse(text).unwrap_err();
        assert!(error.kind() == ErrorKind::Config && error.hint_text().is_some(), "{error:?}");
        error.to_string()
    }

    #[test]
    fn json5_is_read() {
        let text = "{ a: [1, -2, 0x10, .5, 1e2,], 'b': \"x\\\ny\", \"c\": null, d: true, /* e */ }";
        let value = json!({ "a": [1, -2, 16, 0.5, 100.0], "b": "xy", "c": null, "d": true });
        assert_eq!(parse(text).unwrap(), value);
    }

    #[test]
    fn an_empty_text_is_not_an_error() {
        for text in ["", " \n\t", "// later\n", "// no line end", "/* a */ /* b */", "\u{feff}"] {
            assert_eq!(parse(text).unwrap(), json!({}), "{text}");
        }
    }

    #[test]
    fn a_duplicate_key_is_named() {
        let text = refused("{ plugins: { slots: {},\n 'slots': {} } }");
        assert!(text.contains("duplicate key 'plugins.slots'"), "{text}");
        assert!(text.contains("line: 2, column: 2"), "{text}");
        let text = refused("{ a: [{ b: 1 }, { b: 1, \"b\": 2 }] }");
        assert!(text.contains("duplicate key 'a[1].b'"), "{text}");
    }

    #[test]
    fn too_deep_nesting_is_refused_in_every_form() {
        let deep = |opening: &str| opening.repeat(100_000);
        for text in [
            deep("["),
            deep("{a:"),
            deep("[\"]\","),
            deep("[/*]*/"),
            deep("['\\']',"),
            format!("{{ a: {} }}", deep("[\"]\",")),
        ] {
            let error = refused(&text);
            assert!(error.contains("nested too deeply"), "{text:.20}: {error}");
        }
        // The list is never read: the text has to end after the first value.
        assert!(refused(&format!("0,{}", deep("["))).contains("unexpected text after its end"));
        assert!(parse(&format!("{}{}", "[".repeat(200), "]".repeat(200))).is_ok());
        let wide = format!("[{}]", "[0],".repeat(1_000));
        assert!(parse(&wide).is_ok());
    }

    #[test]
    fn infinite_and_nan_numbers_are_refused() {
        for number in ["Infinity", "-Infinity", "NaN", "1e999"] {
            let text = refused(&format!("{{ a: {{ b: {number} }} }}"));
            assert!(text.contains("'a.b'"), "{text}");
        }
    }

    #[test]
    fn syntax_errors_are_described_in_words() {
        for (text, words) in [
            ("{ a: 1", "it ends too early"),
            ("[", "it ends too early"),
            ("/* never", "a comment is not closed"),
            ("{ a: 'x", "a string is not closed"),
            ("{} {}", "unexpected text after its end"),
            ("nul", "JSON5"),
            (",", "JSON5"),
            ("] [", "JSON5"),
        ] {
            let error = refused(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
