//! What a provider's error body says, whatever its shape.

use std::collections::HashMap;

use serde_json::Value;

use crate::overflow::as_number;

/// Keys whose values are words of the provider. Others may repeat the request, which may itself
/// speak of prompts that are too long.
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

/// Keys that lead to more of the same.
const INNER: [&str; 8] =
    ["error", "errors", "detail", "details", "metadata", "response", "base_resp", "fault"];

/// How deep an error is looked into, JSON inside of texts included.
const DEPTH: usize = 6;

/// How many texts, and how much of each, are looked at.
const TEXTS: usize = 32;
const TEXT_CHARS: usize = 4_096;

/// The words, codes and numbers of an error body.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ErrorText {
    texts: Vec<String>,
    codes: Vec<String>,
    numbers: HashMap<String, u64>,
}

/// Reads a body; one that is no JSON is one text.
pub(crate) fn read(body: &str) -> ErrorText {
    let mut error = ErrorText::default();
    match serde_json::from_str::<Value>(body) {
        Ok(value) => error.take(&value, DEPTH),
        Err(_) => error.say(body),
    }
    error
}

/// Reads a value.
pub(crate) fn read_value(value: &Value) -> ErrorText {
    let mut error = ErrorText::default();
    error.take(value, DEPTH);
    error
}

impl ErrorText {
    /// What the provider says, the outermost first, then its codes.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().chain(&self.codes).map(String::as_str)
    }

    /// What to show to a person.
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

    /// Whether any text or code holds one of the words, which are lower case.
    pub(crate) fn says(&self, words: &[&str]) -> bool {
        self.texts().any(|text| {
            let text = text.to_lowercase();
            words.iter().any(|word| text.contains(word))
        })
    }

    /// The status this error would have had, were it not inside a stream: a code that is one, or
    /// what the type stands for.
    pub(crate) fn status(&self) -> u16 {
        let number = self
            .codes
            .iter()
            .find_map(|code| code.parse::<u16>().ok().filter(|status| (400..600).contains(status)));
        number.unwrap_or_else(|| {
            let has = |words: &[&str]| {
                self.codes.iter().any(|code| {
                    let code = code.to_ascii_lowercase();
                    words.iter().any(|word| code.contains(word))
                })
            };
            if has(&["rate_limit", "resource_exhausted", "insufficient_quota", "too_many"]) {
                429
            } else if has(&["overloaded", "unavailable"]) {
                529
            } else if has(&["authentication", "invalid_api_key", "unauthenticated"]) {
                401
            } else if has(&["permission"]) {
                403
            } else if has(&["not_found"]) {
                404
            } else if has(&["invalid_request", "invalid_argument", "badrequest", "bad_request"]) {
                400
            } else {
                500
            }
        })
    }

    fn say(&mut self, text: &str) {
        let text = text.trim();
        if !text.is_empty() && self.texts.len() < TEXTS {
            self.texts.push(text.chars().take(TEXT_CHARS).collect());
        }
    }

    fn take(&mut self, value: &Value, depth: usize) {
        let Some(depth) = depth.checked_sub(1) else { return };
        match value {
            Value::String(text) => self.take_text(text, depth),
            // The texts are counted, and nothing is taken once there are enough.
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

    /// Proxies put the error they got, as JSON, into the text of their own.
    fn take_text(&mut self, text: &str, depth: usize) {
        if self.texts.len() >= TEXTS {
            return;
        }
        match serde_json::from_str::<Value>(text) {
            Ok(inner @ (Value::Object(_) | Value::Array(_))) => self.take(&inner, depth),
            _ => self.say(text),
        }
    }
}
