//! An answer, looked at as it passes.

mod chat;
mod gemini;
mod messages;
mod pieces;
mod responses;

use ctx_core::Usage;
use ctx_core::text::head_bytes;

use self::pieces::{Piece, Pieces};
use super::Protocol;
use crate::json::{Fresh, Object, string};

/// The most of an error that is kept, in bytes.
const LONGEST_ERROR: usize = 64 * 1024;

/// What an answer has shown to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Seen {
    /// Nothing yet that tells: it may still turn out to be an error.
    #[default]
    Nothing,
    /// It has said something (text, a call, reasoning): from here on it is an answer.
    Content,
    /// It failed before it said anything; see [`Watch::failure`].
    Failure,
    /// It ended, or broke off, and neither said anything nor failed.
    Empty,
}

/// An error in an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// The error's JSON as it came, under `error` where it stood under that name, at most 64 KiB of
    /// it. What it means is told by who knows the
    /// words of providers.
    pub json: String,
    /// Its message.
    pub message: Option<String>,
    /// Its code or type, whichever says more, for example `context_length_exceeded`.
    pub code: Option<String>,
}

/// Reads an answer as it passes, a stream or in one piece, cut anywhere. It changes nothing, keeps
/// no more than one event, and lets go of one that is larger than any of a provider's.
///
/// ```
/// use ctx_dialect::wire::{Protocol, Seen, Watch};
///
/// let mut watch = Watch::new(Protocol::Chat);
/// assert_eq!(watch.push(b"data: {\"choices\":[{\"delta\":{\"role\":\"assist"), Seen::Nothing);
/// assert_eq!(watch.push(b"ant\",\"content\":\"\"}}]}\n\n"), Seen::Nothing);
/// assert_eq!(watch.push(b"data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"}}]}\n\n"), Seen::Content);
/// watch.push(b"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":1}}\n\n");
/// watch.push(b"data: [DONE]\n\n");
/// assert_eq!(watch.usage().unwrap().prompt(), 9);
/// assert!(watch.is_finished());
/// ```
#[derive(Debug)]
pub struct Watch {
    protocol: Protocol,
    pieces: Pieces,
    found: Found,
}

/// What was found so far.
#[derive(Debug, Default)]
struct Found {
    seen: Seen,
    usage: Option<Usage>,
    failure: Option<Failure>,
    finish: Option<String>,
    finished: bool,
}

impl Watch {
    /// Watches an answer of that API. Whether it is a stream is seen by how it begins.
    #[must_use]
    pub fn new(protocol: Protocol) -> Self {
        Self { protocol, pieces: Pieces::default(), found: Found::default() }
    }

    /// Takes the next bytes, and says what the answer has shown to be by now.
    pub fn push(&mut self, bytes: &[u8]) -> Seen {
        let (protocol, found) = (self.protocol, &mut self.found);
        self.pieces.push(bytes, &mut |piece| found.take(protocol, piece));
        self.found.seen
    }

    /// Says that nothing more comes, however that was.
    pub fn end(&mut self) -> Seen {
        let (protocol, found) = (self.protocol, &mut self.found);
        self.pieces.end(&mut |piece| found.take(protocol, piece));
        if self.found.seen == Seen::Nothing {
            self.found.seen = Seen::Empty;
        }
        self.found.seen
    }

    /// The bytes that it keeps: no more than the largest event of a provider.
    #[must_use]
    pub fn held(&self) -> usize {
        self.pieces.held()
    }

    /// What it has shown to be.
    #[must_use]
    pub fn seen(&self) -> Seen {
        self.found.seen
    }

    /// What the provider reported so far; what it reported last counts.
    #[must_use]
    pub fn usage(&self) -> Option<Usage> {
        self.found.usage
    }

    /// The error in it, before or after it said something.
    #[must_use]
    pub fn failure(&self) -> Option<&Failure> {
        self.found.failure.as_ref()
    }

    /// Why it ended, in the provider's own word.
    #[must_use]
    pub fn finish_reason(&self) -> Option<&str> {
        self.found.finish.as_deref()
    }

    /// Whether it ended because the window is full.
    #[must_use]
    pub fn is_window_full(&self) -> bool {
        self.found.finish.as_deref() == Some("model_context_window_exceeded")
    }

    /// Whether it came to its end as the protocol has it.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.found.finished
    }
}

impl Found {
    fn take(&mut self, protocol: Protocol, piece: Piece<'_>) {
        match piece {
            // No error is that large.
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
            Protocol::Responses => responses::whole(self, &object, json),
            Protocol::Messages => messages::whole(self, &object),
            Protocol::Gemini => gemini::chunk(self, &object),
        }
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
        }
    }

    /// Errors look alike in all of them: an object or a text under `error`, or an event of that
    /// type.
    fn failed(&mut self, object: &Object<'_>, json: &str) -> bool {
        let has_error = object.get("error").is_some_and(|raw| {
            let is_text = string(raw).is_some_and(|text| !text.is_empty());
            is_text || Object::of(raw).is_some_and(|error| error.iter().next().is_some())
        });
        // A response that is stored has `error` beside all else, and says by its status what it is.
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
        if self.seen == Seen::Nothing {
            self.seen = Seen::Failure;
        }
        self.failure.get_or_insert(failure);
    }

    fn content(&mut self) {
        if self.seen == Seen::Nothing {
            self.seen = Seen::Content;
        }
    }

    fn content_if(&mut self, filled: bool) {
        if filled {
            self.content();
        }
    }

    fn finish(&mut self, reason: Option<String>) {
        if reason.is_some() {
            self.finish = reason;
        }
    }
}

/// An error of any of the protocols.
fn failure(object: &Object<'_>, json: &str) -> Failure {
    let nested = object.object("error");
    let inner = nested.as_ref().unwrap_or(object);
    let text = || object.get("error").and_then(string).map(|text| head(&text));
    let known = |key: &str| inner.id(key).map(|text| head(&text)).filter(|text| !text.is_empty());
    let code = known("code").or_else(|| known("status")).or_else(|| known("type"));
    // The error alone: what is around it may be long, and hold the client's own words.
    let json = match object.get("error") {
        Some(error) if error.get().len() <= LONGEST_ERROR => {
            Fresh::new().raw("error", error.get()).end()
        }
        _ => head(json),
    };
    Failure { json, message: known("message").or_else(text), code }
}

fn head(text: &str) -> String {
    head_bytes(text, LONGEST_ERROR).to_owned()
}

/// Whether a field is a text that is not empty.
fn says(object: &Object<'_>, key: &str) -> bool {
    object.text(key).is_some_and(|text| !text.is_empty())
}
