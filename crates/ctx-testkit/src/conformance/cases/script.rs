//! The messages of the suite's sessions.

use std::sync::Arc;

use ctx_core::{Block, Entry, Message, RawJson, Role, ToolCall};

use crate::Sample;

/// A system prompt.
pub(super) fn system() -> Message {
    Message::text(Role::System, "You are a coding agent. Mind the tests.")
}

/// A user message.
pub(super) fn ask(text: impl Into<String>) -> Message {
    Message::text(Role::User, text)
}

/// An assistant message.
pub(super) fn answer(text: impl Into<String>) -> Message {
    Message::text(Role::Assistant, text)
}

/// A tool call.
pub(super) fn call(id: impl Into<String>) -> Message {
    let call = ToolCall::new(id.into(), "read", RawJson::from_text(r#"{"path":"src/main.rs"}"#));
    Message::new(Role::Assistant, vec![Block::ToolCall(call)])
}

/// A turn: a question, a tool call with a result of this many characters, an answer.
pub(in crate::conformance) fn turn(n: usize, chars: usize) -> [Message; 4] {
    let id = format!("call_{n}");
    let line = format!("line {n}: let value = compute(input, {n})?;\n");
    [
        ask(format!("please look at part {n}, and mind the tests")),
        call(&*id),
        Message::tool_result(id, line.repeat(chars / line.len() + 1)),
        answer(format!("part {n} is done: src/part_{n}.rs now returns an error")),
    ]
}

/// A session of about this size, turn by turn, that ends with a question.
pub(super) fn session(messages: usize, tokens: usize) -> Vec<Arc<Entry>> {
    let mut said = vec![system()];
    said.extend(Sample { messages, tokens, calls_per_turn: 3 }.messages());
    // The sample may end in the middle of a turn, with unfinished calls.
    said.push(ask("go on with what is left"));
    crate::entries(said)
}
