//! Unknown keys and values of the wrong kind are errors: a value is walked along its schema.

use ctx_core::{Error, ErrorKind};
use serde_json::{Map, Value, json};

use super::expected::{expected, fits, names};

/// What every error about a key points to.
pub(super) const SEE_SCHEMA: &str = "`ctx config schema` prints what each key takes";

/// What stands for a value that may be a secret.
const HIDDEN: &str = "(hidden)";

/// Longer values are not repeated whole in errors.
const LONGEST_SHOWN: usize = 60;

/// An object schema that allows no key yet.
pub(super) fn object() -> Value {
    json!({
        "type": "object",
        "properties": {},
        "additionalProperties": false,
    })
}

/// Puts a section's schema at a dotted path below `root`.
pub(super) fn place(root: &mut Value, path: &str, schema: Value) {
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

/// Keys that the schema does not know, and values that it does not take: the path of each, and what is
/// wrong there.
pub(super) fn faults(value: &Value, schema: &Value) -> Vec<(String, Error)> {
    let mut faults = Vec::new();
    if value.is_object() {
        walk(value, schema, "", &mut faults);
    } else {
        let error = Error::new(ErrorKind::Config, "the configuration is not an object");
        let hint = "it is one object: { profile: \"openclaw\" }";
        faults.push((String::new(), error.with("value", shown(value)).hint(hint)));
    }
    faults
}

/// The path of a key below another, or of an item of a list: `[0].id`.
pub(super) fn below(path: &str, key: &str) -> String {
    if path.is_empty() || key.starts_with('[') {
        format!("{path}{key}")
    } else {
        format!("{path}.{key}")
    }
}

/// A value as an error repeats it.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text,
    }
}

/// Whether a secret may stand in a value of that schema, as it may where it was misplaced.
fn holds_secret(schema: &Value) -> bool {
    match schema {
        Value::Object(map) => map
            .iter()
            .any(|(key, value)| (key == "writeOnly" && *value == true) || holds_secret(value)),
        Value::Array(items) => items.iter().any(holds_secret),
        _ => false,
    }
}

fn walk(value: &Value, schema: &Value, path: &str, faults: &mut Vec<(String, Error)>) {
    if !fits(value, schema) {
        faults.push((path.to_owned(), wrong_value(value, schema, path)));
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

fn wrong_value(value: &Value, schema: &Value, path: &str) -> Error {
    let names = names(schema);
    let error = Error::new(
        ErrorKind::Config,
        format!("wrong value for '{path}': expected {}", expected(schema)),
    )
    .with("value", if holds_secret(schema) { HIDDEN.to_owned() } else { shown(value) });
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

/// The schema itself, or the object among its alternatives.
fn object_schema(schema: &Value) -> Option<&Value> {
    if schema.get("properties").is_some() || schema.get("additionalProperties").is_some() {
        return Some(schema);
    }
    let alternatives = schema.get("anyOf").or_else(|| schema.get("oneOf"))?.as_array()?;
    alternatives.iter().find_map(object_schema)
}

fn unknown_key(path: &str, key: &str, known: &Map<String, Value>) -> Error {
    let error = Error::new(ErrorKind::Config, format!("unknown key '{path}'"));
    match nearest(key, known.keys().map(String::as_str)) {
        Some(name) => error.hint(format!("did you mean '{name}'?")),
        None => {
            let names: Vec<_> = known.keys().map(String::as_str).collect();
            error.hint(format!("known here: {}", names.join(", ")))
        }
    }
}

/// The known name that is most like the one given, if any is.
pub(crate) fn nearest<'a>(given: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|name| (strsim::damerau_levenshtein(name, given), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len().max(given.len()).div_ceil(2))
        .map(|(_, name)| name)
}
