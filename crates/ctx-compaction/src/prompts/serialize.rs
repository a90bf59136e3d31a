//! Serialises messages as text for a model to summarise, in pi's format.

use std::borrow::Cow;
use std::fmt::Write as _;

use ctx_core::text::{head, tail};
use ctx_core::{Block, Chars, Message, Role, Tokens, ToolCall};
use indexmap::IndexMap;
use serde_json::Value;
use serde_json::value::RawValue;

use ctx_facts::CitedMessage;

use super::without_markers;

/// The maximum length of a tool result in the serialised text (pi).
const TOOL_RESULT_MAX_CHARS: Chars = Chars(2_000);

/// What is serialised, and the length limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SerializeOptions {
    /// Whether the model's thinking is included. Default: no.
    pub thinking: bool,
    /// Whether `[e:ID]` precedes each part, so that it can be cited. Default: no.
    pub citations: bool,
    /// The maximum length of any other text and of each argument of a call; a call as a whole is at
    /// most twice as long. Default: unlimited.
    pub text_chars: Option<Chars>,
}

/// Serialises the messages as one text, parts separated by blank lines: `[User]: `, `[Assistant
/// thinking]: `, `[Assistant]: `, `[Assistant tool calls]: name(key=JSON, ...); ...`, `[Tool
/// result]: `. Commands of the user and messages of extensions are the user's, as for the model.
/// Images and blocks of unknown kinds are dropped.
///
/// Nothing is escaped: a caller that puts the text into a prompt must fence it.
///
/// ```
/// use ctx_compaction::{SerializeOptions, serialize};
/// use ctx_facts::CitedMessage;
/// use ctx_core::{Message, Role};
///
/// let said = CitedMessage {
///     id: "0000002a".into(),
///     message: Message::text(Role::User, "go on").into(),
///     pinned: false,
/// };
/// let options = SerializeOptions { citations: true, ..SerializeOptions::default() };
/// assert_eq!(serialize(&[said], &options), "[e:0000002a] [User]: go on");
/// ```
#[must_use]
pub fn serialize(messages: &[CitedMessage], options: &SerializeOptions) -> String {
    written(messages, options, |text| text)
}

/// Serialises the messages so that no text in them can pass for another message: no line begins
/// with what looks like a role marker. The check runs on the output, because joining or truncating
/// blocks can create a marker.
pub(crate) fn serialize_disarmed(messages: &[CitedMessage], options: &SerializeOptions) -> String {
    written(messages, options, |text| without_markers(&text).unwrap_or(text))
}

fn written(
    messages: &[CitedMessage],
    options: &SerializeOptions,
    finish: fn(String) -> String,
) -> String {
    let mut out = String::new();
    for cited in messages {
        for (label, text) in parts(&cited.message, options) {
            if !out.is_empty() {
                out.push_str("\n\n");
            }
            if options.citations {
                let _ = write!(out, "[e:{}] ", cited.id);
            }
            out.push_str(label);
            out.push_str(&finish(text));
        }
    }
    out
}

/// Returns the note that replaces a message that is too large to be summarised.
pub(crate) fn oversized_note(role: &Role, size: Tokens) -> String {
    let thousands = size.get().saturating_add(500) / 1_000;
    format!("[Large {role} (~{thousands}K tokens) omitted]")
}

const OF_BRANCH: &str = "The following is a summary of a branch that this conversation came back \
    from:\n\n<summary>\n";
const OF_HISTORY: &str = "The conversation history before this point was compacted into the \
    following summary:\n\n<summary>\n";

fn parts(message: &Message, options: &SerializeOptions) -> Vec<(&'static str, String)> {
    let cap = options.text_chars;
    let said = |text: String| bounded(text, cap);
    let mut parts: Vec<(&'static str, String)> = Vec::new();
    match message.role {
        Role::Assistant => {
            if options.thinking {
                parts.push(("[Assistant thinking]: ", said(joined(message, thinking, "\n"))));
            }
            parts.push(("[Assistant]: ", said(joined(message, text, "\n"))));
            let calls: Vec<String> =
                message.tool_calls().map(|call| call_text(call, cap)).collect();
            parts.push(("[Assistant tool calls]: ", calls.join("; ")));
        }
        Role::BranchSummary => {
            let text = said(message.plain_text());
            parts.push(("[User]: ", format!("{OF_BRANCH}{text}</summary>")));
        }
        Role::CompactionSummary => {
            let text = said(message.plain_text());
            parts.push(("[User]: ", format!("{OF_HISTORY}{text}\n</summary>")));
        }
        _ => parts.push(("[User]: ", said(joined(message, text, "")))),
    }
    for result in message.tool_results() {
        let texts: Vec<Cow<'_, str>> = result.content.iter().filter_map(text).collect();
        parts.push(("[Tool result]: ", cut_result(texts.concat(), TOOL_RESULT_MAX_CHARS)));
    }
    parts.retain(|(_, text)| !text.is_empty());
    parts
}

/// Joins the texts that `pick` extracts from the blocks.
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

/// Formats a call as `name(key=JSON, ...)`; arguments that are not an object are unchanged.
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

/// Formats a value like `JSON.stringify`, except for the form of numbers. A value that is nested
/// too deep to be parsed safely is unchanged.
fn call_value(value: &RawValue) -> String {
    let is_number = value.get().starts_with(|c: char| c == '-' || c.is_ascii_digit());
    match serde_json::from_str::<Value>(value.get()) {
        Ok(parsed) if !is_number => parsed.to_string(),
        _ => value.get().to_owned(),
    }
}

/// Truncates a tool result to its beginning and states how much was removed, in pi's words.
fn cut_result(text: String, most: Chars) -> String {
    let start = head(&text, most);
    if start.len() == text.len() {
        return text;
    }
    let more = Chars::of(&text).0 - Chars::of(start).0;
    format!("{start}\n\n[... {more} more characters truncated]")
}

/// Truncates a text to its beginning and end, two to one, as a request often comes at the end.
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

    fn said(message: Message) -> CitedMessage {
        CitedMessage { id: "0000002a".into(), message: Arc::new(message), pinned: false }
    }

    fn call(name: &str, arguments: &str) -> Block {
        Block::ToolCall(ToolCall::new("c", name, RawJson::from_text(arguments)))
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
    fn an_oversized_message_is_replaced_by_a_note() {
        let note = oversized_note(&Role::ToolResult, Tokens(84_500));
        assert_eq!(note, "[Large toolResult (~85K tokens) omitted]");
    }

    #[test]
    fn deep_nesting_is_written_as_it_is() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(50_000), "]".repeat(50_000));
        let text = pi(Message::new(Role::Assistant, vec![call("t", &deep)]));
        assert!(text.contains("[[[["));
    }
}
