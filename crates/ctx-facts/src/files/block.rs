//! File lists as blocks of a summary.

use std::collections::BTreeSet;

/// Writes `<tag>`, one path per line, `</tag>`.
pub(super) fn write(tag: &str, paths: &BTreeSet<String>) -> String {
    let mut out = format!("<{tag}>\n");
    for path in paths {
        out.push_str(&line(path));
        out.push('\n');
    }
    out.push_str(&format!("</{tag}>"));
    out
}

/// Returns the lines of every `<tag>` block; each tag is on a line of its own.
pub(super) fn lines(text: &str, tag: &str) -> BTreeSet<String> {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let mut inside = false;
    let mut lines = BTreeSet::new();
    for line in text.lines().map(str::trim) {
        if line == open {
            inside = true;
        } else if line == close {
            inside = false;
        } else if inside && !line.is_empty() {
            lines.insert(path(line));
        }
    }
    lines
}

fn line(path: &str) -> String {
    let plain = path.trim() == path
        && !path.starts_with('"')
        && !path.contains(|c: char| c.is_control() || c == '<' || c == '>');
    if plain {
        return path.to_owned();
    }
    let json = serde_json::Value::from(path).to_string();
    json.replace('<', "\\u003c").replace('>', "\\u003e")
}

fn path(line: &str) -> String {
    let json = line.starts_with('"').then(|| serde_json::from_str(line).ok()).flatten();
    json.unwrap_or_else(|| line.to_owned())
}
