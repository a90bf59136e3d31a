//! Writes JSON incrementally.

use ctx_core::text::Slice;
use std::fmt;

/// Returns the text as a JSON string.
#[must_use]
pub fn quote(text: &str) -> String {
    // Serialising a string never fails; the fallback avoids a panic.
    serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned())
}

/// Returns the array `[a,b,c]` of values that are already JSON.
#[must_use]
pub fn array<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = String::from("[");
    for item in items {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(item.as_ref());
    }
    out.push(']');
    out
}

/// Returns a text as the block that most APIs use.
#[must_use]
pub fn text_block(text: &str) -> String {
    ObjectWriter::new().text("type", "text").text("text", text).end()
}

/// Writes one JSON object field by field.
#[derive(Clone, Debug)]
#[must_use]
pub struct ObjectWriter(String);

impl Default for ObjectWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl ObjectWriter {
    /// Creates an empty object.
    pub fn new() -> Self {
        Self(String::from("{"))
    }

    /// Adds a field whose value is already JSON.
    pub fn raw(mut self, key: &str, json: impl AsRef<str>) -> Self {
        self.key(key);
        self.0.push_str(json.as_ref());
        self
    }

    /// Adds a string.
    pub fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        self.quoted(value);
        self
    }

    fn key(&mut self, key: &str) {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.quoted(key);
        self.0.push(':');
    }

    fn quoted(&mut self, text: &str) {
        let is_plain = |byte: u8| byte >= b' ' && !matches!(byte, b'"' | b'\\');
        match text.bytes().all(is_plain) {
            true => self.0.extend(["\"", text, "\""]),
            false => self.0.push_str(&quote(text)),
        }
    }

    /// Adds a field whose value is already JSON, if any.
    pub fn raw_if(self, key: &str, json: Option<impl AsRef<str>>) -> Self {
        match json {
            Some(json) => self.raw(key, json),
            None => self,
        }
    }

    /// Adds a string, if any.
    pub fn text_if(self, key: &str, value: Option<&str>) -> Self {
        self.raw_if(key, value.map(quote))
    }

    /// Adds a number or a boolean.
    pub fn plain(self, key: &str, value: impl fmt::Display) -> Self {
        let value = value.to_string();
        self.raw(key, value)
    }

    /// Adds a number or a boolean, if any.
    pub fn plain_if(self, key: &str, value: Option<impl fmt::Display>) -> Self {
        self.raw_if(key, value.map(|value| value.to_string()))
    }

    /// Adds all fields of another object.
    pub fn with(mut self, other: &Self) -> Self {
        let fields = other.0.slice(1..);
        if self.0.len() > 1 && !fields.is_empty() {
            self.0.push(',');
        }
        self.0.push_str(fields);
        self
    }

    /// Returns the object's text.
    #[must_use]
    pub fn end(mut self) -> String {
        self.0.push('}');
        self.0
    }
}
