//! Tool arguments: JSON in a string at OpenAI, an object elsewhere.

use std::borrow::Cow;

use ctx_core::RawJson;
use serde_json::value::RawValue;

use super::{Fresh, string};

/// Tool arguments written as a JSON string (OpenAI): unwrapped when the string holds a JSON value
/// that is not itself a string, else kept as the string.
#[must_use]
pub fn unwrap_arguments(raw: &RawValue) -> RawJson {
    match string(raw) {
        Some(inner) if !inner.trim_start().starts_with('"') => {
            match serde_json::from_str::<&RawValue>(&inner) {
                Ok(value) => RawJson::from_text(value.get()),
                Err(_) => RawJson::from(raw),
            }
        }
        _ => RawJson::from(raw),
    }
}

/// The opposite of [`unwrap_arguments`]: the text that goes into OpenAI's `arguments` string.
#[must_use]
pub fn arguments_text(arguments: &RawJson) -> String {
    match serde_json::from_str::<&RawValue>(arguments.as_str()) {
        Ok(raw) => string(raw).map_or_else(|| raw.get().to_owned(), Cow::into_owned),
        Err(_) => arguments.as_str().to_owned(),
    }
}

/// Tool arguments as the object that Anthropic, Gemini and pi demand. What is no object goes in
/// under `arguments`.
#[must_use]
pub fn arguments_object(arguments: &RawJson) -> String {
    let text = arguments.as_str().trim();
    match text {
        _ if text.starts_with('{') => text.to_owned(),
        "" | "null" | "\"\"" => "{}".to_owned(),
        _ => Fresh::new().raw("arguments", text).end(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::quote;
    use super::*;

    #[test]
    fn arguments_round_trip() {
        for (wire, held) in [
            (r#""{\"a\":1}""#, r#"{"a":1}"#),
            (r#""""#, r#""""#),
            (r#""{broken""#, r#""{broken""#),
            (r#""\"x\"""#, r#""\"x\"""#),
            (r#"{"a":1}"#, r#"{"a":1}"#),
        ] {
            let arguments = unwrap_arguments(serde_json::from_str(wire).unwrap());
            assert_eq!(arguments.as_str(), held);
            if wire.starts_with('"') {
                assert_eq!(quote(&arguments_text(&arguments)), wire);
            }
        }
    }
}
