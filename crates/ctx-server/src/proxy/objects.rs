//! Counts the objects of a JSON text without parsing it.

use ctx_core::text::Slice;

/// Maximum number of JSON objects: more take seconds and hundreds of MB. A tool call has two.
pub(super) const MOST_OBJECTS: usize = 200_000;

/// Whether a JSON text has more than `most` objects, ignoring the content of strings.
pub(super) fn has_more_objects(json: &str, most: usize) -> bool {
    /// The minimum size of a message with a role and a text.
    const SMALLEST: usize = 16;
    if json.len() / SMALLEST < most {
        return false;
    }
    let (mut rest, mut objects, mut in_string) = (json.as_bytes(), 0, false);
    loop {
        let next = if in_string { b'\\' } else { b'{' };
        let Some(at) = memchr::memchr2(b'"', next, rest) else { return false };
        let found = rest[at];
        // An escaped character does not end the string.
        let next = at + 1 + usize::from(found == b'\\');
        rest = rest.slice(next.min(rest.len())..);
        match found {
            b'"' => in_string = !in_string,
            b'{' => objects += 1,
            _ => {}
        }
        if objects > most {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_counted_outside_of_strings() {
        let list = |one: &str| format!("[{}]", vec![one; 100].join(","));
        let call = r#"{"text":"{\"a{{\\\\", "function":{"name":"}{"}}"#;
        assert!(has_more_objects(&list(call), 199) && !has_more_objects(&list(call), 200));
        for torn in ["", "{", "\"", "\"\\", "{\"a\\\""] {
            let _ = has_more_objects(torn, 0);
        }
    }
}
