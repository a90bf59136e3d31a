//! TOML.

use ctx_core::Result;
use serde_json::Value;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value as item};

use super::{malformed, not_a_table};

fn parse(text: &str) -> Result<DocumentMut> {
    text.parse().map_err(|cause: toml_edit::TomlError| {
        let before = cause.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        malformed("TOML", format!("{}, in line {line}", cause.message()))
    })
}

pub(super) fn get(text: &str, key: &[String]) -> Result<Option<Value>> {
    let document = parse(text)?;
    let mut at = document.as_item();
    for name in key {
        match at.as_table_like().and_then(|table| table.get(name)) {
            Some(found) => at = found,
            None => return Ok(None),
        }
    }
    Ok(Some(read(at)))
}

pub(super) fn set(text: &str, key: &[String], value: Option<&Value>) -> Result<String> {
    let mut document = parse(text)?;
    match value {
        Some(value) => insert(document.as_table_mut(), key, 0, value)?,
        None => remove(document.as_table_mut(), key),
    }
    let mut edited = document.to_string();
    // The library writes lines that end with LF.
    if text.contains("\r\n") {
        edited = edited.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    Ok(edited)
}

fn insert(table: &mut dyn TableLike, key: &[String], depth: usize, value: &Value) -> Result<()> {
    let Some(name) = key.get(depth) else { return Ok(()) };
    if depth + 1 == key.len() {
        let mut written = write(value);
        if let (Some(old), Some(new)) =
            (table.get(name).and_then(Item::as_value), written.as_value_mut())
        {
            *new.decor_mut() = old.decor().clone();
        }
        match table.get_mut(name) {
            // The comments before the key are kept.
            Some(found) => *found = written,
            None => drop(table.insert(name, written)),
        }
        return Ok(());
    }
    let inner = table.entry(name).or_insert_with(|| {
        let mut parent = Table::new();
        // A table that has only tables needs no header.
        parent.set_implicit(true);
        Item::Table(parent)
    });
    let inner = inner.as_table_like_mut().ok_or_else(|| not_a_table(&key[..=depth]))?;
    insert(inner, key, depth + 1, value)
}

fn remove(table: &mut dyn TableLike, key: &[String]) {
    let Some((name, rest)) = key.split_first() else { return };
    if rest.is_empty() {
        table.remove(name);
    } else if let Some(inner) = table.get_mut(name).and_then(Item::as_table_like_mut) {
        remove(inner, rest);
        if inner.is_empty() {
            table.remove(name);
        }
    }
}

fn read(found: &Item) -> Value {
    if let Some(text) = found.as_str() {
        return text.into();
    }
    if let Some(values) = found.as_array() {
        let texts = values
            .iter()
            .map(|value| value.as_str().map_or_else(|| value.to_string().into(), Value::from));
        return texts.collect();
    }
    match found.as_table_like() {
        Some(table) => table.iter().map(|(name, inner)| (name.to_owned(), read(inner))).collect(),
        None => found.to_string().trim().into(),
    }
}

fn write(value: &Value) -> Item {
    match value {
        Value::Bool(value) => item(*value),
        Value::Number(value) if value.is_i64() => item(value.as_i64().unwrap_or_default()),
        Value::String(value) => item(value.as_str()),
        Value::Array(values) => item(values.iter().filter_map(Value::as_str).collect::<Array>()),
        Value::Object(values) => {
            let items = values.iter().map(|(name, value)| (name.as_str(), write(value)));
            Item::Table(items.collect())
        }
        other => item(other.to_string()),
    }
}
