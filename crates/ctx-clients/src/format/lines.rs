//! Files with a name and a value in each line: `.env`, and YAML as far as its top level.

use serde_json::Value;

pub(super) fn get(text: &str, separator: char, key: &[String]) -> Option<Value> {
    let [name] = key else { return None };
    // The last one applies.
    let value = text.lines().rev().find_map(|line| value_of(line, separator, name))?;
    let (value, _) = split_comment(value);
    let quoted = |quote| value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
    Some(quoted('"').or_else(|| quoted('\'')).unwrap_or(value).into())
}

/// Splits a value from the comment after it.
fn split_comment(value: &str) -> (&str, &str) {
    let quote = value.chars().next().filter(|first| ['"', '\''].contains(first));
    let end = match quote {
        Some(quote) => value[1..].find(quote).map(|end| end + 2),
        None => value.find(" #"),
    };
    let (value, rest) = value.split_at(end.unwrap_or(value.len()));
    (value.trim_end(), rest.trim())
}

pub(super) fn set(text: &str, separator: char, key: &[String], value: Option<&Value>) -> String {
    let [name] = key else { return text.to_owned() };
    let break_ = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let space = if separator == ':' { " " } else { "" };
    let line = value.map(|value| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("{name}{separator}{space}{value}{break_}")
    });
    let mut is_set = false;
    let mut edited = String::new();
    for old in text.split_inclusive('\n') {
        if value_of(old, separator, name).is_none() {
            edited.push_str(old);
            continue;
        }
        // Only one of several stays.
        if let Some(line) = line.as_deref().filter(|_| !is_set) {
            let is_exported = old.trim_start().starts_with("export ");
            let (_, comment) = value_of(old, separator, name).map_or(("", ""), split_comment);
            edited.push_str(if is_exported { "export " } else { "" });
            edited.push_str(line.trim_end());
            edited.push_str(if comment.is_empty() { "" } else { " " });
            edited.push_str(comment);
            edited.push_str(break_);
            is_set = true;
        }
    }
    if let Some(line) = line.filter(|_| !is_set) {
        if !edited.is_empty() && !edited.ends_with('\n') {
            edited.push_str(break_);
        }
        edited.push_str(&line);
    }
    edited
}

/// Returns the value in a line, if it has this name. In YAML an indented name is a deeper one.
fn value_of<'a>(line: &'a str, separator: char, name: &str) -> Option<&'a str> {
    let line = match separator {
        '=' => {
            let line = line.trim_start();
            line.strip_prefix("export ").unwrap_or(line).trim_start()
        }
        _ => line,
    };
    let rest = line.strip_prefix(name)?.trim_start_matches([' ', '\t']);
    Some(rest.strip_prefix(separator)?.trim())
}
