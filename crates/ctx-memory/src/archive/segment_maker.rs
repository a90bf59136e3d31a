//! Makes segments from messages.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use ctx_core::text::head_chars;
use ctx_core::{Block, CallId, Counter, Entry, Message, Result, Timestamp};
use ctx_facts::strings;

use super::maintenance::DAY;
use ctx_redact::Redactor;
use ctx_search::block::is_recalled;

use ctx_search::{Metadata, Segment, SegmentId};

/// The number of characters kept of what a call names, and of each argument.
const CALL_CHARS: usize = 400;
const ARGUMENT_CHARS: usize = 200;

/// Makes segments from messages: the text without secrets, and its size.
#[derive(Clone, Debug)]
pub struct SegmentMaker {
    agent: String,
    session: String,
    counter: Counter,
    redaction: bool,
    /// What the calls named that have no result yet. Clones share it.
    calls: Arc<Mutex<HashMap<CallId, String>>>,
}

impl SegmentMaker {
    /// For the messages of one session of an agent, with sizes measured by `counter`.
    #[must_use]
    pub fn new(agent: impl Into<String>, session: impl Into<String>, counter: Counter) -> Self {
        let (agent, session) = (agent.into(), session.into());
        Self { agent, session, counter, redaction: true, calls: Arc::default() }
    }

    /// Whether secrets are redacted. Default: yes.
    #[must_use]
    pub fn with_redaction(mut self, redaction: bool) -> Self {
        self.redaction = redaction;
        self
    }

    /// Returns the segment of an entry. `now` is its time if the transcript has none. Returns
    /// `None` for a message that the model does not see, that is empty, or that was recalled.
    ///
    /// # Errors
    ///
    /// If the entry's message cannot be read.
    pub fn of_entry(&self, entry: &Entry, now: Timestamp) -> Result<Option<Segment>> {
        let message = entry.message()?;
        let time = entry.timestamp().or(message.meta.timestamp).unwrap_or(now);
        let segment = self.of_message(&message, time);
        let late = now.0.saturating_sub(time.0) > DAY;
        Ok(segment.map(|segment| Segment {
            entry_id: Some(entry.id().to_string()),
            archived_at: late.then_some(now),
            ..segment
        }))
    }

    /// Like [`of_entry`](Self::of_entry), for a message that is not an entry.
    pub fn of_message(&self, message: &Message, time: Timestamp) -> Option<Segment> {
        let call = self.call_of(message);
        let content = self.redacted(text_of(message)?);
        let metadata = Metadata { call: call.map(|call| self.redacted(call)) };
        Some(Segment {
            id: SegmentId::of(&self.session, &message.role, &content),
            agent_id: self.agent.clone(),
            session_id: self.session.clone(),
            timestamp: time,
            archived_at: None,
            role: message.role.clone(),
            name: message.meta.name.clone(),
            tokens: self.counter.text(&content).0,
            metadata,
            content,
            entry_id: None,
        })
    }

    fn redacted(&self, text: String) -> String {
        match self.redaction {
            true => Redactor::builtin().redact(&text).text.into_owned(),
            false => text,
        }
    }

    /// Remembers what the calls of a message name, and returns what was named by those that the
    /// message answers.
    fn call_of(&self, message: &Message) -> Option<String> {
        let mut calls = self.calls.lock().unwrap_or_else(PoisonError::into_inner);
        for call in message.tool_calls() {
            let named = strings(call.arguments.as_str()).into_iter().map(|named| named.value);
            let short = named.filter(|value| value.len() <= ARGUMENT_CHARS);
            let named = short.collect::<Vec<_>>().join(" ");
            calls.insert(call.id.clone(), head_chars(&named, CALL_CHARS).to_owned());
        }
        let answered = message.tool_results().filter_map(|result| calls.remove(&result.call_id));
        let answered = answered.filter(|call| !call.is_empty()).collect::<Vec<_>>().join(" ");
        Some(answered).filter(|call| !call.is_empty())
    }
}

/// Returns a message's text as the model sees it: its text, tool calls as `name({...})`, results,
/// commands with their output, and `[image]` for an image. Thinking and blocks of unknown kinds are
/// omitted. Returns `None` for a message that the model does not see, that is empty, or that was
/// recalled.
#[must_use]
pub fn text_of(message: &Message) -> Option<String> {
    if !message.in_model_context() {
        return None;
    }
    let mut text = String::new();
    for block in &message.blocks {
        match block {
            Block::Text { text: said } => line(&mut text, said),
            Block::Bash(run) => line(&mut text, &run.as_text()),
            Block::ToolCall(call) => {
                line(&mut text, "");
                let _ = write!(text, "{}({})", call.name, call.arguments.as_str());
            }
            Block::ToolResult(result) => {
                if result.is_error {
                    line(&mut text, "error:");
                }
                for part in &result.content {
                    match part {
                        Block::Text { text: said } => line(&mut text, said),
                        Block::Image(_) => line(&mut text, "[image]"),
                        _ => {}
                    }
                }
            }
            Block::Image(_) => line(&mut text, "[image]"),
            Block::Thinking { .. } | Block::Opaque { .. } => {}
        }
    }
    let says = !text.trim().is_empty() && text.trim() != "[image]" && !is_recalled(&text);
    says.then_some(text)
}

fn line(text: &mut String, said: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(said);
}

#[cfg(test)]
mod tests {
    use ctx_core::{BashRun, CounterKind, RawJson, Role, ToolCall, ToolResult};

    use super::*;

    fn maker() -> SegmentMaker {
        SegmentMaker::new("main", "s", Counter::new(CounterKind::Chars3))
    }

    fn call(arguments: &str) -> Block {
        Block::ToolCall(ToolCall::new("c", "bash", RawJson::from_text(arguments)))
    }

    #[test]
    fn a_segment_contains_what_the_model_sees() {
        let thought = Block::Thinking { thinking: "hm".into(), signature: None };
        let run = BashRun { command: "ls".into(), output: "a".into(), ..BashRun::default() };
        let failed = ToolResult {
            call_id: "c".into(),
            name: None,
            content: vec![Block::text("no such file")],
            is_error: true,
        };
        for (role, blocks, expected) in [
            (Role::User, vec![Block::text("a"), Block::text("b")], Some("a\nb")),
            (
                Role::Assistant,
                vec![thought.clone(), Block::text("look:"), call(r#"{"command":"ls"}"#)],
                Some("look:\nbash({\"command\":\"ls\"})"),
            ),
            (Role::ToolResult, vec![Block::ToolResult(failed)], Some("error:\nno such file")),
            (Role::BashExecution, vec![Block::Bash(run)], Some("Ran `ls`\n```\na\n```")),
            (Role::Assistant, vec![thought], None),
            (Role::User, vec![Block::text(" \n")], None),
            (
                Role::User,
                vec![Block::text("<recalled-context source=\"x\">a</recalled-context>")],
                None,
            ),
        ] {
            assert_eq!(text_of(&Message::new(role, blocks)).as_deref(), expected);
        }
    }

    #[test]
    fn a_result_has_what_its_call_named_without_secrets() {
        let maker = maker();
        let arguments = r#"{"path":"src/a.rs","key":"API_TOKEN=x7Kq2LmN9pR4sT6vW8yZ1aB3"}"#;
        let asked = Message::new(Role::Assistant, vec![call(arguments)]);
        let content = vec![Block::text("fn a() {}")];
        let result = ToolResult { call_id: "c".into(), name: None, content, is_error: false };
        let answer = Message::new(Role::ToolResult, vec![Block::ToolResult(result)]);
        let named = |message| maker.of_message(message, Timestamp(5)).unwrap().metadata.call;
        assert_eq!(named(&asked), None);
        assert_eq!(named(&answer).as_deref(), Some("src/a.rs API_TOKEN=[redacted:secret]"));
        assert_eq!(named(&answer), None, "the call is answered");
    }

    #[test]
    fn secrets_are_redacted_before_the_id_is_computed() {
        let arguments = r#"{"command":"export API_TOKEN=x7Kq2LmN9pR4sT6vW8yZ1aB3"}"#;
        let message = Message::new(Role::Assistant, vec![call(arguments)]);
        let entry = Entry::in_memory("e1", message.clone());
        let segment = maker().of_entry(&entry, Timestamp(5)).unwrap().unwrap();
        assert_eq!(segment.content, r#"bash({"command":"export API_TOKEN=[redacted:secret]"})"#);
        assert_eq!(segment.id, SegmentId::of("s", &Role::Assistant, &segment.content));
        assert_eq!((segment.entry_id.as_deref(), segment.timestamp), (Some("e1"), Timestamp(5)));
        let bare = maker().with_redaction(false).of_message(&message, Timestamp(5)).unwrap();
        assert!(bare.content.contains("x7Kq2LmN9pR4sT6vW8yZ1aB3"));
    }
}
