//! The beginning of a message, for lists.

use ctx_core::{Block, Message};

/// The maximum length.
const CHARS: usize = 120;

/// Returns the first non-empty line of a message's content, or else its calls with the beginning of
/// their arguments.
#[must_use]
pub fn preview(message: &Message) -> String {
    let mut calls = Vec::new();
    for block in &message.blocks {
        let line = match block {
            Block::Text { text } => first_line(text),
            Block::ToolResult(result) => first_line(&result.plain_text()),
            Block::Bash(run) => first_line(&run.output).or_else(|| first_line(&run.command)),
            Block::Opaque { json } => first_line(json.as_str()),
            Block::ToolCall(call) => {
                let arguments = first_line(call.arguments.as_str()).unwrap_or_default();
                calls.push(format!("{} {arguments}", call.name));
                None
            }
            Block::Thinking { .. } | Block::Image(_) => None,
        };
        if let Some(line) = line {
            return line;
        }
    }
    calls.join(", ").chars().take(CHARS).collect()
}

fn first_line(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(CHARS).collect())
}

#[cfg(test)]
mod tests {
    use ctx_core::Role;

    use super::*;

    #[test]
    fn the_preview_is_the_first_line_with_text() {
        let said = Message::text(Role::User, "\n  \n  Look at this.\nAnd that.");
        assert_eq!(preview(&said), "Look at this.");
        assert_eq!(preview(&Message::text(Role::User, "wörd".repeat(99))).chars().count(), CHARS);
        assert_eq!(preview(&Message::text(Role::User, " \n")), "");
    }

    #[test]
    fn the_preview_of_a_result_is_its_first_line() {
        assert_eq!(preview(&Message::tool_result("c1", "\nrun 1: ok\nrun 2: ok")), "run 1: ok");
    }
}
