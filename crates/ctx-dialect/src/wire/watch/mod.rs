//! Inspects an answer as it passes.

mod chat;
mod converse;
mod gemini;
mod messages;
mod pieces;
mod responses;
mod text;

use ctx_core::Usage;
use ctx_core::text::head_bytes;

pub use self::text::answer_text;

pub(super) use self::pieces::{Piece, Pieces};
use super::{Protocol, compaction_in};
use crate::json::{Object, ObjectWriter, string};
use crate::openai_chat;

/// Maximum size of a stored error in bytes.
const LONGEST_ERROR: usize = 64 * 1024;

/// The state of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AnswerState {
    /// Undecided: it may still be an error.
    #[default]
    Pending,
    /// It has content (text, a call, reasoning): from here on it is an answer.
    Content,
    /// It failed before any content; see [`Watch::failure`].
    Failure,
    /// It ended or broke off without content and without an error.
    Empty,
}

/// An error in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The error's JSON, wrapped in `error` if it was nested there, at most 64 KiB. It is not
    /// interpreted here.
    pub json: String,
    /// The message.
    pub message: Option<String>,
    /// The code or type, whichever is more specific, for example `context_length_exceeded`.
    pub code: Option<String>,
}

/// Reads an answer as it passes, streamed or whole, in chunks of any size. It changes nothing and
/// buffers at most one event. An event that is larger than any that providers send is skipped.
///
/// ```
/// use ctx_dialect::wire::{Protocol, AnswerState, Watch};
///
/// let mut watch = Watch::new(Protocol::Chat);
/// assert_eq!(watch.push(b"data: {\"choices\":[{\"delta\":{\"role\":\"assist"), AnswerState::Pending);
/// assert_eq!(watch.push(b"ant\",\"content\":\"\"}}]}\n\n"), AnswerState::Pending);
/// assert_eq!(watch.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n"), AnswerState::Content);
/// watch.push(b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\n");
/// watch.push(b"data: [DONE]\n\n");
/// assert_eq!(watch.usage().unwrap().prompt(), 9);
/// assert!(watch.is_finished());
/// ```
#[derive(Debug)]
pub struct Watch {
    protocol: Protocol,
    pieces: Pieces,
    found: AnswerFindings,
}

/// The findings so far.
#[derive(Debug, Default)]
struct AnswerFindings {
    state: AnswerState,
    usage: Option<Usage>,
    compaction_usage: Vec<Usage>,
    failure: Option<Failure>,
    finish: Option<String>,
    finished: bool,
    response: Option<String>,
    compactions: Vec<String>,
    /// The content of a streamed compaction so far.
    compaction: Option<String>,
}

impl Watch {
    /// Creates a watch for an answer of this API. A stream is detected from its beginning.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, pieces: Pieces::default(), found: AnswerFindings::default() }
    }

    /// Reads the next bytes and returns the state of the answer.
    pub fn push(&mut self, bytes: &[u8]) -> AnswerState {
        let (protocol, found) = (self.protocol, &mut self.found);
        self.pieces.push(bytes, &mut |piece| found.take(protocol, piece));
        self.found.state
    }

    /// Marks the end of the answer, complete or not.
    pub fn end(&mut self) -> AnswerState {
        let (protocol, found) = (self.protocol, &mut self.found);
        self.pieces.end(&mut |piece| found.take(protocol, piece));
        if self.found.state == AnswerState::Pending {
            self.found.state = AnswerState::Empty;
        }
        self.found.state
    }

    /// Returns the number of buffered bytes, at most the size of a provider's largest event.
    pub fn buffered(&self) -> usize {
        self.pieces.buffered()
    }

    /// Returns the state of the answer.
    pub fn state(&self) -> AnswerState {
        self.found.state
    }

    /// Returns the usage in the last report so far.
    pub fn usage(&self) -> Option<Usage> {
        self.found.usage
    }

    /// Returns the usage of each compaction that Anthropic's API made for this answer, which
    /// [`usage`](Self::usage) does not contain.
    pub fn compaction_usage(&self) -> &[Usage] {
        &self.found.compaction_usage
    }

    /// Returns the error in the answer, before or after content.
    pub fn failure(&self) -> Option<&Failure> {
        self.found.failure.as_ref()
    }

    /// Returns the finish reason, as named by the provider.
    pub fn finish_reason(&self) -> Option<&str> {
        self.found.finish.as_deref()
    }

    /// Takes the complete response object of the Responses API.
    pub fn take_response(&mut self) -> Option<String> {
        self.found.response.take()
    }

    /// Returns the contents of the provider's compactions that are complete so far, as
    /// [`compaction_in`](super::compaction_in) does.
    pub fn compactions(&self) -> &[String] {
        &self.found.compactions
    }

    /// Whether the answer ended because the window is full.
    pub fn is_window_full(&self) -> bool {
        self.found.finish.as_deref() == Some("model_context_window_exceeded")
    }

    /// Whether the answer is complete according to the protocol.
    pub fn is_finished(&self) -> bool {
        self.found.finished
    }
}

impl AnswerFindings {
    fn take(&mut self, protocol: Protocol, piece: Piece<'_>) {
        match piece {
            // No error is this large, so it is content.
            Piece::TooLarge => self.content(),
            Piece::Json(json) | Piece::Event { data: json, .. } if json.trim() == "[DONE]" => {
                self.finished = true;
            }
            Piece::Json(json) => self.whole(protocol, json),
            Piece::Event { name, data } => self.event(protocol, name, data),
        }
    }

    fn whole(&mut self, protocol: Protocol, json: &str) {
        let Ok(object) = Object::parse(json) else { return };
        if self.failed(&object, json) {
            return;
        }
        match protocol {
            Protocol::Chat => chat::whole(self, &object),
            Protocol::Responses => {
                responses::whole(self, &object, json);
                let items = object.array("output").unwrap_or_default();
                items.into_iter().for_each(|item| self.take_compaction(protocol, item.get()));
                self.response = Some(json.to_owned());
            }
            Protocol::Messages => {
                messages::whole(self, &object);
                self.take_compaction(protocol, json);
            }
            Protocol::Gemini => gemini::chunk(self, &object),
            Protocol::Converse => converse::whole(self, &object),
        }
    }

    /// Keeps the content of a compaction in an item or a message.
    fn take_compaction(&mut self, protocol: Protocol, element: &str) {
        self.compactions.extend(compaction_in(protocol, element));
    }

    fn event(&mut self, protocol: Protocol, name: &str, json: &str) {
        let Ok(object) = Object::parse(json) else {
            if name == "error" {
                self.fail(Failure { json: head(json), message: Some(head(json)), code: None });
            }
            return;
        };
        if name == "error" && !object.has("error") {
            self.fail(failure(&object, json));
            return;
        }
        if self.failed(&object, json) {
            return;
        }
        match protocol {
            Protocol::Chat => chat::chunk(self, &object),
            Protocol::Responses => responses::event(self, &object, json),
            Protocol::Messages => messages::event(self, &object),
            Protocol::Gemini => gemini::chunk(self, &object),
            Protocol::Converse => converse::event(self, &object),
        }
    }

    /// Records an error, and returns whether the value is nothing else. Errors look alike in all
    /// protocols: an object or a text under `error`, or an event of that type.
    fn failed(&mut self, object: &Object<'_>, json: &str) -> bool {
        let has_error = object.get("error").is_some_and(|raw| {
            let is_text = string(raw).is_some_and(|text| !text.is_empty());
            is_text || Object::of(raw).is_some_and(|error| error.iter().next().is_some())
        });
        // A stored response has an `error` field anyway; its `status` tells whether it failed.
        let is_answer = object.has("choices") || object.has("candidates");
        let is_error = object.text("type").is_some_and(|kind| kind == "error");
        if is_error || (has_error && !is_answer) {
            self.fail(failure(object, json));
            return true;
        }
        if has_error {
            self.fail(failure(object, json));
        }
        false
    }

    fn fail(&mut self, failure: Failure) {
        if self.state == AnswerState::Pending {
            self.state = AnswerState::Failure;
        }
        self.failure.get_or_insert(failure);
    }

    fn content(&mut self) {
        if self.state == AnswerState::Pending {
            self.state = AnswerState::Content;
        }
    }

    fn content_if(&mut self, filled: bool) {
        if filled {
            self.content();
        }
    }

    /// Reads OpenAI's usage, if it is reported.
    fn report(&mut self, answer: &Object<'_>) {
        let usage = answer.object("usage").and_then(|usage| openai_chat::usage(&usage));
        self.usage = usage.or(self.usage);
    }

    fn finish(&mut self, reason: Option<String>) {
        if reason.is_some() {
            self.finish = reason;
        }
    }
}

/// Parses an error of any protocol.
fn failure(object: &Object<'_>, json: &str) -> Failure {
    let nested = object.object("error");
    let inner = nested.as_ref().unwrap_or(object);
    let text = || object.get("error").and_then(string).map(|text| head(&text));
    let known = |key: &str| inner.id(key).map(|text| head(&text)).filter(|text| !text.is_empty());
    let code = known("code").or_else(|| known("status")).or_else(|| known("type"));
    // Keeps only the error: the rest may be long, and contain the client's text.
    let json = match object.get("error") {
        Some(error) if error.get().len() <= LONGEST_ERROR => {
            ObjectWriter::new().raw("error", error.get()).end()
        }
        _ => head(json),
    };
    Failure { json, message: known("message").or_else(text), code }
}

fn head(text: &str) -> String {
    head_bytes(text, LONGEST_ERROR).to_owned()
}

/// Whether a field is a non-empty string.
fn says(object: &Object<'_>, key: &str) -> bool {
    object.text(key).is_some_and(|text| !text.is_empty())
}
