//! What a model answered, read forgivingly: what is sound is used.

use ctx_core::text::head_bytes;
use serde_json::{Map, Value};

/// More items of one answer are not looked at.
const ITEMS_MAX: usize = 500;

/// Deeper nesting is no answer to what was asked.
const DEPTH_MAX: usize = 16;

/// So much of an answer is read.
const ANSWER_MAX: usize = 1 << 20;

/// The objects of an answer, in their order: those of a JSON array, of lines, of a fence, or between
/// prose. An object that cannot be read costs only itself.
pub(super) fn items(answer: &str) -> Vec<Map<String, Value>> {
    let answer = head_bytes(answer, ANSWER_MAX);
    let mut out = Vec::new();
    let mut at = 0;
    while out.len() < ITEMS_MAX {
        let Some(start) = answer.get(at..).and_then(|rest| rest.find('{')).map(|n| n + at) else {
            break;
        };
        let Some(end) = closing(answer, start) else { break };
        let text = answer.get(start..end).unwrap_or_default();
        at = match object(text) {
            // `{"facts": [...]}`: what is wanted is inside.
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

/// Where the object that begins at `start` ends. An object without an end goes to no end.
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
    let parsed = serde_json::from_str(text).or_else(|_| serde_json::from_str(&mended(text)));
    match parsed {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}

/// JSON without commas before a closing bracket, and without line breaks inside of strings.
fn mended(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let (mut quoted, mut escaped) = (false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '\n' | '\r' | '\t' if quoted => {
                out.push(' ');
                continue;
            }
            '}' | ']' if !quoted => {
                let kept = out.trim_end().trim_end_matches(',').len();
                out.truncate(kept);
            }
            _ => {}
        }
        out.push(c);
    }
    out
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
    fn what_is_sound_of_an_answer_is_used() {
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
    fn an_endless_answer_ends() {
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
