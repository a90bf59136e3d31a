//! Takes the calls of ctx's own tools out of an answer, so that ctx can answer them.
//!
//! ```text
//! answer with a call -> everything but the call and the end -> client
//!   call answered, request sent again -> everything but the beginning -> client
//! ```
//!
//! The client receives one answer, whatever the number of rounds. An answer without such calls
//! passes unchanged, apart from comments between events.

mod chat;
mod gemini;
mod messages;
mod responses;

use ctx_core::{Counter, RawJson, ToolCall};

use super::Protocol;
use super::context_compaction::iteration;
use super::rewrite::patched;
use crate::json::{Object, ObjectWriter, array, elements, value};
use crate::sse::{SseEvent, SseParser};

/// Maximum size of an event; larger ones are lost.
const LONGEST: usize = 64 << 20;

/// Joins the answers of several rounds into one, without the calls of some tools.
///
/// ```
/// use ctx_dialect::wire::{Intercept, Protocol};
///
/// let mut answer = Intercept::new(Protocol::Messages, &["lookup"]);
/// let call = r#"{"type":"tool_use","id":"c1","name":"lookup","input":{"id":"2a"}}"#;
/// let text = r#"{"type":"text","text":"Wait."}"#;
/// assert!(answer.push(format!(r#"{{"content":[{text},{call}]}}"#).as_bytes()).is_empty());
/// let round = answer.end_round();
/// assert_eq!(round.calls[0].arguments.as_str(), r#"{"id":"2a"}"#);
/// assert!(round.out.is_empty());
///
/// answer.push(br#"{"content":[{"type":"text","text":"Done."}]}"#);
/// let out = String::from_utf8(answer.end_round().out).unwrap();
/// assert_eq!(out, format!(r#"{{"content":[{text},{{"type":"text","text":"Done."}}]}}"#));
/// ```
#[derive(Debug)]
pub struct Intercept {
    protocol: Protocol,
    framing: Framing,
    answer: Answer,
}

/// The end of a round.
#[derive(Debug, Default)]
pub struct Round {
    /// Bytes for the client.
    pub out: Vec<u8>,
    /// The calls that ctx must answer. If there are any, the answer continues with the next round.
    pub calls: Vec<ToolCall>,
    /// The answer of this round, as elements of the history.
    pub answer: String,
    /// Calls removed from an answer that also calls a tool of the client, which must be answered
    /// first; and the id of that call.
    pub postponed: Option<(String, Vec<ToolCall>)>,
}

#[derive(Debug)]
enum Framing {
    Unknown,
    Events(SseParser),
    Whole(Vec<u8>),
}

/// What was read so far.
#[derive(Debug, Default)]
struct Answer {
    names: &'static [&'static str],
    /// The calls of ctx's tools.
    calls: Vec<ToolCall>,
    /// The id of the first call of another tool.
    other_call: Option<String>,
    /// All parts of the answer: blocks, items or parts.
    parts: Vec<String>,
    /// Parts that are not complete, by their index.
    open: Vec<OpenPart>,
    /// Events that are held because the answer may continue.
    tail: Vec<HeldEvent>,
    out: String,
    /// Text of the answer, in the APIs that do not divide it into parts.
    text: String,
    reasoning: String,
    /// The parts that the client received, of all rounds.
    passed: Vec<String>,
    /// The number of parts that the client received or began to receive.
    count: usize,
    /// The number of events that the client received.
    sequence: u64,
    /// Whether a call was removed, and the id of the first answer.
    is_changed: bool,
    id: Option<String>,
    round: usize,
    /// The summary of a compaction that the client did not receive yet.
    summary: Option<String>,
    /// What that compaction used, as an element of `usage.iterations`.
    iteration: Option<String>,
    /// The input tokens at the beginning of a stream of Anthropic.
    input_tokens: u64,
    /// The value of `context_management`.
    edits: Option<String>,
}

/// An event at the end of an answer.
#[derive(Debug)]
struct HeldEvent {
    name: String,
    data: String,
    /// The event without the end of the answer, and the end alone, if it has both.
    halves: Option<(String, String)>,
}

/// A part of which more may arrive.
#[derive(Debug, Default)]
struct OpenPart {
    index: u64,
    /// The index for the client; `None` for a call of ctx's tools.
    place: Option<usize>,
    begin: String,
    id: String,
    name: String,
    text: String,
    json: String,
    signature: String,
}

impl Intercept {
    /// Creates an interceptor of the calls of the tools `names`.
    #[must_use]
    pub fn new(protocol: Protocol, names: &'static [&'static str]) -> Self {
        let answer = Answer { names, ..Answer::default() };
        Self { protocol, framing: Framing::Unknown, answer }
    }

    /// Adds what Anthropic's API says of the edits that it made in a request: the summary of a
    /// compaction, as the first block, with the tokens that it was made of, and the elements of
    /// `applied_edits`.
    #[must_use]
    pub fn with_context_edits(
        mut self,
        summary: Option<(String, u64)>,
        applied: Option<&[String]>,
    ) -> Self {
        let edits = applied.map(|applied| ObjectWriter::new().raw("applied_edits", array(applied)));
        self.answer.is_changed |= summary.is_some() || edits.is_some();
        if let Some((summary, input)) = summary {
            let output = Counter::default().text(&summary).get();
            self.answer.iteration = Some(iteration("compaction", input, output));
            self.answer.summary = Some(summary);
        }
        self.answer.edits = edits.map(ObjectWriter::end);
        self
    }

    /// Reads the next bytes of the provider's answer, and returns the bytes for the client.
    pub fn push(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        if matches!(self.framing, Framing::Unknown) {
            let Some(first) = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) else {
                return Vec::new();
            };
            // The end of an earlier round is not the end of the answer.
            self.answer.tail.clear();
            self.framing = match first {
                b'{' | b'[' => Framing::Whole(Vec::new()),
                _ => Framing::Events(SseParser::new(LONGEST)),
            };
        }
        match &mut self.framing {
            Framing::Unknown => {}
            Framing::Whole(whole) => whole.extend_from_slice(bytes),
            Framing::Events(parser) => {
                while let Some(event) = parser.next(&mut bytes) {
                    self.answer.event(self.protocol, &event);
                }
            }
        }
        std::mem::take(&mut self.answer.out).into_bytes()
    }

    /// Ends the answer of a round.
    pub fn end_round(&mut self) -> Round {
        let mut whole = None;
        match std::mem::replace(&mut self.framing, Framing::Unknown) {
            Framing::Events(mut parser) => {
                if let Some(event) = parser.finish() {
                    self.answer.event(self.protocol, &event);
                }
            }
            Framing::Whole(bytes) => whole = Some(bytes),
            Framing::Unknown => {}
        }
        if let Some(bytes) = whole {
            self.answer.whole(self.protocol, &bytes);
        }
        let answer = &mut self.answer;
        let calls = std::mem::take(&mut answer.calls);
        let mut round = Round::default();
        match answer.other_call.take() {
            Some(other) if !calls.is_empty() => round.postponed = Some((other, calls)),
            _ => round.calls = calls,
        }
        if round.calls.is_empty() {
            answer.emit_tail(self.protocol, false);
        } else {
            answer.emit_held_content();
            round.answer = match self.protocol {
                Protocol::Chat => chat::message(answer),
                Protocol::Messages | Protocol::Converse => messages::message(answer),
                Protocol::Responses => answer.parts.join(","),
                Protocol::Gemini => gemini::message(answer),
            };
            answer.parts.clear();
            answer.open.clear();
            answer.text.clear();
            answer.reasoning.clear();
            answer.round += 1;
        }
        round.out = std::mem::take(&mut answer.out).into_bytes();
        round
    }

    /// Ends the whole answer after a round with calls that ctx cannot answer.
    pub fn give_up(&mut self) -> Vec<u8> {
        self.answer.emit_tail(self.protocol, true);
        std::mem::take(&mut self.answer.out).into_bytes()
    }
}

impl Answer {
    fn event(&mut self, protocol: Protocol, event: &SseEvent<'_>) {
        let data = event.data.as_deref().unwrap_or_default();
        let held = self.tail.len();
        match Object::parse(data) {
            Ok(object) => match protocol {
                Protocol::Chat => chat::chunk(self, &object, data),
                Protocol::Messages | Protocol::Converse => {
                    messages::event(self, &object, event.name, data);
                }
                Protocol::Responses => responses::event(self, &object, event.name, data),
                Protocol::Gemini => gemini::chunk(self, &object, data),
            },
            Err(_) if data.trim() == "[DONE]" => self.hold(event.name, data),
            Err(_) => self.emit(event.name, data),
        }
        // Nothing that decides whether the answer continues comes after its end.
        let is_end = match protocol {
            Protocol::Chat => data.trim() == "[DONE]",
            Protocol::Messages | Protocol::Converse => event.name == "message_stop",
            Protocol::Responses | Protocol::Gemini => self.tail.len() > held,
        };
        if is_end && (self.calls.is_empty() || self.other_call.is_some()) {
            self.emit_tail(protocol, false);
        }
    }

    /// Reads an answer that is not a stream. It is held like the end of a stream.
    fn whole(&mut self, protocol: Protocol, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let changed = match Object::parse(&text) {
            Ok(object) => Some(match protocol {
                Protocol::Chat => chat::whole(self, &object),
                Protocol::Messages | Protocol::Converse => messages::whole(self, &object),
                Protocol::Responses => self.list(&object, "output", responses::call),
                Protocol::Gemini => gemini::whole(self, &object),
            }),
            // Gemini streams a list if events are not asked for.
            Err(_) => value(&text).ok().and_then(elements).map(|all| gemini::list(self, &all)),
        };
        let text = changed.filter(|_| self.is_changed).unwrap_or_else(|| text.into_owned());
        self.tail.push(HeldEvent { name: WHOLE.to_owned(), data: text, halves: None });
    }

    /// Reads the parts in a list of an answer. Returns the answer with the parts of all rounds for
    /// the client.
    fn list(&mut self, answer: &Object<'_>, key: &str, call: FindCall) -> String {
        for part in answer.array(key).unwrap_or_default() {
            self.parts.push(part.get().to_owned());
            let found = Object::of(part).and_then(|part| call(&part));
            if !found.is_some_and(|call| self.take(call)) {
                self.passed.push(part.get().to_owned());
            }
        }
        patched(answer, &[(key, Some(array(&self.passed)))])
    }

    /// Records a call, and returns whether it is one of ctx's tools.
    fn take(&mut self, call: ToolCall) -> bool {
        let is_own = self.is_own(&call.name);
        if is_own {
            self.is_changed = true;
            self.calls.push(call);
        } else if self.other_call.is_none() {
            self.other_call = Some(call.id.to_string());
        }
        is_own
    }

    fn is_own(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    fn open_part(&mut self, index: u64) -> Option<&mut OpenPart> {
        self.open.iter_mut().rfind(|part| part.index == index)
    }

    fn emit(&mut self, name: &str, data: &str) {
        if name == WHOLE {
            self.out.push_str(data);
            return;
        }
        if !name.is_empty() {
            self.out.extend(["event: ", name, "\n"]);
        }
        self.out.extend(["data: ", &data.replace('\n', "\ndata: "), "\n\n"]);
    }

    fn hold(&mut self, name: &str, data: &str) {
        self.tail.push(HeldEvent { name: name.to_owned(), data: data.to_owned(), halves: None });
    }

    /// Emits what the held events contain beside the end of the answer.
    fn emit_held_content(&mut self) {
        for mut event in std::mem::take(&mut self.tail) {
            if let Some((content, end)) = event.halves.take() {
                self.emit(&event.name, &content);
                event.data = end;
            }
            self.tail.push(event);
        }
    }

    /// Emits the end of the answer. `is_early`: a call of ctx's tools is not answered any more.
    fn emit_tail(&mut self, protocol: Protocol, is_early: bool) {
        for HeldEvent { name, mut data, .. } in std::mem::take(&mut self.tail) {
            if protocol == Protocol::Responses && name != WHOLE {
                data = responses::numbered(self, &data);
            }
            if is_early {
                // A text in JSON has no quotes without a backslash, so these are fields.
                for colon in [":", ": "] {
                    for (key, call, end) in
                        [("stop", "tool_use", "end_turn"), ("finish", "tool_calls", "stop")]
                    {
                        let field = |value| format!("\"{key}_reason\"{colon}\"{value}\"");
                        data = data.replace(&field(call), &field(end));
                    }
                }
            }
            self.emit(&name, &data);
        }
    }
}

/// Returns the call in a part; `None` for other parts.
type FindCall = fn(&Object<'_>) -> Option<ToolCall>;

/// Takes the place of an event's name for an answer that is not a stream.
const WHOLE: &str = "\n";

/// Creates a call from its arguments as text.
fn call_of(id: &str, name: &str, arguments: &str) -> ToolCall {
    let arguments = if arguments.trim().is_empty() { "{}" } else { arguments };
    ToolCall::new(id, name, RawJson::from_text(arguments))
}
