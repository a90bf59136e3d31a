//! Recognises errors about prompts that are too long, across providers.
//!
//! The patterns are data: `data/overflow.json`, each row with its source. A row matches by a
//! pattern over the error's texts, by a code or by the status alone. The first match determines the
//! provider; the numbers come from the first row that has them.

use std::sync::LazyLock;

use ctx_core::Usage;
use regex::{Captures, Regex, RegexBuilder};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

use crate::provider_error::{self, ErrorText};

/// Statuses that never mean an overflow, with any text: they concern the key, the account or rate
/// limits.
const NEVER: [u16; 4] = [401, 402, 403, 429];

/// A prompt that was too long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Overflow {
    /// Tokens of the request, including the answer if the provider counts it.
    pub used: Option<u64>,
    /// Tokens of the prompt alone, if the provider reports them separately or does not count the
    /// answer.
    pub prompt: Option<u64>,
    /// The model's token limit.
    pub limit: Option<u64>,
    /// The id of the matching row, for example `anthropic-prompt`.
    pub pattern: &'static str,
    /// The provider that uses this wording.
    pub provider: &'static str,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OverflowRow {
    id: String,
    provider: String,
    #[serde(default, deserialize_with = "compiled")]
    pattern: Option<Regex>,
    #[serde(default)]
    codes: Vec<String>,
    #[serde(default)]
    statuses: Vec<u16>,
    #[serde(default)]
    no_body: bool,
    used_field: Option<String>,
    limit_field: Option<String>,
    /// Whether the used tokens include the answer.
    #[serde(default)]
    with_answer: bool,
    source: String,
}

fn compiled<'de, D: Deserializer<'de>>(pattern: D) -> Result<Option<Regex>, D::Error> {
    let pattern = String::deserialize(pattern)?;
    let mut builder = RegexBuilder::new(&pattern);
    builder.case_insensitive(true).dot_matches_new_line(true);
    builder.build().map(Some).map_err(D::Error::custom)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct OverflowTable {
    overflow: Vec<OverflowRow>,
    not_overflow: Vec<OverflowRow>,
}

static TABLE: LazyLock<OverflowTable> = LazyLock::new(|| {
    table(include_str!("../data/overflow.json"))
        .expect("the embedded table is the one the tests of this crate read")
});

fn table(json: &str) -> Result<OverflowTable, serde_json::Error> {
    let table: OverflowTable = serde_json::from_str(json)?;
    match table.overflow.iter().chain(&table.not_overflow).find(|row| row.source.is_empty()) {
        Some(row) => Err(serde_json::Error::custom(format!("{}: no source", row.id))),
        None => Ok(table),
    }
}

/// Whether the status and body of an error response say that the prompt was too long. For an error
/// inside a stream, which has no status, pass 0.
///
/// Similar errors do not count: rate limits (`tokens per minute`), quotas, and limits on the length
/// of the answer.
///
/// # Example
///
/// ```
/// let body = r#"{"type":"error","error":{"type":"invalid_request_error",
///     "message":"prompt is too long: 208310 tokens > 200000 maximum"}}"#;
/// let overflow = ctx_model::overflow(400, body).unwrap();
/// assert_eq!((overflow.used, overflow.limit), (Some(208_310), Some(200_000)));
///
/// let body = r#"{"error":{"message":"Rate limit reached: tokens per minute (TPM): Limit 6000"}}"#;
/// assert_eq!(ctx_model::overflow(413, body), None);
/// ```
#[must_use]
pub fn overflow(status: u16, body: &str) -> Option<Overflow> {
    overflow_of(status, &provider_error::read(body))
}

pub(crate) fn overflow_of(status: u16, error: &ErrorText) -> Option<Overflow> {
    if NEVER.contains(&status) {
        return None;
    }
    let matches = |row: &OverflowRow| {
        row.pattern.as_ref().is_some_and(|p| error.texts().any(|t| p.is_match(t)))
    };
    if TABLE.not_overflow.iter().any(matches) {
        return None;
    }
    let mut found: Option<Overflow> = None;
    for row in &TABLE.overflow {
        let Some(read) = row.read(status, error) else { continue };
        let so_far = found.get_or_insert(read);
        if so_far.used.is_none() && so_far.limit.is_none() {
            let Overflow { pattern, provider, .. } = *so_far;
            *so_far = Overflow { pattern, provider, ..read };
        }
        if so_far.used.is_some() {
            break;
        }
    }
    found
}

/// Whether a successful answer shows that the prompt did not fit: some providers (z.ai) silently
/// accept a prompt that is too long, and some (Xiaomi) fill the window and answer nothing.
#[must_use]
pub fn silent_overflow(usage: &Usage, window: u64, answer_is_empty: bool) -> Option<Overflow> {
    let used = usage.prompt();
    let full = used > window || (answer_is_empty && used >= window.saturating_mul(99) / 100);
    (window > 0 && full).then_some(Overflow {
        used: Some(used),
        prompt: Some(used),
        limit: Some(window),
        pattern: "silent",
        provider: "any",
    })
}

impl OverflowRow {
    /// Reads an error with the numbers in it; `None` if the row does not match it.
    fn read(&'static self, status: u16, error: &ErrorText) -> Option<Overflow> {
        if !self.statuses.is_empty() && !self.statuses.contains(&status) {
            return None;
        }
        if self.no_body && !error.is_empty() {
            return None;
        }
        let field = |name: &Option<String>| error.number(name.as_deref()?);
        let (pattern, provider) = (self.id.as_str(), self.provider.as_str());
        let mut found = Overflow { pattern, provider, ..Overflow::default() };
        if let Some(pattern) = &self.pattern {
            self.numbers(&error.texts().find_map(|text| pattern.captures(text))?, &mut found);
        } else if !self.codes.is_empty() && !self.codes.iter().any(|code| error.has_code(code)) {
            return None;
        }
        if found.used.is_none() {
            found.used = field(&self.used_field);
            found.prompt = found.used.filter(|_| !self.with_answer);
        }
        found.limit = found.limit.or_else(|| field(&self.limit_field));
        Some(found)
    }

    fn numbers(&self, captures: &Captures<'_>, found: &mut Overflow) {
        let number = |name: &str| -> Option<u64> {
            captures.name(name)?.as_str().replace(',', "").parse().ok()
        };
        let used = number("used");
        found.used = used.map(|used| used.saturating_add(number("extra").unwrap_or(0)));
        found.prompt = number("prompt").or_else(|| used.filter(|_| !self.with_answer));
        found.limit = number("limit");
    }
}

/// Returns a number in a JSON object, even if it is written as a string.
pub(crate) fn as_number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each row of the table has a real error that it matches.
    #[test]
    fn every_row_recognises_a_real_error() {
        let bodies: Vec<Value> =
            serde_json::from_str(include_str!("../tests/it/data/error_bodies.json")).unwrap();
        let error = |body: &Value| provider_error::read(body["body"].as_str().unwrap());
        for row in &TABLE.overflow {
            let hit = |body: &Value| {
                let status = body["status"].as_u64().unwrap() as u16;
                body["pattern"].is_string() && row.read(status, &error(body)).is_some()
            };
            assert!(bodies.iter().any(hit), "{}", row.id);
        }
        for row in &TABLE.not_overflow {
            let pattern = row.pattern.as_ref().unwrap();
            let hit = |body: &Value| {
                body["pattern"].is_null() && error(body).texts().any(|text| pattern.is_match(text))
            };
            assert!(bodies.iter().any(hit), "{}", row.id);
        }
    }

    #[test]
    fn the_prompt_is_counted_separately_from_the_answer() {
        let prompt = |message: &str| {
            let body = serde_json::json!({ "error": { "message": message } });
            let found = overflow(400, &body.to_string()).unwrap();
            (found.used, found.prompt)
        };
        let openai = "This model's maximum context length is 8192 tokens. However, you requested";
        for (message, used, alone) in [
            (" 10000 tokens (6000 in the messages, 4000 in the completion).", 10_000, Some(6_000)),
            (" 8238 tokens (8238 in your prompt; 0 for the completion).", 8_238, Some(8_238)),
            (
                " about 141607 tokens (10535 of text input, 131072 in the output).",
                141_607,
                Some(10_535),
            ),
            (" 351430 tokens. Please reduce the length of the messages.", 351_430, None),
        ] {
            assert_eq!(prompt(&format!("{openai}{message}")), (Some(used), alone), "{message}");
        }
        let plus = "input length and `max_tokens` exceed context limit: 178959 + 64000 > 200000";
        assert_eq!(prompt(plus), (Some(242_959), Some(178_959)));
        let plain = "prompt is too long: 208310 tokens > 200000 maximum";
        assert_eq!(prompt(plain), (Some(208_310), Some(208_310)));
    }

    #[test]
    fn a_table_with_a_fault_is_refused() {
        let row = |row: &str| format!(r#"{{"overflow":[{row}],"notOverflow":[]}}"#);
        let sound = r#"{"id":"a","provider":"p","pattern":"x","source":"s"}"#;
        assert!(table(&row(sound)).is_ok());
        for fault in
            [sound.replace("\"s\"", "\"\""), sound.replace("x", "("), sound.replace("id", "di")]
        {
            assert!(table(&row(&fault)).is_err(), "{fault}");
        }
    }
}
