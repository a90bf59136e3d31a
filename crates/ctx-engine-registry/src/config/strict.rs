//! Unknown keys are errors: a value is walked along its schema.

use ctx_core::{Error, ErrorKind, Result};
use serde_json::{Map, Value, json};

/// An object schema that allows no key yet.
pub(super) fn object(description: &str) -> Value {
    json!({
        "type": "object",
        "description": description,
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
        at = properties.entry(key).or_insert_with(|| object(""));
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

/// Refuses keys that the schema does not know.
pub(super) fn check(value: &Value, schema: &Value) -> Result<()> {
    if !value.is_object() {
        return Err(Error::new(ErrorKind::Config, "the configuration is not an object"));
    }
    walk(value, schema, "")
}

fn walk(value: &Value, schema: &Value, path: &str) -> Result<()> {
    check_shape(value, schema, path)?;
    match value {
        Value::Object(map) => walk_object(map, schema, path),
        Value::Array(items) => match schema.get("items") {
            Some(schema) => items
                .iter()
                .enumerate()
                .try_for_each(|(at, item)| walk(item, schema, &format!("{path}[{at}]"))),
            None => Ok(()),
        },
        _ => Ok(()),
    }
}

/// A section is looked up along a path of objects: anything else on the way would hide it.
fn check_shape(value: &Value, schema: &Value, path: &str) -> Result<()> {
    if value.is_object() || schema.get("type").is_none_or(|t| t != "object") {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Config, format!("wrong value for '{path}': it takes an object"))
        .hint("`ctx config schema` prints what each key takes"))
}

fn walk_object(map: &Map<String, Value>, schema: &Value, path: &str) -> Result<()> {
    let Some(schema) = object_schema(schema) else { return Ok(()) };
    let empty = Map::new();
    let known = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    for (key, value) in map {
        let here = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        match (known.get(key), schema.get("additionalProperties")) {
            (Some(schema), _) => walk(value, schema, &here)?,
            (None, Some(schema @ Value::Object(_))) => walk(value, schema, &here)?,
            (None, Some(Value::Bool(false))) => return Err(unknown_key(&here, key, known)),
            (None, _) => {}
        }
    }
    Ok(())
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
    let nearest = known
        .keys()
        .map(|name| (strsim::damerau_levenshtein(name, key), name))
        .min()
        .filter(|(distance, name)| *distance <= name.len().max(key.len()).div_ceil(2));
    match nearest {
        Some((_, name)) => error.hint(format!("did you mean '{name}'?")),
        None => {
            let names: Vec<_> = known.keys().map(String::as_str).collect();
            error.hint(format!("known here: {}", names.join(", ")))
        }
    }
}
