//! JSON with comments.

use ctx_core::Result;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use serde_json::Value;

use super::{malformed, not_a_table};

fn parse(text: &str) -> Result<CstRootNode> {
    let options = ParseOptions { allow_missing_commas: false, ..ParseOptions::default() };
    CstRootNode::parse(text, &options).map_err(|cause| malformed("JSON", cause))
}

pub(super) fn get(text: &str, key: &[String]) -> Result<Option<Value>> {
    let root = parse(text)?;
    let Some((last, tables)) = key.split_last() else {
        return Ok(root.value().and_then(|value| value.to_serde_value()));
    };
    let mut at = root.object_value();
    for name in tables {
        at = at.and_then(|table| table.object_value(name));
    }
    Ok(at.and_then(|table| table.get(last)?.to_serde_value()))
}

pub(super) fn set(text: &str, key: &[String], value: Option<&Value>) -> Result<String> {
    let root = parse(text)?;
    match value {
        Some(value) => insert(&root, key, value)?,
        None => remove(&root, key),
    }
    let mut edited = root.to_string();
    if text.trim().is_empty() && !edited.ends_with('\n') {
        edited.push('\n');
    }
    Ok(edited)
}

fn insert(root: &CstRootNode, key: &[String], value: &Value) -> Result<()> {
    let Some((last, tables)) = key.split_last() else { return Ok(()) };
    let mut at = root.object_value_or_create().ok_or_else(|| not_a_table(&[]))?;
    for (depth, name) in tables.iter().enumerate() {
        let table = at.object_value_or_create(name);
        at = table.ok_or_else(|| not_a_table(&key[..=depth]))?;
        at.ensure_multiline();
    }
    match at.get(last) {
        Some(property) => property.set_value(input(value)),
        None => {
            at.ensure_multiline();
            at.append(last, input(value));
        }
    }
    Ok(())
}

fn remove(root: &CstRootNode, key: &[String]) {
    let Some((last, tables)) = key.split_last() else { return };
    let mut path: Vec<CstObject> = root.object_value().into_iter().collect();
    for name in tables {
        path.extend(path.last().and_then(|table| table.object_value(name)));
    }
    if path.len() != key.len() {
        return;
    }
    if let Some(property) = path.last().and_then(|table| table.get(last)) {
        property.remove();
    }
    for (table, name) in path.iter().zip(tables).rev() {
        if let Some(property) = table.get(name)
            && property.object_value().is_some_and(|inner| inner.children().iter().all(is_blank))
        {
            property.remove();
        }
    }
}

/// Whether a part of a table is layout or punctuation. Comments are kept.
fn is_blank(node: &jsonc_parser::cst::CstNode) -> bool {
    node.is_token() || node.is_whitespace() || node.is_newline()
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(value) => CstInputValue::Number(value.to_string()),
        Value::String(value) => CstInputValue::String(value.clone()),
        Value::Array(values) => CstInputValue::Array(values.iter().map(input).collect()),
        Value::Object(values) => {
            let inputs = values.iter().map(|(name, value)| (name.clone(), input(value)));
            CstInputValue::Object(inputs.collect())
        }
    }
}
