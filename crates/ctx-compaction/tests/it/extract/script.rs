//! Sessions written as plain text.

use std::sync::Arc;

use ctx_core::{Block, Message, RawJson, Role, ToolCall, ToolResult};
use ctx_facts::CitedMessage;

/// A session with one message per line: `U:` the user, `A:` the agent, `A> name {..}` a call, `R:`
/// its result, `R!` a failed one. `\n` is a line break. Ids count from 1.
pub(crate) fn session(script: &str) -> Vec<CitedMessage> {
    let lines = script.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.enumerate().map(|(n, line)| said(n + 1, line)).collect()
}

fn said(n: usize, line: &str) -> CitedMessage {
    let (who, words) = line.split_at(2);
    let words = words.trim().replace("\\n", "\n");
    let message = match who {
        "U:" => Message::text(Role::User, words),
        "A:" => Message::text(Role::Assistant, words),
        "A>" => {
            let (name, arguments) = words.split_once(' ').unwrap();
            let call = ToolCall::new(format!("c{n}"), name, RawJson::from_text(arguments));
            Message::new(Role::Assistant, vec![Block::ToolCall(call)])
        }
        "R:" | "R!" => {
            // A result follows its call.
            let result = ToolResult {
                call_id: format!("c{}", n - 1).into(),
                name: None,
                content: vec![Block::text(words)],
                is_error: who == "R!",
            };
            Message::new(Role::ToolResult, vec![Block::ToolResult(result)])
        }
        other => panic!("{other}"),
    };
    CitedMessage { id: n.to_string().into(), message: Arc::new(message), pinned: false }
}
