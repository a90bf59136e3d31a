//! Sessions of a given size and shape.

use std::sync::Arc;

use ctx_core::{Block, Entry, Message, RawJson, Role, Timestamp, ToolCall};

/// The shape of a generated session: occasional questions, calls with results in between, an answer
/// at the end of each turn.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Number of messages.
    pub messages: usize,
    /// Number of tokens, as characters divided by four; most are in tool results.
    pub tokens: usize,
    /// Number of calls between a question and its answer.
    pub calls_per_turn: usize,
}

impl Default for Sample {
    fn default() -> Self {
        Self { messages: 1_000, tokens: 200_000, calls_per_turn: 9 }
    }
}

impl Sample {
    /// Returns the messages, oldest first, with one minute of session time per ten messages.
    pub fn messages(&self) -> Vec<Message> {
        let per_turn = self.calls_per_turn * 2 + 2;
        let result_chars = (self.tokens * 4 / self.messages.max(1)) * 2;
        (0..self.messages).map(|n| self.message(n, n % per_turn, result_chars)).collect()
    }

    fn message(&self, n: usize, place: usize, result_chars: usize) -> Message {
        let last = self.calls_per_turn * 2 + 1;
        let mut message = match place {
            0 => Message::text(Role::User, format!("please look at part {n}, and mind the tests")),
            place if place == last => Message::text(Role::Assistant, format!("part {n} is done")),
            place if place % 2 == 1 => Message::new(Role::Assistant, vec![call(n)]),
            _ => Message::tool_result(id(n - 1), filler(n, result_chars)),
        };
        message.meta.timestamp = Some(Timestamp(1_767_600_000_000 + n as i64 * 6_000));
        message
    }
}

/// Returns the messages as entries whose ids are ordinals.
pub fn entries(messages: Vec<Message>) -> Vec<Arc<Entry>> {
    messages
        .into_iter()
        .enumerate()
        .map(|(n, message)| Arc::new(Entry::in_memory(format!("{n:08x}"), message)))
        .collect()
}

fn id(n: usize) -> String {
    format!("call_{n}")
}

fn call(n: usize) -> Block {
    Block::ToolCall(ToolCall::new(
        id(n),
        "read",
        RawJson::from_text(format!(r#"{{"path":"src/part_{n}.rs"}}"#)),
    ))
}

/// Returns lines that look like source code and differ in every part.
fn filler(n: usize, chars: usize) -> String {
    let mut text = String::with_capacity(chars + 80);
    let mut line = 0;
    while text.len() < chars {
        line += 1;
        text.push_str(&format!("{line:>4}    let value_{line} = compute({n}, {line});\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use ctx_core::Counter;

    use super::*;

    #[test]
    fn a_sample_has_the_requested_size() {
        let messages = Sample::default().messages();
        let tokens: u64 = messages.iter().map(|m| Counter::default().message(m).get()).sum();
        assert_eq!(messages.len(), 1_000);
        assert!((150_000..250_000).contains(&tokens), "{tokens}");
    }
}
