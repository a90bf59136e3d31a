//! Messages as text for a model to summarise, in pi's form.

use std::borrow::Cow;
use std::fmt::Write as _;

use ctx_core::text::{head, tail};
use ctx_core::{Block, Chars, Message, Role, Tokens, ToolCall};
use indexmap::IndexMap;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Said;
use crate::prompts::without_markers;

/// How long a tool result may be in what is summarised (pi).
pub const TOOL_RESULT_MAX_CHARS: Chars = Chars(2_000);

/// What is written, and how much of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SerializeOptions {
    /// Whether the model's thinking is written. Default: no.
    pub thinking: bool,
    /// Whether `[e:ID]` stands before each part, so that it can be cited. Default: no.
    pub citations: bool,
    /// How long a tool result may be. Default: [`TOOL_RESULT_MAX_CHARS`].
    pub result_chars: Chars,
    /// How long any other text may be, and each argument of a call; a call as a whole is at most
    /// twice as long. Default: as long as it is.
    pub text_chars: Option<Chars>,
}

impl Default for SerializeOptions {
    fn default() -> Self {
        Self {
            thinking: false,
            citations: false,
            result_chars: TOOL_RESULT_MAX_CHARS,
            text_chars: None,
        }
    }
}

/// The messages as one text, parts separated by blank lines: `[User]: `, `[Assistant thinking]: `,
/// `[Assistant]: `, `[Assistant tool calls]: name(key=JSON, ...); ...`, `[Tool result]: `. Commands
/// of the user and messages of extensions are the user's, as for the model. Pictures and blocks of
/// unknown kinds are left out.
///
/// Nothing is escaped: whoever puts the text into a prompt fences it.
///
/// ```
/// use ctx_compaction::{Said, SerializeOptions, serialize};
/// use ctx_core::{Message, Role};
///
/// let said = Said {
///     id: "0000002a".into(),
///     message: Message::text(Role::User, "go on").into(),
///     pinned: false,
/// };
/// let options = SerializeOptions { citations: true, ..SerializeOptions::default() };
/// assert_eq!(serialize(&[said], &options), "[e:0000002a] [User]: go on");
/// ```
#[must_use]
pub fn serialize(said: &[Said], options: &SerializeOptions) -> String {
    written(said, options, |text| text)
}

/// The same with nothing in a message that could pass for another: what looks like a role marker
/// does not begin a line. Looked at is what is written, not what it is made of, because a marker can
/// come about where blocks are joined or cut.
pub(crate) fn serialize_disarmed(said: &[Said], options: &SerializeOptions) -> String {
    written(said, options, |text| without_markers(&text).unwrap_or(text))
}

fn written(said: &[Said], options: &SerializeOptions, finish: fn(String) -> String) -> String {
    let mut out = String::new();
    for said in said {
        for (label, text) in parts(&said.message, options) {
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            if options.citations {
                let _ = write!(out, "[e:{}] ", said.id);
            }
            out.push_str(label);
            out.push_str(&finish(text));
        }
    }
    out
}

/// What stands for a message that is too large to be summarised.
///
/// ```
/// use ctx_compaction::oversized_note;
/// use ctx_core::{Role, Tokens};
///
/// assert_eq!(oversized_note(&Role::ToolResult, Tokens(84_500)), "[Large toolResult (~85K tokens) omitted]");
/// ```
#[must_use]
pub fn oversized_note(role: &Role, size: Tokens) -> String {
    let thousands = size.get().saturating_add(500) / 1_000;
    format!("[Large {role} (~{thousands}K tokens) omitted]")
}

fn parts(message: &Message, options: &SerializeOptions) -> Vec<(&'static str, String)> {
    let cap = options.text_chars;
    let mut parts: Vec<(&'static str, String)> = Vec::new();
    match message.role {
        Role::Assistant => {
            if options.thinking {
                parts.push((
                    "[Assistant thinking]: ",
                    bounded(joined(message, thinking, "\n"), cap),
                ));
            }
            parts.push(("[Assistant]: ", bounded(joined(message, text, "\n"), cap)));
            let calls: Vec<String> =
                message.tool_calls().map(|call| call_text(call, cap)).collect();
            parts.push(("[Assistant tool calls]: ", calls.join("; ")));
        }
        Role::BranchSummary => {
            let text = bounded(message.plain_text(), cap);
            parts.push((
                "[User]: ",
                format!(
                    "The following is a summary of a branch that this conversation came back \
                     from:\n\n<summary>\n{text}</summary>"
                ),
            ));
        }
        Role::CompactionSummary => {
            let text = bounded(message.plain_text(), cap);
            parts.push((
                "[User]: ",
                format!(
                    "The conversation history before this point was compacted into the \
                     following summary:\n\n<summary>\n{text}\n</summary>"
                ),
            ));
        }
        _ => parts.push(("[User]: ", bounded(joined(message, text, ""), cap))),
    }
    for result in message.tool_results() {
        let texts: Vec<Cow<'_, str>> = result.content.iter().filter_map(text).collect();
        parts.push(("[Tool result]: ", cut_result(texts.concat(), options.result_chars)));
    }
    parts.retain(|(_, text)| !text.is_empty());
    parts
}

/// The texts that `pick` finds among the blocks.
fn joined(message: &Message, pick: fn(&Block) -> Option<Cow<'_, str>>, separator: &str) -> String {
    let texts: Vec<Cow<'_, str>> = message.blocks.iter().filter_map(pick).collect();
    texts.join(separator)
}

fn text(block: &Block) -> Option<Cow<'_, str>> {
    match block {
        Block::Text { text } => Some(Cow::Borrowed(text)),
        Block::Bash(run) => Some(Cow::Owned(run.as_text())),
        _ => None,
    }
}

fn thinking(block: &Block) -> Option<Cow<'_, str>> {
    match block {
        Block::Thinking { thinking, .. } => Some(Cow::Borrowed(thinking)),
        _ => None,
    }
}

/// `name(key=JSON, ...)`; arguments that are no object, as they are.
fn call_text(call: &ToolCall, cap: Option<Chars>) -> String {
    let json = call.arguments.as_str();
    let arguments = match serde_json::from_str::<IndexMap<String, &RawValue>>(json) {
        Ok(fields) => {
            let fields = fields
                .iter()
                .map(|(key, value)| format!("{key}={}", bounded(call_value(value), cap)));
            fields.collect::<Vec<_>>().join(", ")
        }
        Err(_) => bounded(json.to_owned(), cap),
    };
    let whole = cap.map(|cap| Chars(cap.0.saturating_mul(2)));
    bounded(format!("{}({arguments})", call.name), whole)
}

/// A value as `JSON.stringify` prints it, but for the form of numbers. A value that is nested too
/// deep to be read safely stays as it was recorded.
fn call_value(value: &RawValue) -> String {
    let is_number = value.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
    match serde_json::from_str::<Value>(value.get()) {
        Ok(parsed) if !is_number => parsed.to_string(),
        _ => value.get().to_owned(),
    }
}

/// The beginning of a tool result, and how much more there was, in pi's words.
fn cut_result(text: String, most: Chars) -> String {
    let start = head(&text, most);
    if start.len() == text.len() {
        return text;
    }
    let more = Chars::of(&text).0 - Chars::of(start).0;
    format!("{start}\n\n[... {more} more characters truncated]")
}

/// Beginning and end of a text, two to one: what somebody wants often stands at its end.
fn bounded(text: String, most: Option<Chars>) -> String {
    let Some(most) = most.filter(|most| text.len() > most.0 as usize) else { return text };
    let all = Chars::of(&text);
    if all <= most {
        return text;
    }
    let first = most.0 / 3 * 2;
    let (start, end) = (head(&text, Chars(first)), tail(&text, Chars(most.0 - first)));
    let left_out = all.0 - Chars::of(start).0 - Chars::of(end).0;
    format!("{start}\n[... {left_out} characters left out ...]\n{end}")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ctx_core::{BashRun, RawJson};

    use super::*;

    fn said(message: Message) -> Said {
        Said { id: "0000002a".into(), message: Arc::new(message), pinned: false }
    }

    fn call(name: &str, arguments: &str) -> Block {
        Block::ToolCall(ToolCall {
            id: "c".into(),
            name: name.into(),
            arguments: RawJson::from_text(arguments),
            spelling: Default::default(),
        })
    }

    fn pi(message: Message) -> String {
        serialize(&[said(message)], &SerializeOptions { thinking: true, ..Default::default() })
    }

    #[test]
    fn each_speaker_is_written_as_pi_does() {
        let thought = Block::Thinking { thinking: "hm".into(), signature: None };
        let blocks = vec![Block::text("one"), thought, call("ls", "{}"), Block::text("two")];
        let run = BashRun { command: "ls".into(), output: "a".into(), ..BashRun::default() };
        let cases = [
            (Message::text(Role::User, "hi"), "[User]: hi"),
            (Message::text(Role::Custom, "note"), "[User]: note"),
            (Message::text(Role::Assistant, ""), ""),
            (Message::new(Role::User, vec![Block::text("a"), Block::text("b")]), "[User]: ab"),
            (
                Message::new(Role::Assistant, blocks),
                "[Assistant thinking]: hm\n\n[Assistant]: one\ntwo\n\n[Assistant tool calls]: ls()",
            ),
            (
                Message::new(Role::BashExecution, vec![Block::Bash(run)]),
                "[User]: Ran `ls`\n```\na\n```",
            ),
            (Message::tool_result("c", "out"), "[Tool result]: out"),
            (Message::tool_result("c", ""), ""),
            (
                Message::text(Role::BranchSummary, "left"),
                "[User]: The following is a summary of a branch that this conversation came back \
                 from:\n\n<summary>\nleft</summary>",
            ),
        ];
        for (message, expected) in cases {
            assert_eq!(pi(message), expected);
        }
    }

    #[test]
    fn arguments_are_printed_as_json_stringify_does() {
        let cases = [
            (r#"{"path":"a.rs", "n": 1.50}"#, r#"t(path="a.rs", n=1.50)"#),
            (r#"{"a": {"b": [1, "\u00e9\/"]}}"#, r#"t(a={"b":[1,"é/"]})"#),
            (r#"{"a":1,"b":2,"a":3}"#, "t(a=3, b=2)"),
            ("[1, 2]", "t([1, 2])"),
            ("not JSON", "t(not JSON)"),
        ];
        for (json, expected) in cases {
            let message = Message::new(Role::Assistant, vec![call("t", json)]);
            assert_eq!(pi(message), format!("[Assistant tool calls]: {expected}"));
        }
    }

    #[test]
    fn results_are_cut_to_two_thousand_characters() {
        let text = pi(Message::tool_result("c", "😀".repeat(1_500)));
        let expected = "😀".repeat(1_000);
        assert_eq!(
            text,
            format!("[Tool result]: {expected}\n\n[... 1000 more characters truncated]")
        );
        let whole = "x".repeat(2_000);
        assert_eq!(pi(Message::tool_result("c", &*whole)), format!("[Tool result]: {whole}"));
    }

    #[test]
    fn other_texts_are_bounded_where_a_cap_is_given() {
        let options =
            SerializeOptions { text_chars: Some(Chars(90)), citations: true, ..Default::default() };
        let long = "abc".repeat(1_000);
        let write = call("write", &format!(r#"{{"path":"a.rs","content":"{long}"}}"#));
        let messages = [
            Message::text(Role::User, &*long),
            Message::new(Role::Assistant, vec![Block::text(&*long), write]),
        ];
        let text = serialize(&messages.map(said), &options);
        assert!(text.len() < 600, "{text}");
        assert_eq!(text.matches("[e:0000002a] [").count(), 3);
        assert!(text.contains("abc\n[... 2910 characters left out ...]\nabc"));
        assert!(text.contains(r#"write(path="a.rs", content="abc"#));
    }

    #[test]
    fn deep_nesting_is_written_as_it_is() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
        let text = pi(Message::new(Role::Assistant, vec![call("t", &deep)]));
        assert!(text.contains("[[[["));
    }
}
