//! Tool arguments: JSON in a string at OpenAI, an object elsewhere.

use std::borrow::Cow;

use ctx_core::RawJson;
use serde_json::value::RawValue;

use super::{ObjectWriter, string};

/// Unwraps tool arguments written as a JSON string (OpenAI) if the string contains a JSON value
/// other than a string; otherwise keeps the string.
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

/// Returns the text of OpenAI's `arguments` string: the inverse of [`unwrap_arguments`].
#[must_use]
pub(crate) fn arguments_text(arguments: &RawJson) -> String {
    match serde_json::from_str::<&RawValue>(arguments.as_str()) {
        Ok(raw) => string(raw).map_or_else(|| raw.get().to_owned(), Cow::into_owned),
        Err(_) => arguments.as_str().to_owned(),
    }
}

/// Returns tool arguments as the object that Anthropic, Gemini and pi require. Other values are
/// wrapped under `arguments`.
#[must_use]
pub(crate) fn arguments_object(arguments: &RawJson) -> String {
    let text = arguments.as_str().trim();
    match text {
        _ if text.starts_with('{') => text.to_owned(),
        "" | "null" | "\"\"" => "{}".to_owned(),
        _ => ObjectWriter::new().raw("arguments", text).end(),
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
