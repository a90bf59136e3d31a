//! Rejects unknown keys and values of the wrong kind, by comparing a value with its schema.

use ctx_core::{Error, ErrorKind};
use serde_json::{Map, Value, json};

use crate::expected::{expected, fits, names};

/// The hint of errors about values, unless a similar name can be suggested.
pub(crate) const SEE_SCHEMA: &str = "`ctx config schema` prints the valid values of each key";

/// Replaces a value that may be a secret.
const HIDDEN: &str = "(hidden)";

/// Longer values are truncated in errors.
const LONGEST_SHOWN: usize = 60;

/// Returns an object schema that allows no keys yet.
pub(crate) fn object() -> Value {
    json!({
        "type": "object",
        "properties": {},
        "additionalProperties": false,
    })
}

/// Inserts a section's schema at a dotted path below `root`.
pub(crate) fn place(root: &mut Value, path: &str, schema: Value) {
    let mut at = root;
    for key in path.split('.') {
        let properties = at["properties"].as_object_mut();
        let Some(properties) = properties else { return };
        at = properties.entry(key).or_insert_with(object);
    }
    if let (Some(old), Some(new)) = (at["properties"].as_object().cloned(), schema.as_object()) {
        let mut merged = new.clone();
        if let Some(properties) = merged.get_mut("properties").and_then(Value::as_object_mut) {
            for (key, value) in old {
                properties.entry(key).or_insert(value);
            }
        }
        *at = Value::Object(merged);
    } else {
        *at = schema;
    }
}

/// Returns the path and error of each unknown key and of each value that the schema does not
/// accept.
pub(crate) fn faults(value: &Value, schema: &Value) -> Vec<(String, Error)> {
    let mut faults = Vec::new();
    if value.is_object() {
        walk(value, schema, "", &mut faults);
    } else {
        let error = Error::new(ErrorKind::Config, "the configuration is not an object");
        let hint = "write one object, such as { profile: \"openclaw\" }";
        faults.push((String::new(), error.with("value", shown(value)).hint(hint)));
    }
    faults
}

/// Returns the path of a key below another, or of an item of a list: `[0].id`.
pub(crate) fn below(path: &str, key: &str) -> String {
    if path.is_empty() || key.starts_with('[') {
        format!("{path}{key}")
    } else {
        format!("{path}.{key}")
    }
}

/// Returns a value as shown in an error.
pub(crate) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Whether a value of that schema may contain a secret, including a misplaced one.
fn may_contain_secret(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map.iter().any(|(key, value)| {
            (key == "writeOnly" && *value == true) || may_contain_secret(value)
        }),
        Value::Array(items) => items.iter().any(may_contain_secret),
        _ => false,
    }
}

fn walk(value: &Value, schema: &Value, path: &str, faults: &mut Vec<(String, Error)>) {
    if !fits(value, schema) {
        faults.push((path.to_owned(), invalid_value(value, schema, path)));
        return;
    }
    match (value, schema.get("items")) {
        (Value::Object(map), _) => walk_object(map, schema, path, faults),
        (Value::Array(items), Some(schema)) => {
            for (at, item) in items.iter().enumerate() {
                walk(item, schema, &format!("{path}[{at}]"), faults);
            }
        }
        _ => {}
    }
}

fn invalid_value(value: &Value, schema: &Value, path: &str) -> Error {
    let names = names(schema);
    let error = Error::new(
        ErrorKind::Config,
        format!("invalid value for '{path}': expected {}", expected(schema)),
    )
    .with("value", if may_contain_secret(schema) { HIDDEN.to_owned() } else { shown(value) });
    match value.as_str().and_then(|text| nearest(text, names.iter().map(String::as_str))) {
        Some(name) => error.hint(format!("did you mean '{name}'?")),
        None => error.hint(SEE_SCHEMA),
    }
}

fn walk_object(
    map: &Map<String, Value>,
    schema: &Value,
    path: &str,
    faults: &mut Vec<(String, Error)>,
) {
    let Some(schema) = object_schema(schema) else { return };
    let empty = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    for (key, value) in map {
        let here = below(path, key);
        match (known.get(key), schema.get("additionalProperties")) {
            (Some(schema), _) | (None, Some(schema @ Value::Object(_))) => {
                walk(value, schema, &here, faults);
            }
            (None, Some(Value::Bool(false))) => {
                let error = unknown_key(&here, key, known);
                faults.push((here, error));
            }
            (None, _) => {}
        }
    }
}

/// Returns the schema itself, or the object among its alternatives.
fn object_schema(schema: &Value) -> Option<&Value> {
    if schema.get("properties").is_some() || schema.get("additionalProperties").is_some() {
        return Some(schema);
    }
    let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    alternatives.iter().find_map(object_schema)
}

fn unknown_key(path: &str, key: &str, known: &Map<String, Value>) -> Error {
    let error = Error::new(ErrorKind::Config, format!("unknown key '{path}'"));
    if let Some(found) = deeper(known, key, 3) {
        return error.hint(format!("did you mean '{found}'?"));
    }
    match nearest(key, known.keys().map(String::as_str)) {
        Some(name) => error.hint(format!("did you mean '{name}'?")),
        None => {
            let names: Vec<_> = known.keys().map(String::as_str).collect();
            error.hint(format!("known keys: {}", names.join(", ")))
        }
    }
}

/// Returns the path of a key of this name in one of these sections, at most `depth` levels below.
fn deeper(known: &Map<String, Value>, key: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    known.iter().find_map(|(name, schema)| {
        let inner = object_schema(schema)?.get("properties")?.as_object()?;
        let rest = match inner.contains_key(key) {
            true => key.to_owned(),
            false => deeper(inner, key, depth)?,
        };
        Some(format!("{name}.{rest}"))
    })
}

/// Returns the known name that is most similar to the given one, if any is similar.
#[must_use]
pub fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::damerau_levenshtein(name, given), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len().max(given.len()).div_ceil(2))
        .map(|(_, name)| name)
}
