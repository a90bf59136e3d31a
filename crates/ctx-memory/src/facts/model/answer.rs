//! Parses a model's answer leniently: valid items are used, and others are skipped.

use ctx_core::text::{Slice, head_bytes};
use ctx_dialect::json::relaxed;
use serde_json::{Map, Value};

/// The maximum number of items read from one answer.
const ITEMS_MAX: usize = 500;

/// The maximum nesting. An object nested more deeply is ignored, with everything after it.
const DEPTH_MAX: usize = 16;

/// The maximum number of bytes read from an answer.
const ANSWER_MAX: usize = 1 << 20;

/// Returns the objects of an answer that have a `content` or an `op`, in order: from a JSON array,
/// JSON lines, a fenced block, or within prose. An object that cannot be parsed is skipped.
pub(super) fn items(answer: &str) -> Vec<Map<String, Value>> {
    let answer = head_bytes(answer, ANSWER_MAX);
    let mut out = Vec::new();
    let mut at = 0;
    while out.len() < ITEMS_MAX {
        let Some(start) = answer.get(at..).and_then(|rest| rest.find('{')).map(|n| n + at) else {
            break;
        };
        let Some(end) = closing(answer, start) else { break };
        let text = answer.slice(start..end);
        at = match object(text) {
            // `{"facts": [...]}`: the items are inside.
            Some(object) if object.contains_key("content") || object.contains_key("op") => {
                out.push(object);
                end
            }
            _ if text.get(1..).is_some_and(|inner| inner.contains('{')) => start + 1,
            _ => end,
        };
    }
    out
}

/// Returns the end of the object that begins at `start`, or `None` if it is not closed or nested
/// too deeply.
fn closing(text: &str, start: usize) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0usize, false, false);
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            b'{' | b'[' if !quoted => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return None;
                }
            }
            b'}' | b']' if !quoted => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

fn object(text: &str) -> Option<Map<String, Value>> {
    serde_json::from_str(text).ok().or_else(|| {
        // Accepts line breaks inside strings too.
        serde_json::from_str(&relaxed(&text.replace(['\n', '\r'], " "))?).ok()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(answer: &str) -> Vec<String> {
        let text = |item: &Map<String, Value>| {
            item.get("content").and_then(Value::as_str).map(str::to_owned)
        };
        items(answer).iter().filter_map(text).collect()
    }

    #[test]
    fn valid_items_of_an_answer_are_used() {
        for (answer, expected) in [
            (r#"[{"content":"a"},{"content":"b"}]"#, vec!["a", "b"]),
            (
                "Sure! Here you go:\n```json\n[{\"content\":\"a\",},]\n```\nAnything else?",
                vec!["a"],
            ),
            (r#"{"facts":[{"content":"a {b} \" c"}]}"#, vec!["a {b} \" c"]),
            ("{\"content\":\"a\"}\n{\"content\":\"b\"}", vec!["a", "b"]),
            ("{\"content\":\"two\nlines\"}", vec!["two lines"]),
            (r#"[{"content":"a"},{"content":"cut o"#, vec!["a"]),
            (r#"[{"content": 5 5},{"content":"b"}]"#, vec!["b"]),
            ("I could not find any facts {in} this.", vec![]),
            ("", vec![]),
            ("[]", vec![]),
        ] {
            assert_eq!(contents(answer), expected, "{answer}");
        }
    }

    #[test]
    fn reading_an_endless_answer_ends() {
        for answer in [
            "{".repeat(100_000),
            "[{\"a\":".repeat(50_000),
            "{}".repeat(100_000),
            "{\"".repeat(90_000),
        ] {
            assert_eq!(contents(&answer), [] as [&str; 0]);
        }
        assert_eq!(contents(&r#"{"content":"a"}"#.repeat(10_000)).len(), ITEMS_MAX);
    }
}
