//! Extracts the texts and codes from provider error bodies of any shape.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::Value;

use crate::overflow::as_number;

/// Keys whose values are messages of the provider. Other keys may repeat the request, which may
/// itself mention prompts that are too long.
const WORDS: [&str; 12] = [
    "message",
    "error",
    "detail",
    "details",
    "msg",
    "errorMessage",
    "error_description",
    "reason",
    "raw",
    "title",
    "last_error",
    "description",
];

/// Keys whose values are codes.
const CODES: [&str; 6] = ["code", "type", "status", "errorType", "error_type", "error_code"];

/// Keys of nested errors.
const INNER: [&str; 8] =
    ["error", "errors", "detail", "details", "metadata", "response", "base_resp", "fault"];

/// HTTP statuses, each with the parts of codes that mean it. The first match counts.
const STATUSES: [(u16, &[&str]); 6] = [
    (429, &["rate_limit", "resource_exhausted", "insufficient_quota", "too_many"]),
    (529, &["overloaded", "unavailable"]),
    (401, &["authentication", "invalid_api_key", "unauthenticated"]),
    (403, &["permission"]),
    (404, &["not_found"]),
    (400, &["invalid_request", "invalid_argument", "badrequest", "bad_request"]),
];

/// Maximum nesting depth, including JSON inside texts.
const DEPTH: usize = 6;

/// Maximum number of texts, and of characters per text.
const TEXTS: usize = 32;
const TEXT_CHARS: usize = 4_096;

/// The texts, codes and numbers of an error body.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ErrorText {
    texts: Vec<String>,
    codes: Vec<String>,
    numbers: HashMap<String, u64>,
}

/// Maximum characters of a message taken from an HTML page.
const PAGE_CHARS: usize = 120;

/// Parses a body. A body that is not JSON becomes one text; an HTML page is abbreviated.
pub(crate) fn read(body: &str) -> ErrorText {
    let mut error = ErrorText::default();
    match serde_json::from_str::<Value>(body) {
        Ok(value) => error.take(&value, DEPTH),
        Err(_) => error.add_text(&page(body).unwrap_or_else(|| body.to_owned())),
    }
    error
}

/// Returns the message of an HTML page: its title, otherwise the beginning of its text.
fn page(body: &str) -> Option<String> {
    let lower = body.trim_start().to_ascii_lowercase();
    if !lower.starts_with("<!doctype") && !lower.starts_with("<html") && !lower.starts_with("<head")
    {
        return None;
    }
    let (mut text, mut is_tag) = (String::new(), false);
    let body = body.trim_start();
    let title = lower.find("<title").and_then(|at| {
        let begin = at + lower[at..].find('>')? + 1;
        Some(&body[begin..begin + lower[begin..].find("</title")?])
    });
    for c in title.unwrap_or(body).chars() {
        match c {
            '<' => is_tag = true,
            // Text on the two sides of a tag is separate words.
            '>' if is_tag => {
                is_tag = false;
                text.push(' ');
            }
            c if !is_tag => text.push(c),
            _ => {}
        }
    }
    let words: Vec<_> = text.split_whitespace().collect();
    let message: String = words.join(" ").chars().take(PAGE_CHARS).collect();
    Some(match message.is_empty() {
        true => "an HTML page".to_owned(),
        false => format!("an HTML page: {message}"),
    })
}

/// Parses a value.
pub(crate) fn read_value(value: &Value) -> ErrorText {
    let mut error = ErrorText::default();
    error.take(value, DEPTH);
    error
}

impl ErrorText {
    /// Returns the texts, outermost first, then the codes.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().chain(&self.codes).map(String::as_str)
    }

    /// Returns the message to show to a user.
    pub(crate) fn message(&self) -> Option<&str> {
        self.texts.first().or_else(|| self.codes.first()).map(String::as_str)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.texts.is_empty() && self.codes.is_empty()
    }

    pub(crate) fn has_code(&self, code: &str) -> bool {
        self.codes.iter().any(|c| c.eq_ignore_ascii_case(code))
    }

    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.numbers.get(key).copied()
    }

    /// Whether any text or code contains one of the words, given in lower case.
    pub(crate) fn says(&self, words: &[&str]) -> bool {
        self.texts().any(|text| {
            let text = text.to_lowercase();
            words.iter().any(|word| text.contains(word))
        })
    }

    /// Returns the HTTP status equivalent to an error inside a stream: a numeric code, or the status
    /// that the error type corresponds to.
    pub(crate) fn status(&self) -> u16 {
        let number = self
            .codes
            .iter()
            .find_map(|code| code.parse::<u16>().ok().filter(|status| (400..600).contains(status)));
        number.unwrap_or_else(|| {
            let codes: Vec<_> = self.codes.iter().map(|code| code.to_ascii_lowercase()).collect();
            let is_named = |word: &&str| codes.iter().any(|code| code.contains(*word));
            let found = STATUSES.iter().find(|(_, words)| words.iter().any(is_named));
            found.map_or(500, |(status, _)| *status)
        })
    }

    /// Returns the delay stated in a text, because errors inside a stream have no header for it:
    /// `Please try again in 4.77s`, `in 1m30s`, `in 250ms`.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.texts().find_map(|text| {
            let text = text.to_lowercase();
            let (_, rest) = text.split_once("try again in ")?;
            wait_at_start(rest)
        })
    }

    fn add_text(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() && self.texts.len() < TEXTS {
            self.texts.push(text.chars().take(TEXT_CHARS).collect());
        }
    }

    fn take(&mut self, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match value {
            Value::String(text) => self.take_text(text, depth),
            // The number of texts is limited, so more items are not needed.
            Value::Array(items) => items.iter().take(TEXTS).for_each(|item| self.take(item, depth)),
            Value::Object(object) => {
                for key in WORDS {
                    if let Some(Value::String(text)) = object.get(key) {
                        self.take_text(text, depth);
                    }
                }
                for key in CODES {
                    let code = match object.get(key) {
                        Some(Value::String(text)) => text.chars().take(100).collect(),
                        Some(Value::Number(number)) => number.to_string(),
                        _ => continue,
                    };
                    if self.codes.len() < TEXTS {
                        self.codes.push(code);
                    }
                }
                for (key, value) in object {
                    if let Some(number) = as_number(value) {
                        self.numbers.entry(key.clone()).or_insert(number);
                    }
                }
                for key in INNER {
                    if let Some(inner @ (Value::Object(_) | Value::Array(_))) = object.get(key) {
                        self.take(inner, depth);
                    }
                }
            }
            _ => {}
        }
    }

    /// Adds a text, or the error in it: proxies embed the upstream error as JSON in their own text.
    fn take_text(&mut self, text: &str, depth: usize) {
        if self.texts.len() >= TEXTS {
            return;
        }
        match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => self.take(&inner, depth),
            _ => self.add_text(text),
        }
    }
}

fn wait_at_start(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut seconds = None;
    // At most hours, minutes, seconds and milliseconds.
    for _ in 0..4 {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let Ok(number) = rest[..digits].parse::<f64>() else { break };
        let after = rest[digits..].trim_start();
        let unit = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, more) = after.split_at(unit);
        let scale = match unit {
            "ms" => 0.001,
            "s" | "sec" | "second" | "seconds" => 1.0,
            "m" | "min" | "minute" | "minutes" => 60.0,
            "h" | "hour" | "hours" => 3_600.0,
            _ => break,
        };
        seconds = Some(seconds.unwrap_or(0.0) + number * scale);
        rest = more;
    }
    Duration::try_from_secs_f64(seconds?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read_from_error_texts() {
        let millis = |text: &str| read(text).wait().map(|wait| wait.as_millis());
        for (text, expected) in [
            ("Rate limit reached. Please try again in 4.77s. Need more?", Some(4_770)),
            ("Please try again in 20s.", Some(20_000)),
            ("Try again in 250ms", Some(250)),
            ("try again in 1m30.5s", Some(90_500)),
            ("try again in 2 minutes", Some(120_000)),
            ("try again in 1h", Some(3_600_000)),
            ("try again in a while", None),
            ("try again in 1.2.3s", None),
            ("try again in 5 apples", None),
            ("try again in ", None),
            ("try again later", None),
        ] {
            assert_eq!(millis(text), expected, "{text}");
        }
        let nines = "9".repeat(4_000);
        assert_eq!(millis(&format!("try again in {nines}s")), None);
    }

    #[test]
    fn only_the_providers_words_are_taken() {
        let body = r#"{"detail":[{"msg":"bad","input":"secret prompt","loc":["body"]}],
            "error":{"message":"{\"error\":{\"message\":\"inner\",\"code\":\"x_y\"}}","code":400}}"#;
        let error = read(body);
        assert_eq!(error.texts().collect::<Vec<_>>(), ["inner", "bad", "x_y", "400"]);
        assert_eq!((error.message(), error.status()), (Some("inner"), 400));
        assert!(error.says(&["inner"]) && !error.says(&["secret"]) && error.has_code("X_Y"));
        assert!(read("").is_empty() && read("{}").is_empty() && !read("oops").is_empty());
    }
}
