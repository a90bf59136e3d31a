//! Converts messages to text, to look up facts.

use ctx_core::{Block, ContextView, Message, Result};
use serde_json::Value;

/// Returns all text of a request: its messages, the arguments of its calls, its results.
pub(super) fn of_request(view: &ContextView) -> Result<String> {
    let mut out = String::new();
    for node in view.nodes().iter().filter(|node| node.is_live()) {
        add_message(&*node.message()?, &mut out);
    }
    Ok(out)
}

/// Adds the text of a message, each block on its own lines. Thinking is omitted, because providers
/// drop the thinking of earlier turns.
pub(super) fn add_message(message: &Message, out: &mut String) {
    for block in &message.blocks {
        add_block(block, out);
    }
}

/// Adds the text of a message like [`add_message`], but of a call only the texts in its arguments.
/// Names of tools and parameters, numbers and switches are not added: the tools define them.
pub(super) fn add_said(message: &Message, out: &mut String) {
    for block in &message.blocks {
        match block {
            Block::ToolCall(call) => {
                add_texts(&serde_json::from_str(call.arguments.as_str()).unwrap_or_default(), out);
            }
            other => add_block(other, out),
        }
    }
}

fn add_texts(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => add_line(text, out),
        Value::Array(values) => values.iter().for_each(|value| add_texts(value, out)),
        Value::Object(fields) => fields.values().for_each(|value| add_texts(value, out)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn add_block(block: &Block, out: &mut String) {
    match block {
        Block::Text { text } => add_line(text, out),
        Block::ToolCall(call) => {
            add_line(&call.name, out);
            match serde_json::from_str(call.arguments.as_str()) {
                Ok(value) => add_value(&value, out),
                Err(_) => add_line(call.arguments.as_str(), out),
            }
        }
        // Results occur only in messages, so the recursion is one level deep.
        Block::ToolResult(result) => {
            for block in &result.content {
                match block {
                    Block::Text { text } => add_line(text, out),
                    Block::Opaque { json } => add_line(json.as_str(), out),
                    _ => {}
                }
            }
        }
        Block::Bash(run) => {
            add_line(&run.command, out);
            add_line(&run.output, out);
        }
        Block::Opaque { json } => add_line(json.as_str(), out),
        Block::Thinking { .. } | Block::Image(_) => {}
    }
}

/// The recursion is bounded: the parser rejects values nested deeper than 128.
fn add_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => {}
        Value::Bool(_) | Value::Number(_) => add_line(&value.to_string(), out),
        Value::String(text) => add_line(text, out),
        Value::Array(values) => values.iter().for_each(|value| add_value(value, out)),
        Value::Object(fields) => {
            for (name, value) in fields {
                add_line(name, out);
                add_value(value, out);
            }
        }
    }
}

fn add_line(line: &str, out: &mut String) {
    out.push_str(line);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use ctx_core::{RawJson, Role, ToolCall};

    use super::*;

    #[test]
    fn arguments_are_added_without_json_escapes() {
        let call = |arguments: &str| {
            let call = ToolCall::new("1", "write", RawJson::from_text(arguments));
            let mut out = String::new();
            add_message(&Message::new(Role::Assistant, vec![Block::ToolCall(call)]), &mut out);
            out
        };
        let told = call(r#"{"path":"src/a.rs","lines":["say \"hi\"",7]}"#);
        assert_eq!(told, "write\npath\nsrc/a.rs\nlines\nsay \"hi\"\n7\n");
        assert_eq!(call("{no json"), "write\n{no json\n");
    }

    #[test]
    fn the_names_of_parameters_are_not_added() {
        let arguments = r#"{"file_path":"src/a.rs","limit":2000,"todos":[{"content":"go on"}]}"#;
        let call = ToolCall::new("1", "Read", RawJson::from_text(arguments));
        let mut out = String::new();
        add_said(&Message::new(Role::Assistant, vec![Block::ToolCall(call)]), &mut out);
        assert_eq!(out, "src/a.rs\ngo on\n");
    }
}
