//! Checks values against a schema, and describes in words what the schema accepts.

use serde_json::Value;

/// Whether the schema accepts this kind of value. The contents of objects and lists are not
/// checked.
pub(crate) fn fits(value: &Value, schema: &Value) -> bool {
    if let Some(alternatives) = alternatives(schema) {
        return alternatives.iter().any(|schema| fits(value, schema));
    }
    let of_type = match schema.get("type") {
        Some(Value::String(name)) => is_a(value, name),
        Some(Value::Array(names)) => {
            names.iter().filter_map(Value::as_str).any(|name| is_a(value, name))
        }
        _ => true,
    };
    let listed = schema.get("enum").and_then(Value::as_array).is_none_or(|all| all.contains(value))
        && schema.get("const").is_none_or(|only| only == value);
    let (least, most) = range(schema);
    let in_range =
        value.as_f64().is_none_or(|n| least.is_none_or(|l| n >= l) && most.is_none_or(|m| n <= m));
    of_type && listed && in_range
}

/// Describes what the schema accepts: `a whole number from 0 to 4294967295`, `text`, `off or
/// cache-ttl`.
pub(crate) fn expected(schema: &Value) -> String {
    let named = names(schema);
    if !named.is_empty() {
        return any_of(&named);
    }
    if let Some(alternatives) = alternatives(schema) {
        let all: Vec<_> = alternatives.iter().filter(|s| !is_null(s)).map(expected).collect();
        return any_of(&all);
    }
    let types = match schema.get("type") {
        Some(Value::Array(types)) => types.iter().filter_map(Value::as_str).collect(),
        Some(Value::String(name)) => vec![name.as_str()],
        _ => Vec::new(),
    };
    let words: Vec<_> = types
        .into_iter()
        .filter(|name| *name != "null")
        .map(|name| match name {
            "boolean" => "true or false".to_owned(),
            "string" => "text".to_owned(),
            "array" => "a list".to_owned(),
            "integer" => format!("a whole number{}", range_in_words(schema)),
            "number" => format!("a number{}", range_in_words(schema)),
            other => format!("an {other}"),
        })
        .collect();
    if words.is_empty() { "another value".to_owned() } else { any_of(&words) }
}

/// Returns the allowed names, if the schema lists them.
pub(crate) fn names(schema: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(all) = schema.get("enum").and_then(Value::as_array) {
        return all.iter().filter_map(text).collect();
    }
    if let Some(only) = schema.get("const") {
        return text(only).into_iter().collect();
    }
    let Some(alternatives) = alternatives(schema) else { return Vec::new() };
    let named: Vec<Vec<String>> = alternatives.iter().filter(|s| !is_null(s)).map(names).collect();
    // If, for example, an object is allowed as well, the names are only part of what is accepted.
    if named.iter().any(Vec::is_empty) { Vec::new() } else { named.concat() }
}

fn alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").is_some_and(|name| name == "null")
}

fn is_a(value: &Value, name: &str) -> bool {
    match name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => true,
    }
}

/// Returns the minimum and maximum, from the schema and from the width of the type.
fn range(schema: &Value) -> (Option<f64>, Option<f64>) {
    let bound = |key: &str| schema.get(key).and_then(Value::as_f64);
    let (least, most) = match schema.get("format").and_then(Value::as_str) {
        Some("uint8") => (Some(0.0), Some(f64::from(u8::MAX))),
        Some("uint16") => (Some(0.0), Some(f64::from(u16::MAX))),
        Some("uint32") => (Some(0.0), Some(f64::from(u32::MAX))),
        Some("uint64" | "uint") => (Some(0.0), None),
        _ => (None, None),
    };
    (bound("minimum").or(least), bound("maximum").or(most))
}

fn range_in_words(schema: &Value) -> String {
    match range(schema) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" of {least} or more"),
        (None, Some(most)) => format!(" of {most} or less"),
        (None, None) => String::new(),
    }
}

/// Joins words: `a`, `a or b`, `a, b or c`.
pub(crate) fn any_of(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn expected_values_are_described_in_words() {
        for (schema, words) in [
            (json!({ "type": "object" }), "an object"),
            (json!({ "type": ["array", "null"] }), "a list"),
            (
                json!({ "type": "integer", "format": "uint32", "minimum": 0 }),
                "a whole number from 0 to 4294967295",
            ),
            (
                json!({ "type": ["number", "null"], "minimum": 0.1, "maximum": 0.9 }),
                "a number from 0.1 to 0.9",
            ),
            (json!({ "type": "number", "minimum": 0 }), "a number of 0 or more"),
            (json!({ "type": ["string", "number"] }), "text or a number"),
            (json!({ "type": "string", "enum": ["a", "b", "c"] }), "a, b or c"),
            (json!({ "oneOf": [{ "const": "a" }, { "const": "b" }] }), "a or b"),
            (json!({ "anyOf": [{ "type": "object" }, { "type": "null" }] }), "an object"),
        ] {
            assert_eq!(expected(&schema), words);
        }
    }

    #[test]
    fn values_are_checked_for_type_range_and_names() {
        let share = json!({ "type": "number", "minimum": 0, "maximum": 1 });
        assert!(fits(&json!(0), &share) && fits(&json!(1.0), &share));
        for wrong in [json!(1.01), json!(-1), json!("0.5"), json!(null), json!([])] {
            assert!(!fits(&wrong, &share), "{wrong}");
        }
        let whole = json!({ "type": ["integer", "null"], "format": "uint32" });
        assert!(fits(&json!(null), &whole) && fits(&json!(u32::MAX), &whole));
        for wrong in [json!(-1), json!(0.5), json!(5_000_000_000u64), json!(true)] {
            assert!(!fits(&wrong, &whole), "{wrong}");
        }
        let named = json!({ "anyOf": [{ "enum": ["a"] }, { "const": "b" }, { "type": "null" }] });
        assert!(["a", "b"].iter().all(|name| fits(&json!(name), &named)));
        assert!(!fits(&json!("c"), &named) && names(&named) == ["a", "b"]);
    }
}
