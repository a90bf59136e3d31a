//! Extracts strings from the arguments of a tool call.

use ctx_core::text::Slice;
use std::borrow::Cow;

/// A JSON string and its key; keys of outer objects are not recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named<'a> {
    /// The key, still escaped.
    pub key: &'a str,
    /// The string.
    pub value: Cow<'a, str>,
}

/// Returns all string values, in order. Any nesting depth is safe for the stack; invalid JSON
/// yields the strings found in it.
pub fn strings(json: &str) -> Vec<Named<'_>> {
    let bytes = json.as_bytes();
    let mut out = Vec::new();
    let (mut at, mut key) = (0, "");
    while let Some(open) = memchr::memchr(b'"', bytes.slice(at..)) {
        let start = at + open + 1;
        let Some(len) = string_len(bytes.slice(start..)) else { break };
        let raw = json.slice(start..start + len);
        at = start + len + 1;
        let after = bytes.slice(at..).iter().find(|b| !b.is_ascii_whitespace());
        if after == Some(&b':') {
            key = raw;
        } else {
            out.push(Named { key, value: unescaped(raw) });
        }
    }
    out
}

/// Returns the length of a string up to its closing quotation mark.
fn string_len(bytes: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let mark = at + memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(mark) == Some(&b'"') {
            return Some(mark);
        }
        at = mark + 2;
    }
}

fn unescaped(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    // A lone surrogate is not valid text; the string is then used unescaped.
    match serde_json::from_str::<String>(&format!("\"{raw}\"")) {
        Ok(text) => Cow::Owned(text),
        Err(_) => Cow::Owned(raw.replace("\\n", "\n").replace("\\\\", "\\").replace("\\\"", "\"")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_with_their_keys() {
        let read = |json| -> Vec<(String, String)> {
            strings(json).into_iter().map(|s| (s.key.to_owned(), s.value.into_owned())).collect()
        };
        let pair = |k: &str, v: &str| (k.to_owned(), v.to_owned());
        assert_eq!(
            read(r#"{"path": "a\\b\n", "n": 1, "list":["x", {"deep":"y"}]}"#),
            [pair("path", "a\\b\n"), pair("list", "x"), pair("deep", "y")]
        );
        assert_eq!(read(r#"{"a":"\ud800 x"}"#), [pair("a", r"\ud800 x")]);
        assert_eq!(read(r#"{"a":"never closed"#), []);
        assert_eq!(read(&"[".repeat(100_000)), []);
    }
}
