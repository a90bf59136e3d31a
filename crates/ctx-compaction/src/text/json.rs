//! The strings in the arguments of a tool call.

use std::borrow::Cow;

/// A string in JSON, with the key it stands under; keys of outer objects are not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named<'a> {
    /// The key, without its escapes resolved.
    pub(crate) key: &'a str,
    /// The string.
    pub(crate) value: Cow<'a, str>,
}

/// All strings that are values, in order. Nesting of any depth costs no stack, and text that is no
/// JSON gives what there is of strings in it.
pub(crate) fn strings(json: &str) -> Vec<Named<'_>> {
    let bytes = json.as_bytes();
    let mut out = Vec::new();
    let (mut at, mut key) = (0, "");
    while let Some(open) = memchr::memchr(b'"', bytes.get(at..).unwrap_or_default()) {
        let start = at + open + 1;
        let Some(len) = string_len(bytes.get(start..).unwrap_or_default()) else { break };
        let raw = json.get(start..start + len).unwrap_or_default();
        at = start + len + 1;
        let after = bytes.get(at..).unwrap_or_default().iter().find(|b| !b.is_ascii_whitespace());
        if after == Some(&b':') {
            key = raw;
        } else {
            out.push(Named { key, value: unescaped(raw) });
        }
    }
    out
}

/// The length of a string up to its closing quotation mark.
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
    // A lone surrogate is no text; the string is then read as it stands.
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
